"""Verdicts in blocks for the page: those of a paper at one scale, by the rows of the list of claims."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from fl_core.text import many
from reports.claims import forest
from reports.claims.readings import THEOREM, Reading, by_scale
from reports.claims.terminal import ORDER, found, ranked, worded


@dataclass(frozen=True, slots=True)
class Row:
    """The claims of a row; their effects share an axis."""

    name: str
    entries: Sequence[tuple[Reading, Markup | None]]  # with a line of the plot
    ends: tuple[str, str] | None  # of the axis
    what: str  # is drawn


@dataclass(frozen=True, slots=True)
class Block:
    """The claims of a paper at one scale that have run."""

    paper: str
    name: str
    scale: str
    title: str
    rows: Sequence[Row]
    left: str  # what has not run, in a sentence


def blocks(readings: Sequence[Reading]) -> list[Block]:
    """Return the blocks of the page: each paper and scale of which a claim has run."""
    return [_block(group) for group in by_scale(readings) if any(reading.ran for reading in group)]


def _block(group: Sequence[Reading]) -> Block:
    paper, scale = group[0].paper, group[0].scale
    words = Counter(reading.word for reading in group)
    what = "theorems" if scale == THEOREM else f"scale {scale}"
    counts = ", ".join(f"{words[word]} {word}" for word in ORDER if words[word])
    waiting = words["not run"]
    left = f"{many(waiting, 'further claim')} of this scale: not run yet." if waiting else ""
    return Block(paper.title, paper.name, scale, f"{what}: {counts}", list(_rows(group)), left)


def _rows(group: Sequence[Reading]) -> Iterator[Row]:
    """By row of the list of claims, and in it by what is drawn: a difference and a level share no axis."""
    by_row: dict[tuple[str, str], list[Reading]] = {}
    for reading in group:
        if reading.ran:
            by_row.setdefault((reading.claim.row, forest.what(reading.claim)), []).append(reading)
    for (name, what), row in by_row.items():
        effects = [(reading, forest.effect(reading.claim, reading.verdict)) for reading in ranked(row)]
        drawn = [effect for _, effect in effects if effect]
        axis = forest.Axis.around(drawn) if drawn else None
        entries = [(reading, _strip(reading, effect, axis)) for reading, effect in effects]
        yield Row(name, entries, axis.texts if axis else None, what)


def _strip(reading: Reading, effect: forest.DrawnEffect | None, axis: forest.Axis | None) -> Markup | None:
    if effect is None or axis is None:
        return None
    return forest.strip(effect, axis, reading.word, f"{worded(reading)}: {found(reading)}")
