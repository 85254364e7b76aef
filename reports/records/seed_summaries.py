"""A strategy in a scenario, summarised over seeds: means, deviations, medians of times, mean curves.

`RecordedSuite.scenarios` makes the cells; all tables and figures of the page take their numbers from them.

Fixed: the summaries. Report pages, `asyncfl compare` and `asyncfl.figures` show the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf, isnan, nan

import numpy as np

from benchmarks.mlflow_store.run_result import RunResult
from fl_core.recorded_names import Clock, Status
from reports.numbers import Measure

Array = np.ndarray


def value_at(grid: Array, clock: Array, values: Array) -> Array:
    """Return the step function through (clock, values) at every point of `grid`; NaN before the first step.

    Where several evaluations share one clock value, the last one counts.
    """
    if not len(values):
        return np.full(len(grid), np.nan)
    last = np.searchsorted(clock, grid, side="right") - 1
    step_values = np.asarray(values, float)[last]
    step_values[last < 0] = np.nan
    return step_values


def common_grid(clocks: Sequence[Array]) -> Array:
    """Return the grid for comparing curves: at its k-th point, each curve was evaluated k times or has ended.

    For curves with equal clocks, the grid is the clock.
    """
    longest = max((len(clock) for clock in clocks), default=0)
    padded = [
        clock if len(clock) == longest else np.append(clock, [clock[-1]] * (longest - len(clock)))
        for clock in clocks
        if len(clock)
    ]
    return np.unique(np.max(padded, axis=0).astype(float) if padded else np.zeros(0))


@dataclass(frozen=True, slots=True)
class Spread:
    """Mean and sample standard deviation over seeds; the latter is NaN for fewer than two."""

    mean: float
    std: float
    n: int

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        """Return mean and deviation of the values, leaving out NaN."""
        finite = [value for value in values if not isnan(value)]
        mean = float(np.mean(finite)) if finite else nan
        return cls(mean, float(np.std(finite, ddof=1)) if len(finite) > 1 else nan, len(finite))


@dataclass(frozen=True, slots=True)
class Reach:
    """Median time to a target over seeds, counting never as ∞."""

    median: float  # NaN if no run ended
    reached: int  # seeds that met the target
    of: int  # seeds with an ended run

    @classmethod
    def of_times(cls, times: Sequence[float]) -> Reach:
        """Return the median of the times of the seeds, ∞ for a target never reached."""
        return cls(float(np.median(times)) if times else nan, sum(time < inf for time in times), len(times))


@dataclass(frozen=True, eq=False)
class Cell:
    """Runs of a strategy in a scenario, with summaries over seeds.

    Final values are taken from runs that ended or stalled: their model would not change any more. Diverged
    runs have no final value, and are counted; a target that such a run missed counts as never met. Failed and
    unfinished runs count for neither.
    """

    strategy: str
    index: int  # of the strategy in the suite: its colour, dash and marker
    runs: tuple[RunResult, ...]
    metrics: tuple[Measure, ...] = ()  # of the scenario
    target: float | None = None

    @cached_property
    def finite(self) -> tuple[RunResult, ...]:
        """Runs with a final model, including stalled runs."""
        return tuple(run for run in self.runs if run.status.finite)

    @cached_property
    def ended(self) -> tuple[RunResult, ...]:
        """Runs whose outcome is known."""
        return tuple(run for run in self.runs if run.status.terminated)

    def having(self, status: Status) -> tuple[RunResult, ...]:
        """Return the runs of a status."""
        return self._by_status.get(status, ())

    @cached_property
    def _by_status(self) -> dict[Status, tuple[RunResult, ...]]:
        statuses = {run.status for run in self.runs}
        return {status: tuple(run for run in self.runs if run.status is status) for status in statuses}

    @property
    def diverged(self) -> int:
        """Number of diverged seeds."""
        return len(self.having(Status.DIVERGED))

    @property
    def stalled(self) -> int:
        """Number of stalled seeds."""
        return len(self.having(Status.STALLED))

    @property
    def seeds(self) -> str:
        """Number of runs and of exceptions, as text: '3', or '3 (1 diverged)'."""
        counts = {
            "diverged": self.diverged,
            "stalled": self.stalled,
            "unfinished": sum(len(runs) for status, runs in self._by_status.items() if status.unfinished),
            "unreadable": len(self.having(Status.UNREADABLE)),
        }
        exceptions = ", ".join(f"{n} {state}" for state, n in counts.items() if n)
        return f"{len(self.runs)} ({exceptions})" if exceptions else str(len(self.runs))

    @cached_property
    def final(self) -> dict[str, Spread]:
        """Final values by metric."""
        return {
            metric.name: Spread.of([run.final(metric.name) for run in self.finite]) for metric in self.metrics
        }

    def times(self, clock: str) -> list[float]:
        """Return the time to the scenario's target of each ended run."""
        if clock not in self._times:
            self._times[clock] = [run.time_to_target(clock, self.target) for run in self.ended]
        return self._times[clock]

    @cached_property
    def _times(self) -> dict[str, list[float]]:
        return {}  # clock → result of `times`, as a cache

    def reach(self, clock: str) -> Reach:
        """Return the median time of the ended runs to the scenario's target."""
        return Reach.of_times(self.times(clock))

    @cached_property
    def misses_again(self) -> bool:
        """True if most seeds with a met target missed the target at a later evaluation."""
        if self.target is None:
            return False
        missed = sum(run.misses_again(self.target) for run in self.runs)
        return 2 * missed > self.reach(Clock.UPDATES).reached

    @cached_property
    def staleness(self) -> tuple[float, float]:
        """Mean staleness, over updates and then over seeds, and the greatest; NaN without an update."""
        met = [run.files.staleness for run in self.ended]
        met = [occurred for occurred in met if occurred.size]
        if not met:
            return nan, nan
        means = [np.average(values, weights=updates) for values, updates in met]
        return float(np.mean(means)), float(max(values[-1] for values, _ in met))


