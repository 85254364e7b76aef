"""The seeds of a strategy as one line and a band around it, against any clock."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from fl_core.schema import Status
from reports.records.cells import Cell
from reports.records.runs import RecordedRun
from reports.records.steps import Array, common_grid, value_at


@dataclass(frozen=True, slots=True, eq=False)
class CurveBand:
    """One strategy's runs on a common grid of one clock; diverged runs are separate."""

    cell: Cell
    grid: Array
    mean: Array
    low: Array
    high: Array
    n: int  # runs in it
    lost: tuple[tuple[Array, Array], ...]  # clock and values of every diverged run

    def frame(self, **labels: str) -> pd.DataFrame:
        """Return one row per point, after the labels."""
        columns = {"at": self.grid, "mean": self.mean, "min": self.low, "max": self.high, "seeds": self.n}
        return pd.DataFrame({**labels, **columns})


def band(cell: Cell, metric: str, clock: str) -> CurveBand:
    """Return mean and range over the seeds that ended; a run that ended keeps its last value."""
    diverged = [run for run in cell.having(Status.DIVERGED) if metric in run.files.curve]
    lost = tuple(_curve(run, metric, clock) for run in diverged)
    return replace(over_scenarios([cell], metric, clock), lost=lost)


def over_scenarios(cells: Sequence[Cell], metric: str, clock: str) -> CurveBand:
    """Return a strategy in several scenarios: each seed's mean over them, then mean and range over seeds.

    Over the seeds that ended in all of the scenarios.
    """
    by_seed = [
        {run.seed: _curve(run, metric, clock) for run in cell.finite if metric in run.files.curve}
        for cell in cells
    ]
    seeds = sorted(set.intersection(*(set(curves) for curves in by_seed)))
    grid = _grid(cells, clock, [curves[seed][0] for curves in by_seed for seed in seeds])
    if not seeds:
        return CurveBand(cells[0], grid, grid, grid, grid, 0, ())
    means = [np.mean([value_at(grid, *curves[seed]) for curves in by_seed], axis=0) for seed in seeds]
    return CurveBand(cells[0], grid, np.mean(means, 0), np.min(means, 0), np.max(means, 0), len(seeds), ())


def _grid(cells: Sequence[Cell], clock: str, marks: Sequence[Array]) -> Array:
    """Return the marks at which curves can be compared.

    Along its budget's clock a run is evaluated at every mark at which its model is a new one: all marks.
    """
    own = all(run.budget_clock == clock for cell in cells for run in cell.finite)
    return np.unique(np.concatenate(marks)) if own and marks else common_grid(marks)


def _curve(run: RecordedRun, metric: str, clock: str) -> tuple[Array, Array]:
    curve = run.files.curve
    marks, values = curve[clock].astype(float), curve[metric].astype(float)
    if not run.status.finite:
        return marks, values
    there = np.isfinite(values)  # at the marks at which it was evaluated
    return marks[there], values[there]
