"""Verdicts as tables of texts: the terminal prints them, the README shows them, and so does the page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import isnan
from pathlib import Path

from benchmarks.claims import SCALES, Claim
from benchmarks.claims.files import Paper
from benchmarks.claims.kept import COMPUTED, RESULTS
from fl_core.words import many
from reports import numbers
from reports.claims.claims import judged, scales
from reports.claims.verdicts import Verdict

WORDS = ("confirmed", "refuted", "undecided", "not run", "reported")
HEADER = ("claim", "verdict", "found", "95 % interval", "seeds", "besides")
CASES = ("claim", "scale", *HEADER[1:])


@dataclass(frozen=True, slots=True)
class Judged:
    """The claims of a paper at one scale with their verdicts, by id."""

    paper: Paper
    scale: str
    verdicts: Mapping[str, Verdict]

    @property
    def counts(self) -> Counter[str]:
        """How many have each verdict."""
        return Counter(one.word for one in self.verdicts.values())

    @property
    def ran(self) -> bool:
        """Whether any of them has run."""
        return self.counts["not run"] < len(self.verdicts)

    def lines(self) -> list[tuple[str, ...]]:
        """A line of texts for each claim, under `HEADER`."""
        return [line(self.paper.claims[id_], one) for id_, one in self.verdicts.items()]


def all_of(papers: Iterable[Paper], folder: Path = RESULTS) -> list[Judged]:
    """All verdicts: paper by paper, what is computed first."""
    found = []
    for paper in papers:
        there = dict.fromkeys(scale for claim in paper.claims.values() for scale in scales(paper, claim))
        order = sorted(there, key=(COMPUTED, *SCALES).index)
        found += [Judged(paper, scale, judged(paper, scale, folder)) for scale in order]
    return found


def line(claim: Claim, verdict: Verdict) -> tuple[str, ...]:
    """A claim's verdict, under `HEADER`."""
    seeds = str(verdict.seeds) if verdict.seeds else ""
    return claim.id, verdict.word, _number(verdict.found), interval(verdict), seeds, besides(verdict)


def interval(verdict: Verdict) -> str:
    """Its interval, where there is one."""
    if isnan(verdict.low) or isnan(verdict.high):
        return ""
    return f"[{_number(verdict.low)}, {_number(verdict.high)}]"


def besides(verdict: Verdict) -> str:
    """What a reader must know besides: how few seeds, how many would decide, and why."""
    few = f"{many(verdict.seeds, 'seed')} only" if 0 < verdict.seeds < 3 else ""
    more = f"{many(verdict.more, 'seed')} would decide" if verdict.more else ""
    return "; ".join(filter(None, (few, verdict.why, more)))


def counted(found: Iterable[Judged]) -> list[tuple[str, ...]]:
    """A line for each paper and scale: how many claims have each verdict."""
    return [
        (
            one.paper.title,
            one.scale,
            *(str(one.counts[word] or "–") for word in WORDS),
            str(len(one.verdicts)),
        )
        for one in found
    ]


def markdown(found: Iterable[Judged]) -> str:
    """Verdicts for a README: counts, then the rows of each paper, then what was refuted and how it looked."""
    ran = [one for one in found if one.ran]
    parts = [_table(("Paper", "Scale", *map(str.capitalize, WORDS), "Claims"), counted(ran))]
    rows = [row for one in ran for row in _rows(one)]
    parts.append(_table(("Claim", "Place", "Scale", *map(str.capitalize, WORDS)), rows))
    refuted = [bullet for one in ran for bullet in _refuted(one)]
    if refuted:
        parts.append("\n".join(["Refuted:", "", *refuted]))
    return "\n\n".join(parts) + "\n"


def _rows(one: Judged) -> Iterable[tuple[str, ...]]:
    """A line for each row of the paper's list that has run."""
    by_row: dict[str, Counter[str]] = {}
    places: dict[str, str] = {}
    for id_, verdict in one.verdicts.items():
        claim = one.paper.claims[id_]
        by_row.setdefault(claim.row, Counter())[verdict.word] += 1
        places.setdefault(claim.row, claim.place)
    for row, counts in by_row.items():
        if counts["not run"] < counts.total():
            yield row, places[row], one.scale, *(str(counts[word] or "–") for word in WORDS)


def cases(paper: Paper, row: str, folder: Path = RESULTS) -> list[tuple[str, ...]]:
    """The claims of a row, under `CASES`: each at all of its scales."""
    return [
        (id_, one.scale, *line(paper.claims[id_], verdict)[1:])
        for one in all_of([paper], folder)
        for id_, verdict in one.verdicts.items()
        if paper.claims[id_].row == row
    ]


def _refuted(one: Judged) -> Iterable[str]:
    """A bullet for each claim that was refuted; those of a row that look alike share one."""
    alike: dict[tuple[str, str], list[Claim]] = {}
    for id_, verdict in one.verdicts.items():
        if verdict.word == "refuted":
            claim = one.paper.claims[id_]
            alike.setdefault((claim.row, claim.seen or id_), []).append(claim)
    for (row, _), (first, *others) in alike.items():
        seen = f" *Seen:* {first.seen}" if first.seen else ""
        if others:
            which = ", ".join(claim.id.removeprefix(f"{row}/") for claim in (first, *others))
            claims = f"{len(others) + 1} claims ({one.scale})"
            yield f"- **{row}**, {claims}, such as: {first.statement}{seen} Claims: {which}."
        else:
            yield f"- **{first.id}** ({one.scale}): {first.statement}{seen}"


def _table(header: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    lines = [header, ["---"] * len(tuple(header)), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in lines)


def _number(value: float) -> str:
    return "" if isnan(value) else numbers.number(value, 3)
