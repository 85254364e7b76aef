"""Printed tables: a joint check of all cells already run, and checks of placebos.

A main result rests on these checks if its readings are cells of a printed table (`main_results`). A table
passes if none of its cells fails and no group differs. A group has all cells with one value of a condition;
it differs if its mean difference from the printed numbers is both significant and beyond the margin. A
placebo is the table with wrong numbers: printed numbers of two neighbouring values of a condition are
exchanged, for example of p, or of two algorithms. If placebos pass, or the table's own numbers fail, the
check says little.

Fixed: the rule and the placebos, whose outcomes are published.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import nan

import numpy as np

from benchmarks.claims.claim import Claim
from benchmarks.claims.kinds import Value
from reports.claims.pooled_effects import found_effect
from reports.claims.readings import Reading
from reports.claims.verdicts import Word, verdicts
from reports.statistical_inference import ERROR, Effect, paired_effect, simultaneous_level

FEWEST_CELLS = 4  # of a group whose mean difference is tested


@dataclass(frozen=True, slots=True)
class GroupDifference:
    """Mean difference ours − printed over cells sharing a condition's value, with an interval."""

    condition: str
    value: str
    difference: Effect
    above: int  # cells with our number above the printed number
    differs: bool  # whether 0 is outside the interval, and the mean beyond the margin


@dataclass(frozen=True, slots=True)
class TableCheck:
    """Result of the rule for a table or a placebo."""

    name: str  # the condition with exchanged values; empty for the table's own numbers
    correlation: float  # of our numbers with the printed numbers
    error: float  # root mean square of ours − printed
    words: Mapping[Word, int]  # number of cells by verdict
    groups: tuple[GroupDifference, ...]

    @property
    def passes(self) -> bool:
        """Whether no cell fails, and no group differs."""
        return not self.words.get("refuted") and not any(group.differs for group in self.groups)


@dataclass(frozen=True, slots=True)
class PrintedTable:
    """Comparison of our numbers with a printed table as a whole."""

    name: str  # for example Table 2
    cells: int  # number of cells already run
    margin: float  # largest difference from the printed number for a cell to hold
    outside: int  # cells with a printed number outside the 95 % interval
    difference: Effect  # ours − printed, mean over cells with an interval
    own: TableCheck
    placebos: tuple[TableCheck, ...]


def tables(readings: Iterable[Reading]) -> list[PrintedTable]:
    """Return the comparisons with all printed tables among the readings; only cells already run count."""
    by_file: dict[str, list[Reading]] = {}
    for reading in readings:
        if reading.ran and reading.claim.table and reading.verdict.found is not None:
            by_file.setdefault(reading.claim.table, []).append(reading)
    return [_table(mine) for mine in by_file.values()]


def _table(cells: Sequence[Reading]) -> PrintedTable:
    """Return the comparison of a table, with a placebo for each condition."""
    margin = max(_claim(cell).allowed for cell in cells)
    return PrintedTable(
        cells[0].claim.place,
        len(cells),
        margin,
        sum(p is not None and p <= ERROR for p in (cell.verdict.unlike for cell in cells)),
        paired_effect([found_effect(cell) for cell in cells]),
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
    """Return the mean difference of the cells with one value of a condition."""
    away = [found_effect(cell) for cell in cells]
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
