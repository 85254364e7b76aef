"""Verdicts in blocks for the page: those of a paper at one scale, by the rows of the list of claims."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from benchmarks.claims.claim import Claim
from benchmarks.claims.kept import COMPUTED
from fl_core.words import many
from reports.claims import forest
from reports.claims.rules import Verdict, Word
from reports.claims.stored import Judged
from reports.claims.table import ARRANGED, WORDS, besides, interval, line

ORDER: tuple[Word, ...] = ("refuted", "confirmed", "equal", "no effect", "undecided", "reported")


@dataclass(frozen=True, slots=True)
class Entry:
    """One claim with its verdict."""

    claim: Claim
    verdict: Verdict
    arranged: str  # whose experiment it is, in words
    verdict_text: str
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


def blocks(found: Sequence[Judged]) -> list[Block]:
    """Those with any verdict."""
    return [_block(one) for one in found if one.ran]


def _block(one: Judged) -> Block:
    what = "computed without training" if one.scale == COMPUTED else f"scale {one.scale}"
    counts = ", ".join(f"{one.counts[word]} {word}" for word in WORDS if one.counts[word])
    waiting = one.counts["not run"]
    left = f"{many(waiting, 'further claim')} of this scale: not run yet." if waiting else ""
    return Block(one.paper.title, one.paper.name, one.scale, f"{what}: {counts}", list(_rows(one)), left)


def _rows(one: Judged) -> Iterator[Row]:
    """By row of the list of claims, and in it by what is drawn: a difference and a level share no axis."""
    by_row: dict[tuple[str, str], list[str]] = {}
    for id_, verdict in one.verdicts.items():
        claim = one.paper.claims[id_]
        if verdict.word != "not run":
            by_row.setdefault((claim.row, forest.what(claim)), []).append(id_)
    for (name, what), ids in by_row.items():
        effects = {id_: of for id_ in ids if (of := forest.effect(one.paper.claims[id_], one.verdicts[id_]))}
        axis = forest.Axis.around(effects.values()) if effects else None
        ids.sort(key=lambda id_: ORDER.index(one.verdicts[id_].word))
        entries = [_entry(one, id_, effects.get(id_), axis) for id_ in ids]
        yield Row(name, entries, axis.texts if axis else None, what)


def _entry(one: Judged, id_: str, effect: forest.Effect | None, axis: forest.Axis | None) -> Entry:
    claim, verdict = one.paper.claims[id_], one.verdicts[id_]
    _, said, number, _, seeds, _ = line(claim, one.refutation(id_), verdict)
    found = f"{number} {interval(verdict)}".strip()
    figure = None
    if effect and axis:
        figure = forest.strip(effect, axis, verdict.word, f"{verdict.word}: {found}")
    arranged = "computed" if claim.computed else ARRANGED[claim.arranged(one.scale)]
    over = many(int(seeds), "seed") if seeds else ""
    return Entry(claim, verdict, arranged, said, found, over, besides(verdict), figure)
