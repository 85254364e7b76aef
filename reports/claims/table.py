"""Verdicts as tables of text, for the terminal, README, docs and the page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from math import isnan

from benchmarks.claims.claim import Claim, Refutation
from benchmarks.claims.kept import COMPUTED
from reports import numbers
from reports.claims.rules import Verdict, Word
from reports.claims.stored import COLUMNS, Judged, Standing

WORDS: tuple[Word, ...] = ("confirmed", "refuted", "equal", "no effect", "undecided", "not run", "reported")
HEADER = ("claim", "verdict", "found", "interval", "seeds", "besides")
SUMMARY = ("paper", *COLUMNS, "published claims")

# Meaning of a refutation that does not contradict the paper.
MEANS: dict[Refutation, str] = {
    "contradicts": "contradicts the paper",
    "other_arrangement": "other arrangement",
    "outside_conditions": "outside its conditions",
    "underspecified": "underspecified",
    "ours": "our reading",
}
ARRANGED = {"paper": "as the paper says", "code": "as its code does", "variant": "our variant"}


def summary(found: Iterable[Standing]) -> list[tuple[str, ...]]:
    """A line for each paper, under `SUMMARY`."""
    return [
        (one.paper.title, *(str(n or "–") for n in one.counts.values()), str(len(one.verdicts)))
        for one in found
    ]


def tested(found: Iterable[Standing]) -> str:
    """How many of the published claims were tested, and how many of them at the paper's scale."""
    found = list(found)
    scales = sum((one.tested for one in found), Counter[str]())
    of = sum(len(one.verdicts) for one in found)
    return (
        f"{scales.total()} of {of} published claims tested, {scales['paper']} at paper scale and "
        f"{scales[COMPUTED]} computed without training."
    )


def lines(one: Judged) -> list[tuple[str, ...]]:
    """A line for each claim of a paper at one scale, under `HEADER`."""
    return [
        line(one.paper.claims[id_], one.refutation(id_), verdict) for id_, verdict in one.verdicts.items()
    ]


def line(claim: Claim, refutation: Refutation, verdict: Verdict) -> tuple[str, ...]:
    """A claim's verdict, under `HEADER`."""
    seeds = str(verdict.seeds) if verdict.seeds else ""
    return (
        claim.id,
        said(verdict, refutation),
        _number(verdict.found),
        interval(verdict),
        seeds,
        besides(verdict),
    )


def said(verdict: Verdict, refutation: Refutation) -> str:
    """The word of a verdict, with the reason where it counts neither for nor against the paper."""
    if verdict.word in {"not run", "reported"} or refutation == "contradicts":
        return verdict.word
    return f"{verdict.word} ({MEANS[refutation]})"


def interval(verdict: Verdict) -> str:
    """Its interval, where there is one."""
    if isnan(verdict.low) or isnan(verdict.high):
        return ""
    return f"[{_number(verdict.low)}, {_number(verdict.high)}]"


def besides(verdict: Verdict) -> str:
    """Further remarks: how many seeds would decide, and why."""
    more = f"{verdict.more:,} seeds would decide" if verdict.more else ""
    return "; ".join(filter(None, (verdict.why, more)))


def counted(found: Iterable[Judged]) -> list[tuple[str, ...]]:
    """A line for each paper and scale: how many entries have each verdict."""
    return [
        (
            one.paper.title,
            one.scale,
            *(str(one.counts[word] or "–") for word in WORDS),
            str(len(one.verdicts)),
        )
        for one in found
    ]


def _number(value: float) -> str:
    return "" if isnan(value) else numbers.number(value, 3)
