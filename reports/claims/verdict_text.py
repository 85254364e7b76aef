"""Verdicts as short texts and lines of tables, for the terminal, the docs and the page.

Fixed: texts that stand on published pages, too. Free: lines of the terminal.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from benchmarks.claims.claim import Arrangement, Claim, Failure
from benchmarks.claims.kinds import Better, Ratio, Value
from reports import numbers
from reports.claims.readings import Reading
from reports.claims.verdicts import Verdict, Word


@dataclass(frozen=True, slots=True)
class Said:
    """Texts for the word of a verdict on pages; a word without a square is not in the matrix."""

    square: str = ""
    short: str = ""  # for comparisons of two methods
    long: str = ""  # for other claims


SAID: dict[Word, Said] = {  # the most important first, as in all tables
    "refuted": Said("🟥", "behind", "fails"),
    "confirmed": Said("🟩", "ahead", "holds"),
    "equal": Said("🟦", "equal", "no difference"),
    "no effect": Said("🟦", "no effect", "no effect"),
    "leans against": Said("🔴", "against", "against in every seed and undecided"),
    "leans for": Said("🟢", "in favour", "in favour in every seed and undecided"),
    "compatible": Said("⬜", "compatible", "compatible, imprecise"),
    "undecided": Said("⬜", "undecided", "undecided"),
    "reported": Said(),
    "not run": Said(),
}
ORDER = list(SAID)
ALONG = {"std": "spread", "step_std": "roughness", "min": "least", "max": "greatest", "spikes": "spikes"}
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
    "reading": "an interpretation",
    "ours": "ours",
}


def line(reading: Reading) -> tuple[str, ...]:
    """Return the columns of a reading's verdict, under `HEADER`."""
    verdict = reading.verdict
    seeds = str(verdict.seeds) if verdict.seeds else ""
    value = number(verdict), interval(verdict), seeds, besides(verdict)
    return reading.claim.id, arranged(reading), said(reading), *value


def arranged(reading: Reading) -> str:
    """Return the arrangement of a reading in words, with a mark for stand-in data or model."""
    return f"{ARRANGED[reading.arrangement]}{', stand-in' if reading.workload == 'stand-in' else ''}"


def said(reading: Reading) -> str:
    """Return the word of a verdict, with the meaning of a failure."""
    return f"{reading.word} ({MEANS[reading.failure]})" if reading.word == "refuted" else worded(reading)


def worded(reading: Reading) -> str:
    """Return the word of a verdict; for a leaning verdict, with the number of seeds."""
    if reading.word == "compatible":
        return "compatible, imprecise"
    if reading.word not in {"leans for", "leans against"}:
        return reading.word
    words = ("ahead", "behind") if reading.claim.kind == "better" else ("holds", "fails")
    seeds = reading.verdict.seeds
    return f"{words[reading.word == 'leans against']} in {seeds} of {seeds} seeds"


def quantity(claim: Claim) -> str:
    """Return the measured quantity of a claim in words; empty for a theorem."""
    named = []
    for sample, metric in zip(claim.samples.values(), claim.metrics, strict=True):
        titled = metric.title != metric.name
        text = (
            metric.in_text if titled else metric.name.replace(":", "/").rpartition("/")[2].replace("_", " ")
        )
        along = f"{ALONG[sample.along]} of {text}" if sample.along in ALONG else text
        named.append(along if sample.reach is None else f"{claim.clock} to a {text}")
    text = " and ".join(dict.fromkeys(named))
    return f"log of {text}" if getattr(claim, "log", False) else text


def measured_quantity(claim: Claim) -> str:
    """Return the measured quantity and the form of the comparison in words; empty for a theorem."""
    if not claim.needs_runs:
        return ""
    if isinstance(claim, Value):
        form = "found − printed" if claim.printed is not None else ""
    elif isinstance(claim, Better):
        form = "advantage of A"
    elif isinstance(claim, Ratio) and any(term.times < 0 for term in claim.top):
        form = "relative gain"
    else:
        form = {"ratio": "ratio", "rank": "Spearman’s ρ", "contrast": "contrast"}.get(claim.kind, "")
    return ": ".join(filter(None, (quantity(claim), form)))


def number(verdict: Verdict) -> str:
    """Return the number found as text; empty without a number."""
    return _number(verdict.found)


def interval(verdict: Verdict) -> str:
    """Return the interval of a verdict as text; empty without an interval."""
    if verdict.low is None or verdict.high is None:
        return ""
    return numbers.interval(verdict.low, verdict.high, _number)


def sides(verdict: Verdict) -> str:
    """Return the values of A and B of a comparison as text; empty where a run has no number."""
    return " against ".join(map(_number, verdict.sides))


def found(reading: Reading) -> str:
    """Return the number found with the interval, as text."""
    return f"{number(reading.verdict)} {interval(reading.verdict)}".strip()


def anchor(reading: Reading) -> str:
    """Return the anchor of a reading on the page."""
    return f"{reading.claim.id}@{reading.scale}"


def ranked(readings: Iterable[Reading]) -> list[Reading]:
    """Return the readings already run, most important words first."""
    ran = (reading for reading in readings if reading.ran)
    return sorted(ran, key=lambda reading: ORDER.index(reading.word))


def besides(verdict: Verdict) -> str:
    """Return the remarks on a verdict, in a line."""
    return "; ".join(remarks(verdict))


def remarks(verdict: Verdict) -> list[str]:
    """Return the remarks on a verdict, with the number of seeds to decide."""
    return [*verdict.remarks, *([f"{verdict.more:,} seeds would decide"] if verdict.more else [])]


def _number(value: float | None) -> str:
    return "" if value is None else numbers.number(value, 3)
