"""Printed tables: a joint check of all cells already run, and checks of placebos.

A table passes if none of its cells fails and no group of cells differs, those with one value of a condition:
if no group's mean difference from the printed numbers is both significant and beyond the margin. A placebo is
the table with wrong numbers: those of two neighbouring values of a condition exchanged, such as of p, or of
two algorithms. A rule by which placebos pass says nothing, nor does one that a table's own numbers fail.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import nan

import numpy as np

from benchmarks.claims.claim import Claim
from benchmarks.claims.comparisons import Value
from reports.claims.pooled import found
from reports.claims.readings import Reading
from reports.claims.rules import Word
from reports.claims.verdicts import verdicts
from reports.inference import ERROR, Effect, paired_effect, simultaneous_level

FEWEST_CELLS = 4  # of a group whose mean difference is tested


@dataclass(frozen=True, slots=True)
class GroupDifference:
    """Mean difference ours − printed over cells sharing a condition's value, with an interval."""

    condition: str
    value: str
    difference: Effect
    above: int  # cells in which ours is above what is printed
    differs: bool  # 0 is outside of the interval, and the mean beyond the margin


@dataclass(frozen=True, slots=True)
class TableCheck:
    """Result of the rule for a table or a placebo."""

    name: str  # of the condition whose values are exchanged; empty for the table's own numbers
    correlation: float  # of ours with the printed numbers
    error: float  # root mean square of ours − printed
    words: Mapping[Word, int]  # of its cells
    groups: tuple[GroupDifference, ...]

    @property
    def passes(self) -> bool:
        """Whether no cell fails, and no group differs."""
        return not self.words.get("refuted") and not any(group.differs for group in self.groups)


@dataclass(frozen=True, slots=True)
class PrintedTable:
    """Comparison of our numbers with a printed table as a whole."""

    name: str  # Table 2
    cells: int  # that have run
    margin: float  # within which of its printed number a cell holds
    outside: int  # cells whose printed number is outside of its 95 % interval
    difference: Effect  # ours − printed: its mean over cells, with an interval
    own: TableCheck
    placebos: tuple[TableCheck, ...]


def tables(readings: Iterable[Reading]) -> list[PrintedTable]:
    """Return the comparisons with all printed tables of the readings, whose cells are those that have run."""
    by_file: dict[str, list[Reading]] = {}
    for reading in readings:
        if reading.ran and reading.claim.table and reading.verdict.found is not None:
            by_file.setdefault(reading.claim.table, []).append(reading)
    return [_table(mine) for mine in by_file.values()]


def _table(cells: Sequence[Reading]) -> PrintedTable:
    margin = max(_claim(cell).allowed for cell in cells)
    return PrintedTable(
        cells[0].claim.place,
        len(cells),
        margin,
        sum(p is not None and p <= ERROR for p in (cell.verdict.unlike for cell in cells)),
        paired_effect([found(cell) for cell in cells]),
        _check("", cells, margin),
        tuple(_check(name, wrong, margin) for name in _conditions(cells) if (wrong := placebo(cells, name))),
    )


def _claim(cell: Reading) -> Value:
    assert isinstance(cell.claim, Value)
    return cell.claim


def _check(name: str, cells: Sequence[Reading], margin: float) -> TableCheck:
    """Judge all cells by the rule of printed numbers, and the groups of each condition."""
    ours = np.array([cell.verdict.found for cell in cells])
    printed = np.array([float(_claim(cell).printed or nan) for cell in cells])
    claims = {cell.claim.id: cell.claim for cell in cells}
    judged = verdicts(claims, {cell.claim.id: cell.values for cell in cells})
    by_group: dict[tuple[str, str], list[Reading]] = {}
    for cell in cells:
        for condition, value in cell.claim.case.items():
            by_group.setdefault((condition, str(value)), []).append(cell)
    tested = {key: mine for key, mine in by_group.items() if FEWEST_CELLS <= len(mine) < len(cells)}
    level = simultaneous_level(len(tested))
    groups = tuple(_group(*key, mine, margin, level) for key, mine in tested.items())
    return TableCheck(
        name,
        float(np.corrcoef(ours, printed)[0, 1]) if ours.std() and printed.std() else nan,
        float(np.sqrt(((ours - printed) ** 2).mean())),
        Counter(verdict.word for verdict in judged.values()),
        groups,
    )


def _group(
    condition: str, value: str, cells: Sequence[Reading], margin: float, level: float
) -> GroupDifference:
    away = [found(cell) for cell in cells]
    effect = paired_effect(away, level)
    differs = (effect.low > 0 or effect.high < 0) and abs(effect.mean) > margin
    return GroupDifference(condition, value, effect, sum(distance > 0 for distance in away), differs)


def _conditions(cells: Sequence[Reading]) -> list[str]:
    """Return the conditions with more than a single value."""
    names = dict.fromkeys(name for cell in cells for name in cell.claim.case)
    return [name for name in names if len({cell.claim.case.get(name) for cell in cells}) > 1]


def placebo(cells: Sequence[Reading], name: str) -> list[Reading]:
    """Return cells with printed numbers swapped between neighbouring values of a condition, where possible.

    Values are paired in their order: the first with the second, the third with the fourth.
    """
    values = list(dict.fromkeys(cell.claim.case[name] for cell in cells))
    partner: dict[object, object] = {}
    for first, second in list(pairwise(values))[::2]:
        partner |= {first: second, second: first}
    fixed_keys = [key for key in cells[0].claim.case if key != name and not _follows(cells, key, name)]

    def place(claim: Claim, value: object) -> tuple[object, ...]:
        return (value, *(claim.case.get(key) for key in fixed_keys))

    at = {place(cell.claim, cell.claim.case[name]): cell for cell in cells}
    wrong = []
    for cell in cells:
        partner_cell = at.get(place(cell.claim, partner.get(cell.claim.case[name])))
        if partner_cell is not None:
            claim = cell.claim.model_copy(update={"printed": _claim(partner_cell).printed})
            wrong.append(replace(cell, claim=claim))
    return wrong


def _follows(cells: Sequence[Reading], key: str, name: str) -> bool:
    """Return whether a condition has a single value for each value of another."""
    pairs = {(str(cell.claim.case.get(name)), str(cell.claim.case.get(key))) for cell in cells}
    return len(pairs) == len({first for first, _ in pairs})
