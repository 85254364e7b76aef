"""Scenarios that form a grid of heterogeneity and delay."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import isnan, nan

from benchmarks.tracking.colours import natural
from reports.records.measures import Measure
from reports.records.records import Cell, RecordedScenario
from reports.records.summary import Row


@dataclass(frozen=True, slots=True, eq=False)
class Grid:
    """The scenarios of one problem, by partition (down) and delay (across)."""

    problem: str
    measure: Measure
    down: tuple[str, ...]
    across: tuple[str, ...]
    means: Mapping[str, Mapping[tuple[str, str], Row]]  # by strategy and place
    cells: tuple[Cell, ...]  # one per strategy

    def value(self, strategy: str, place: tuple[str, str]) -> float:
        """Mean final value over seeds; NaN where a seed diverged or there was no run."""
        row = self.means[strategy].get(place)
        return nan if row is None or row.diverged else row.final[self.measure.name].mean

    @property
    def range(self) -> tuple[float, float]:
        """The least and the greatest value of all strategies: they share one scale of colours."""
        every = [
            value
            for strategy in self.means
            for down in self.down
            for across in self.across
            if not isnan(value := self.value(strategy, (down, across)))
        ]
        return (min(every), max(every)) if every else (0.0, 0.0)


def place(scenario: RecordedScenario) -> tuple[str, str]:
    """Partition, and the rest of the label: durations, availability, arrangement."""
    partition = scenario.runs[0].partition
    said = f"{scenario.problem} · {partition}"
    if partition and scenario.label.startswith(f"{said} · "):
        return partition, scenario.label.removeprefix(f"{said} · ")
    return partition, scenario.runs[0].timing


def grids(scenarios: Iterable[tuple[RecordedScenario, list[Row]]]) -> list[Grid]:
    """One per problem and metric whose scenarios are all combinations of several partitions and delays."""
    by_problem: dict[tuple[str, Measure], list[tuple[RecordedScenario, list[Row]]]] = {}
    for scenario, rows in scenarios:
        by_problem.setdefault((scenario.problem, scenario.columns[0]), []).append((scenario, rows))
    found = []
    for (problem, measure), group in by_problem.items():
        places = {place(scenario): rows for scenario, rows in group}
        down = tuple(sorted({one for one, _ in places}, key=natural))
        across = tuple(sorted({one for _, one in places}, key=natural))
        whole = len(places) == len(group) == len(down) * len(across)
        if not whole or len(down) < 2 or len(across) < 2 or not all(down):
            continue
        means: dict[str, dict[tuple[str, str], Row]] = {}
        cells: dict[str, Cell] = {}
        for at, rows in places.items():
            for row in rows:
                means.setdefault(row.strategy, {})[at] = row
                old = cells.get(row.strategy)
                cells[row.strategy] = Cell(
                    row.strategy, row.cell.index, (*(old.runs if old else ()), *row.cell.runs)
                )
        ordered = tuple(sorted(cells.values(), key=lambda cell: cell.index))
        found.append(Grid(problem, measure, down, across, means, ordered))
    return found
