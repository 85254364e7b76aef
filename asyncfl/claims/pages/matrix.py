"""Main results against their readings: the matrix that pages open with, and a sentence of counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import groupby
from math import inf, isfinite

from asyncfl.claims.claim import Arrangement, Evidence, Workload
from asyncfl.claims.pages.table import ARRANGED, ORDER
from asyncfl.claims.verdicts.main import DECIDED, Outcome
from asyncfl.claims.verdicts.readings import Reading
from asyncfl.claims.verdicts.rules import Word
from asyncfl.claims.verdicts.tables import Table, tables
from fl_core.text import many
from reports import numbers

LEGEND = "how many of the decided readings hold, by arrangement and workload."
Column = tuple[Arrangement, Workload]
COLUMNS: tuple[Column, ...] = (
    ("paper", "paper"),
    ("paper", "stand-in"),
    ("code", "paper"),
    ("code", "stand-in"),
    ("reading", "paper"),
    ("reading", "stand-in"),
    ("ours", "paper"),
    ("ours", "stand-in"),
)
SQUARES: dict[Word, str] = {
    "confirmed": "🟩",
    "refuted": "🟥",
    "equal": "🟦",
    "no effect": "🟦",
    "leans for": "🟢",
    "leans against": "🔴",
    "compatible": "⬜",
    "undecided": "⬜",
}
AHEAD: dict[Word, str] = {
    "confirmed": "ahead",
    "refuted": "behind",
    "equal": "equal",
    "no effect": "no effect",
}
HOLDS: dict[Word, str] = {**AHEAD, "confirmed": "holds", "refuted": "fails", "equal": "no difference"}
OPEN: dict[Word, str] = {
    "leans for": "in favour in each of too few seeds",
    "leans against": "against in each of too few seeds",
    "compatible": "compatible, imprecise",
    "undecided": "undecided",
}
OF = {**{str(name): words for name, words in ARRANGED.items()}, "stand-in": "a stand-in"}
KINDS: dict[Evidence, str] = {"experiment": "experiment", "statement": "computed statement", "bound": "bound"}


def by_paper(outcomes: Iterable[Outcome]) -> list[list[Outcome]]:
    """The main results of each paper."""
    return [list(group) for _, group in groupby(outcomes, key=lambda outcome: outcome.paper.name)]


def columns(outcomes: Iterable[Outcome]) -> list[Column]:
    """The arrangements and workloads that have been tried."""
    ran = [reading for outcome in outcomes for reading in outcome.readings if reading.ran]
    tried = {(reading.arrangement, reading.workload) for reading in ran}
    return [column for column in COLUMNS if column in tried]


def title(column: Column) -> str:
    """The head of a column."""
    arrangement, workload = column
    return ARRANGED[arrangement] if workload == "paper" else f"{ARRANGED[arrangement]}, stand-in"


def cell(outcome: Outcome, column: Column) -> list[Reading]:
    """The readings of a main result that have run with this arrangement and workload."""
    there = (reading for reading in outcome.readings if (reading.arrangement, reading.workload) == column)
    drawn = (reading for reading in there if reading.word in SQUARES)
    return sorted(drawn, key=lambda reading: ORDER.index(reading.word))


def count(readings: Sequence[Reading]) -> str:
    """How many of the decided readings hold."""
    decided = [reading for reading in readings if reading.word in DECIDED]
    if not decided:
        return f"{len(readings)} undecided" if readings else "–"
    return f"{sum(reading.word == 'confirmed' for reading in decided)} of {len(decided)}"


def squares(readings: Sequence[Reading]) -> str:
    """A coloured square for each reading."""
    return "".join(SQUARES[reading.word] for reading in readings)


def counts(outcome: Outcome) -> str:
    """Return what was found, in counts by kind of evidence, as one sentence."""
    parts = [text for evidence in KINDS if (text := _of_kind(outcome, evidence))]
    words = Counter(reading.word for reading in outcome.readings)
    parts += [f"{words[word]} {said}" for word, said in OPEN.items() if words[word]]
    if waiting := words["not run"]:
        parts.append(f"{many(waiting, 'reading')} not run")
    return _sentence("; ".join(parts))


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:].removesuffix('.')}."


def sentence(outcome: Outcome) -> str:
    """Return the counts, on what the outcome depends, printed tables as a whole, and what is left open."""
    sentences = []
    if outcome.word == "depends on the reading" and outcome.divide is not None:
        name, values = outcome.divide.name, sorted(outcome.divide.counts.items(), key=_rising)
        each = [
            f"{kept} of {n} {f'with {OF.get(value, value)}' if value else 'elsewhere'}"
            for value, (kept, n) in values
        ]
        sentences.append(f"depends most on {name}: {', '.join(each)}")
    sentences += [_of_table(table) for table in tables(outcome.readings)]
    return " ".join(filter(None, (counts(outcome), *map(_sentence, sentences), outcome.result.open)))


def _of_table(table: Table) -> str:
    """A printed table as a whole."""
    away = table.difference
    mean, low, high = (numbers.number(value, 2) for value in (away.mean, away.low, away.high))
    return (
        f"{table.name}: {table.outside} of {table.cells} printed numbers outside of their 95 % interval; "
        f"ours − printed {mean} [{low}, {high}] on average over cells"
    )


def _rising(pair: tuple[str, tuple[int, int]]) -> tuple[bool, float, str]:
    """Numbers by size, then words; what has no value, last."""
    value = pair[0]
    try:
        return False, float(value), value
    except ValueError:
        return not value, inf, value


def _of_kind(outcome: Outcome, evidence: Evidence) -> str:
    """Decided readings of a kind of evidence, the most frequent word first."""
    mine = [reading for reading in outcome.decided if reading.claim.evidence == evidence]
    if not mine:
        return ""
    if evidence == "bound":
        held = [reading.verdict.found for reading in mine if reading.word == "confirmed"]
        ends = (min(held), max(held)) if held else ()
        slack = [numbers.number(end, 2) for end in ends if isfinite(end)]
        said = f"{len(held)} of {many(len(mine), 'bound')} seen to hold"
        return f"{said}, {' to '.join(slack)} times what is measured" if slack else said
    compared = all(reading.claim.kind == "better" for reading in mine)
    words = AHEAD if compared else HOLDS
    counts = Counter(words[reading.word] for reading in mine).most_common()
    what = "decided comparison" if compared else f"decided {KINDS[evidence]}"
    (first, n), *rest = counts
    texts = [f"{first} in {n} of {many(len(mine), what)}", *(f"{word} in {k}" for word, k in rest)]
    corners = ", ".join(outcome.corners)
    return f"{', '.join(texts)}{f' ({corners})' if corners else ''}"
