"""Scenario × strategy: results over seeds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, nan

import numpy as np
import pandas as pd

from fl_core.schema import TO_TARGET, Clock, Status
from reports.records.records import Cell, RecordedRun, RecordedScenario
from reports.records.steps import first_reach


@dataclass(frozen=True, slots=True)
class Spread:
    """Mean and sample standard deviation over seeds; the latter is NaN for fewer than two."""

    mean: float
    std: float
    n: int

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        """Return mean and deviation of the values that are present."""
        known = [value for value in values if not np.isnan(value)]
        mean = float(np.mean(known)) if known else nan
        return cls(mean, float(np.std(known, ddof=1)) if len(known) > 1 else nan, len(known))


@dataclass(frozen=True, slots=True)
class Reach:
    """When a target was reached: the median over seeds, in which never is ∞."""

    median: float  # NaN if no run ended
    reached: int  # seeds that did
    of: int  # seeds that could

    @classmethod
    def of_times(cls, times: Sequence[float]) -> Reach:
        """Return the median of one time per seed, ∞ where the target was never reached."""
        return cls(float(np.median(times)) if times else nan, sum(time < inf for time in times), len(times))


@dataclass(frozen=True, slots=True, eq=False)
class Summary:
    """One strategy in one scenario.

    Final values are those of the runs that ended, and of those that stalled: their model would
    not change any more. A run that diverged is counted apart; a target that it had not met until then
    counts as never met. Runs that failed or are still running are neither.
    """

    cell: Cell
    final: dict[str, Spread]  # by metric
    updates_to_target: Reach
    time_to_target: Reach
    mean_staleness: float  # over updates, then over seeds
    max_staleness: float  # over all

    @property
    def strategy(self) -> str:
        """The strategy's label."""
        return self.cell.strategy

    @property
    def diverged(self) -> int:
        """How many seeds diverged."""
        return len(self.cell.having(Status.DIVERGED))

    @property
    def stalled(self) -> int:
        """How many seeds stalled."""
        return len(self.cell.having(Status.STALLED))

    @property
    def unfinished(self) -> int:
        """How many seeds failed or are still running."""
        return sum(run.status.unfinished for run in self.cell.runs)

    @property
    def unreadable(self) -> int:
        """How many seeds ended, but their curve is gone or damaged."""
        return len(self.cell.having(Status.UNREADABLE))


def summarise(scenario: RecordedScenario) -> list[Summary]:
    """Return the strategies of a scenario, best first; those with diverged runs follow those without."""
    rows = [summarise_cell(cell, scenario) for cell in scenario.cells]
    ranks = scenario.columns[0]
    sign = -1 if ranks.higher else 1

    def rank(row: Summary) -> tuple[bool, bool, float]:
        mean = row.final[ranks.name].mean
        return bool(row.diverged), bool(np.isnan(mean)), sign * mean

    return sorted(rows, key=rank)


def summarise_cell(cell: Cell, scenario: RecordedScenario) -> Summary:
    """Return one strategy in one scenario."""
    ended = [run for run in cell.runs if run.status.terminated]
    late = {
        clock: [time_to_target(run, clock, scenario.target) for run in ended] for clock in TO_TARGET.values()
    }
    met = [run.files.staleness for run in ended if run.files.staleness.sum()]
    return Summary(
        cell,
        {
            metric.name: Spread.of([run.final(metric.name) for run in cell.finite])
            for metric in (*scenario.columns, *scenario.shown)
        },
        Reach.of_times(late[Clock.UPDATES]),
        Reach.of_times(late[Clock.TIME]),
        float(np.mean([np.average(counts.index, weights=counts) for counts in met])) if met else nan,
        float(max(counts.index[-1] for counts in met)) if met else nan,
    )


def time_to_target(run: RecordedRun, clock: str, target: float | None) -> float:
    """Return the clock when a run's metric first reached the target; ∞ if never, or without a target.

    NaN where the clock was not recorded.
    """
    curve = run.files.curve
    if target is None or run.metric not in curve:
        return inf
    if clock not in curve:
        return nan  # recorded before there was this clock
    return first_reach(
        curve[clock].to_numpy(), curve[run.metric].to_numpy(), target, higher=run.higher_is_better
    )


def best(rows: Sequence[Summary], metric: str, higher: bool | None) -> float:
    """Return the best mean of a metric among strategies without diverged runs; NaN if there is none."""
    means = [row.final[metric].mean for row in rows if not row.diverged]
    known = [mean for mean in means if not np.isnan(mean)]
    if not known or higher is None:
        return nan
    return max(known) if higher else min(known)


def frame(scenarios: Sequence[tuple[RecordedScenario, Sequence[Summary]]]) -> pd.DataFrame:
    """Return all rows as a table for reading by other programs; ∞ is written as inf."""
    return pd.DataFrame([_record(scenario, row) for scenario, rows in scenarios for row in rows])


def _record(scenario: RecordedScenario, row: Summary) -> dict[str, object]:
    record: dict[str, object] = {
        "scenario": scenario.label,
        "strategy": row.strategy,
        "seeds": len(row.cell.runs),
        "done": len(row.cell.having(Status.DONE)),
        "diverged": row.diverged,
        "stalled": row.stalled,
    }
    for name, spread in row.final.items():
        record |= {f"{name} mean": spread.mean, f"{name} std": spread.std}
    if scenario.target is not None:
        record |= {
            "target": scenario.target,
            "reached": row.updates_to_target.reached,
            "updates to target": row.updates_to_target.median,
            "time to target": row.time_to_target.median,
        }
    return record | {"staleness mean": row.mean_staleness, "staleness max": row.max_staleness}
