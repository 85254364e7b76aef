"""Verdicts as tables of text, for the terminal, docs and the page."""

from __future__ import annotations

from math import isnan

from benchmarks.claims.claim import Arrangement, Failure
from benchmarks.claims.verdicts.readings import Reading
from benchmarks.claims.verdicts.rules import Verdict, Word
from reports import numbers

# What matters comes first.
ORDER: tuple[Word, ...] = (
    "refuted",
    "confirmed",
    "equal",
    "no effect",
    "leans against",
    "leans for",
    "compatible",
    "undecided",
    "reported",
    "not run",
)
HEADER = ("claim", "arrangement", "verdict", "found", "interval", "seeds", "besides")

MEANS: dict[Failure, str] = {
    "contradicts": "contradicts the paper",
    "other_workload": "on a stand-in",
    "other_arrangement": "other arrangement",
    "outside_conditions": "outside its conditions",
    "underspecified": "underspecified",
    "ours": "ours",
}
ARRANGED: dict[Arrangement, str] = {
    "paper": "the paper’s",
    "code": "its code’s",
    "reading": "a reading",
    "ours": "ours",
}


def line(one: Reading) -> tuple[str, ...]:
    """The verdict of a reading, under `HEADER`."""
    verdict = one.verdict
    seeds = str(verdict.seeds) if verdict.seeds else ""
    return one.claim.id, arranged(one), said(one), number(verdict), interval(verdict), seeds, besides(verdict)


def arranged(one: Reading) -> str:
    """Whose experiment it is, and on whose data and model."""
    return f"{ARRANGED[one.arrangement]}{', stand-in' if one.workload == 'stand-in' else ''}"


def said(one: Reading) -> str:
    """The word of a verdict; of a failure, what it means."""
    return f"{one.word} ({MEANS[one.failure]})" if one.word == "refuted" else worded(one)


def worded(one: Reading) -> str:
    """The word of a verdict; of one that leans, in how many seeds."""
    if one.word == "compatible":
        return "compatible, imprecise"
    if one.word not in {"leans for", "leans against"}:
        return one.word
    words = ("ahead", "behind") if one.claim.kind == "better" else ("holds", "fails")
    return f"{words[one.word == 'leans against']} in {one.verdict.seeds} of {one.verdict.seeds} seeds"


def number(verdict: Verdict) -> str:
    """What was found, where it is a number."""
    return _number(verdict.found)


def interval(verdict: Verdict) -> str:
    """Its interval, where there is one."""
    if isnan(verdict.low) or isnan(verdict.high):
        return ""
    return f"[{_number(verdict.low)}, {_number(verdict.high)}]"


def besides(verdict: Verdict) -> str:
    """Further remarks: how many seeds would decide, and why."""
    more = f"{verdict.more:,} seeds would decide" if verdict.more else ""
    return "; ".join(filter(None, (verdict.why, more)))


def _number(value: float) -> str:
    return "" if isnan(value) else numbers.number(value, 3)
