"""A trial under a single seed: an ordinary run with a study and an objective.

`Study.runs` makes them. They are computed and recorded as any run of a suite, so that trials can be resumed
and reported.

Fixed: `key` and `tags`, by which recorded trials are found.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from math import isfinite, log10
from typing import Any, ClassVar

from benchmarks.mlflow_store import views
from benchmarks.suite.suite import PlannedRun
from fl_core.keys import key
from fl_core.recorded_names import Kind, Origin, Status, Tag, TrialMetric
from fl_core.recording.recorder import Record
from tuning.objective import Objective, curve_of


@dataclass(frozen=True, kw_only=True)
class TrialRun(PlannedRun):
    """A trial under a single seed."""

    kind: ClassVar = Kind.TRIAL
    curve_only: ClassVar = True
    study: str  # name
    identity: str  # of the study: a hash of all that its trials have in common
    number: int  # of the trial
    origin: Origin
    values: Mapping[str, Any]  # of the searched parameters
    logarithmic: tuple[str, ...] = ()  # parameters that are searched on a logarithmic scale
    objective: Objective

    @cached_property
    def key(self) -> str:
        """Key of the run: a hash of study, number and experiment; another form would lose recorded trials."""
        return key([self.kind, self.identity, self.number, self.experiment.identity()])

    @property
    def name(self) -> str:
        """A readable name."""
        return f"{self.strategy} · trial {self.number} · seed {self.seed}"

    @property
    def place(self) -> tuple[str, str, str, str]:
        """Scenario, strategy, number of the trial, seed."""
        return self.scenario, self.strategy, str(self.number), str(self.seed)

    @property
    def parameters(self) -> Mapping[str, Any]:
        """The values of the searched parameters."""
        return self.values

    def tags(self) -> dict[Tag, Any]:
        """Return the tags for searching and grouping trials."""
        return {
            **super().tags(),
            Tag.METRIC: self.objective.metric.name,
            Tag.STUDY: self.study,
            Tag.IDENTITY: self.identity,
            Tag.TRIAL: self.number,
            Tag.ORIGIN: self.origin,
        }

    def measures(self, record: Record) -> dict[str, float]:
        """Return the objective and a leaderboard's measures of the curve.

        Raises:
            ValueError: The metric of the first model is not finite, from which a diverged seed's value is
                made.
        """
        objective = self.objective
        logarithms = {views.log10(name): log10(self.values[name]) for name in self.logarithmic}
        if record.status is Status.PRUNED:
            return logarithms
        curve = curve_of(record, objective.metric.name)
        if not isfinite(curve.points[0].value):
            raise ValueError(f"{objective.metric.name} of the first model is not finite")
        return logarithms | {
            TrialMetric.OBJECTIVE: objective.of(curve),
            TrialMetric.REACHED: float(objective.reached(curve)),
            **objective.measured(curve),
        }
