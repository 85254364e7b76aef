"""Printed tables: one statement over all cells of each that have run."""

from collections.abc import Iterable
from dataclasses import dataclass
from math import nan

from asyncfl.claims.kinds import Value
from asyncfl.claims.verdicts.looks import ERROR
from asyncfl.claims.verdicts.readings import Reading
from reports.statistics.paired import Effect, student


@dataclass(frozen=True, slots=True)
class PrintedTable:
    """What became of a printed table as a whole."""

    name: str  # Table 2
    cells: int  # that have run
    margin: float  # within which of its printed number a cell holds
    outside: int  # cells whose printed number is outside of its 95 % interval
    difference: Effect  # ours − printed: its mean over cells, with an interval


def tables(readings: Iterable[Reading]) -> list[PrintedTable]:
    """The statements on the printed tables of which these readings are cells."""
    by_file: dict[str, list[tuple[Reading, float, float]]] = {}
    for reading in readings:
        claim = reading.claim
        value = reading.verdict.found
        if reading.ran and claim.table and isinstance(claim, Value) and claim.printed is not None:
            away = (nan if value is None else value) - float(claim.printed)
            by_file.setdefault(claim.table, []).append((reading, away, claim.allowed))
    return [
        PrintedTable(
            cells[0][0].claim.place,
            len(cells),
            max(allowed for *_, allowed in cells),
            sum(p is not None and p <= ERROR for p in (reading.verdict.unlike for reading, *_ in cells)),
            student([away for _, away, _ in cells]),
        )
        for cells in by_file.values()
    ]