@dataclass(frozen=True, slots=True, eq=False)
class CurveBand:
    """Runs of a strategy on a common grid of a clock; diverged runs are separate."""

    cell: Cell
    grid: Array
    mean: Array
    low: Array
    high: Array
    n: int  # seeds of the mean
    lost: tuple[tuple[Array, Array], ...]  # clock and values of each diverged run


def band(cell: Cell, metric: str, clock: str) -> CurveBand:
    """Return mean and range over ended seeds; an ended run keeps the last value."""
    diverged = [run for run in cell.having(Status.DIVERGED) if metric in run.files.curve]
    lost = tuple(_curve(run, metric, clock) for run in diverged)
    return replace(over_scenarios([cell], metric, clock), lost=lost)


def over_scenarios(cells: Sequence[Cell], metric: str, clock: str) -> CurveBand:
    """Return a strategy's curve over several scenarios: mean over scenarios by seed, then mean and range.

    Only seeds that ended in all scenarios count.
    """
    by_seed = [
        {run.seed: _curve(run, metric, clock) for run in cell.finite if metric in run.files.curve}
        for cell in cells
    ]
    seeds = sorted(set.intersection(*(set(curves) for curves in by_seed)))
    grid = _common_marks(cells, clock, [curves[seed][0] for curves in by_seed for seed in seeds])
    if not seeds:
        return CurveBand(cells[0], grid, grid, grid, grid, 0, ())
    values = [[value_at(grid, *curves[seed]) for curves in by_seed] for seed in seeds]
    means = [of_seed[0] if len(of_seed) == 1 else np.mean(of_seed, axis=0) for of_seed in values]
    return CurveBand(cells[0], grid, np.mean(means, 0), np.min(means, 0), np.max(means, 0), len(seeds), ())


def _common_marks(cells: Sequence[Cell], clock: str, marks: Sequence[Array]) -> Array:
    """Return the grid for comparing curves: all marks of all runs on the clock of their budget.

    On this clock all runs have the same marks, except for marks without a new model. Other clocks differ from
    run to run, and need `common_grid`.
    """
    common = all(run.budget_clock == clock for cell in cells for run in cell.finite[:1])  # others are alike
    return np.unique(np.concatenate(marks)) if common and marks else common_grid(marks)


def _curve(run: RunResult, metric: str, clock: str) -> tuple[Array, Array]:
    """Return clock and values of a run's metric; of an ended run, only finite values."""
    curve = run.files.curve
    marks, values = np.asarray(curve[clock], float), np.asarray(curve[metric], float)
    finite = np.isfinite(values)
    if finite.all() or not run.status.finite:
        return marks, values
    return marks[finite], values[finite]  # a training loss may be missing before the last row
