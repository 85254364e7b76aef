"""Scenarios that form a grid of heterogeneity and delay."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import product
from math import isnan, nan

from fl_core.text import natural
from reports.records.measures import Measure
from reports.records.records import Cell, RecordedScenario
from reports.records.summary import Row


@dataclass(frozen=True, slots=True, eq=False)
class Grid:
    """The scenarios of one problem, by partition and delay."""

    problem: str
    measure: Measure
    partitions: tuple[str, ...]
    delays: tuple[str, ...]
    means: Mapping[str, Mapping[tuple[str, str], Row]]  # by strategy and place
    cells: tuple[Cell, ...]  # one per strategy

    @property
    def places(self) -> list[tuple[str, str]]:
        """All of them."""
        return list(product(self.partitions, self.delays))

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
            for place in self.places
            if not isnan(value := self.value(strategy, place))
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
        partitions = tuple(sorted({one for one, _ in places}, key=natural))
        delays = tuple(sorted({one for _, one in places}, key=natural))
        whole = len(places) == len(group) == len(partitions) * len(delays)
        if not whole or len(partitions) < 2 or len(delays) < 2 or not all(partitions):
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
        found.append(Grid(problem, measure, partitions, delays, means, ordered))
    return found
