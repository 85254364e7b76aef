"""The value of a trial: the mean over seeds of a finite number read off the learning curve.

Workers compute it when a run of a trial ends (`TrialRun.measures`); samplers and pruners see nothing else.

Fixed: the formulas. Stored values, also of the board's trials, would mix with others in one study.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import nan
from statistics import fmean
from typing import Literal

from fl_core.metrics import Metric, named
from fl_core.recorded_names import TO_TARGET, Clock, Name, Status, TrialMetric
from fl_core.recording.recorder import Record
from fl_core.scenario import Budget
from fl_core.time_to_target import first_meeting

DIVERGED_FACTOR = 10.0  # times the first model's loss: the value of a diverged seed, and the limit for all


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """An evaluation of a learning curve."""

    iteration: int
    updates: int
    time: float  # virtual
    value: float  # of the metric; NaN where it was not evaluated
    uploads: int = 0  # bytes so far
    worst: float | None = None  # of the metric, at the client where it is worst; None if not recorded


@dataclass
class Curve:
    """The learning curve for a seed."""

    points: list[CurvePoint] = field(default_factory=list)
    status: Status = Status.RUNNING

    @property
    def diverged(self) -> bool:
        """Whether model or loss became non-finite."""
        return self.status is Status.DIVERGED


def curve_of(record: Record, metric: str) -> Curve:
    """Return the learning curve of a run for a metric; NaN where the metric was not evaluated."""
    return Curve([curve_point(row, metric) for row in record.curve], record.status)


def curve_point(row: Mapping[str, float], metric: str) -> CurvePoint:
    """Return a row of a run's curve, reduced to the columns of an objective."""
    iteration, updates, uploads = (int(row[name]) for name in (Clock.ITERATION, Clock.UPDATES, Name.UPLOADS))
    worst = row.get(named(metric).worst_client.name)
    return CurvePoint(iteration, updates, row[Clock.TIME], row.get(metric, nan), uploads, worst)


@dataclass(frozen=True, slots=True)
class Objective:
    """Objective of a study: the rule for turning a learning curve into a number.

    `final` is the mean of the last evaluations; `auc` is the mean of the metric over the budget's clock, with
    the curve as a step function; `updates_to_target` and `time_to_target` are the clock when the target is
    first met.

    A seed that never meets the target counts (n+1) B, with budget B and n seeds, and a diverged one (n+1)² B:
    trials are ordered by diverged seeds, then by seeds that missed the target, then by the mean. For the
    other two objectives a diverged seed counts DIVERGED_FACTOR times the first model's value if lower is
    better; if higher is better it counts 0 for a share, and otherwise as much below the first value.
    """

    kind: str  # final, auc, updates_to_target or time_to_target
    metric: Metric
    last: int  # evaluations that `final` averages
    target: float | None
    budget: Budget
    seeds: int  # of a trial: n above
    easy: float | None = None  # a second target, only recorded: the leaderboard's easier one
    marks: int = 1  # successive evaluations whose mean has to meet a target

    @property
    def maximise(self) -> bool:
        """Whether higher values are better."""
        return bool(self.metric.higher) and self.kind not in TO_TARGET

    @property
    def direction(self) -> Literal["maximize", "minimize"]:
        """The direction of the objective, in Optuna's words."""
        return "maximize" if self.maximise else "minimize"

    @property
    def clock(self) -> Clock:
        """Return the clock for integrating `auc`."""
        return Clock.UPDATES if self.budget.updates else Clock.TIME

    def mean(self, curves: Sequence[Curve]) -> float:
        """The objective of a trial."""
        return fmean(map(self.of, curves))

    def of(self, curve: Curve) -> float:
        """Return the objective for a seed; always finite."""
        if self.kind in TO_TARGET:
            return self._to_target(curve)
        if curve.diverged:
            return self._worst(curve)
        if self.kind == "auc":
            return self._area(curve)
        return fmean(self.value(curve, point) for point in curve.points[-self.last :])

    def reached(self, curve: Curve) -> bool:
        """Return whether the target was met; True without a target."""
        return self.kind not in TO_TARGET or self._first(curve, self.target) is not None

    def measured(self, curve: Curve) -> dict[str, float]:
        """Return a leaderboard's measures of a curve, by the names of `TrialMetric`."""
        easy, hard = self._first(curve, self.easy), self._first(curve, self.target)
        last = curve.points[-1]
        end = hard or last
        measured = {
            TrialMetric.TIME_EASY: None if easy is None else easy.time,
            TrialMetric.TIME_HARD: None if hard is None else hard.time,
            TrialMetric.UPDATES: float(end.updates),
            TrialMetric.UPLOADS: float(end.uploads),
            TrialMetric.END: None if curve.diverged else last.value,
            TrialMetric.WORST_CLIENT: None if curve.diverged else last.worst,
        }
        return {name: value for name, value in measured.items() if value is not None}

    def value(self, curve: Curve, point: CurvePoint) -> float:
        """Return the metric at an evaluation, limited to the value of a diverged seed."""
        worst = self._worst(curve)
        return max(point.value, worst) if self.metric.higher else min(point.value, worst)

    def _worst(self, curve: Curve) -> float:
        """Return the value of a diverged seed, for objectives other than clocks."""
        first = curve.points[0].value
        if not self.metric.higher:
            return DIVERGED_FACTOR * first if first > 0 else first + DIVERGED_FACTOR * (abs(first) or 1.0)
        return 0.0 if self.metric.share else first - DIVERGED_FACTOR * (abs(first) or 1.0)

    def _area(self, curve: Curve) -> float:
        """Return the mean of the metric over the budget's clock."""
        at = [getattr(point, self.clock) for point in curve.points]
        if at[-1] <= at[0]:
            return self.value(curve, curve.points[-1])
        lengths = (end - begin for begin, end in pairwise(at))
        steps = zip(curve.points, lengths, strict=False)
        return sum(self.value(curve, point) * length for point, length in steps) / (at[-1] - at[0])

    def _first(self, curve: Curve, target: float | None) -> CurvePoint | None:
        """Return the first evaluation as good as the target, or None."""
        if target is None:
            return None
        values = [point.value for point in curve.points]
        first = first_meeting(values, target, self.metric.sign > 0, self.marks)
        return None if first is None else curve.points[first]

    def _to_target(self, curve: Curve) -> float:
        """Return the clock at the target, or the value of a seed without such a clock."""
        clock = TO_TARGET[self.kind]
        longest = float(getattr(self.budget, clock.budget))
        if curve.diverged:
            return (self.seeds + 1) ** 2 * longest
        first = self._first(curve, self.target)
        return (self.seeds + 1) * longest if first is None else float(getattr(first, clock))
