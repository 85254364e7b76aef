"""Verdicts in blocks for the page: those of a paper at one scale, by the rows of the list of claims."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from benchmarks.claims.kept import COMPUTED
from benchmarks.claims.pages import forest
from benchmarks.claims.pages.table import ORDER, arranged, besides, interval, number, said, worded
from benchmarks.claims.verdicts.readings import Reading, by_scale
from fl_core.text import many


@dataclass(frozen=True, slots=True)
class Entry:
    """A reading in words, and as a line of the plot."""

    reading: Reading
    arranged: str  # whose experiment it is, and on whose workload
    anchor: str
    said: str  # the verdict
    found: str  # with its interval
    seeds: str
    besides: str
    figure: Markup | None


@dataclass(frozen=True, slots=True)
class Row:
    """The claims of a row; their effects share an axis."""

    name: str
    entries: Sequence[Entry]
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


def blocks(found: Sequence[Reading]) -> list[Block]:
    """Those with any verdict."""
    return [_block(group) for group in by_scale(found) if any(one.ran for one in group)]


def _block(group: Sequence[Reading]) -> Block:
    paper, scale = group[0].paper, group[0].scale
    words = Counter(one.word for one in group)
    what = "computed without training" if scale == COMPUTED else f"scale {scale}"
    counts = ", ".join(f"{words[word]} {word}" for word in ORDER if words[word])
    waiting = words["not run"]
    left = f"{many(waiting, 'further claim')} of this scale: not run yet." if waiting else ""
    return Block(paper.title, paper.name, scale, f"{what}: {counts}", list(_rows(group)), left)


def _rows(group: Sequence[Reading]) -> Iterator[Row]:
    """By row of the list of claims, and in it by what is drawn: a difference and a level share no axis."""
    by_row: dict[tuple[str, str], list[Reading]] = {}
    for one in group:
        if one.ran:
            by_row.setdefault((one.claim.row, forest.what(one.claim)), []).append(one)
    for (name, what), row in by_row.items():
        row.sort(key=lambda one: ORDER.index(one.word))
        effects = [forest.effect(one.claim, one.verdict) for one in row]
        drawn = [effect for effect in effects if effect]
        axis = forest.Axis.around(drawn) if drawn else None
        entries = [_entry(one, effect, axis) for one, effect in zip(row, effects, strict=True)]
        yield Row(name, entries, axis.texts if axis else None, what)


def anchor(one: Reading) -> str:
    """Where a reading stands on the page."""
    return f"{one.claim.id}@{one.scale}"


def _entry(one: Reading, effect: forest.Drawn | None, axis: forest.Axis | None) -> Entry:
    verdict = one.verdict
    found = f"{number(verdict)} {interval(verdict)}".strip()
    figure = forest.strip(effect, axis, one.word, f"{worded(one)}: {found}") if effect and axis else None
    seeds = many(verdict.seeds, "seed") if verdict.seeds else ""
    return Entry(one, arranged(one), anchor(one), said(one), found, seeds, besides(verdict), figure)
