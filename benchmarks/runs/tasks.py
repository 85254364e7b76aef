"""What there is to compute for a suite: its runs, and the centralised baseline of each of its problems."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from benchmarks.suite.suite import PlannedRun
from fl_core.keys import key
from fl_core.metrics import as_data
from fl_core.problems.problem import Problem
from fl_core.schema import Kind, Tag
from fl_core.sources import named

# Of no consequence for one model trained on all data together: the same baseline serves them all.
NOT_IN_POOLED_TRAINING = {"partition", "target"}


@dataclass(frozen=True, slots=True)
class RunTask:
    """Simulate one run."""

    kind: ClassVar = Kind.RUN
    run: PlannedRun

    @property
    def suite(self) -> str:
        """The name of the suite."""
        return self.run.suite

    @property
    def key(self) -> str:
        """The run's identity."""
        return self.run.key

    @property
    def name(self) -> str:
        """A readable name."""
        return f"{self.run.strategy} · {self.run.scenario} · seed {self.seed}"

    @property
    def problem(self) -> Problem:
        """What is learnt."""
        return self.run.experiment.scenario.problem

    @property
    def seed(self) -> int:
        """The seed of the world."""
        return self.run.experiment.seed

    def description(self) -> dict[str, Any]:
        """The whole run as plain data."""
        return self.run.experiment.description()

    def about(self) -> dict[Tag, Any]:
        """The tags by which runs are searched and grouped."""
        run, problem = self.run, self.problem
        return {
            Tag.SCENARIO: run.scenario,
            Tag.PROBLEM: run.problem,
            Tag.PARTITION: run.partition,
            Tag.TIMING: run.timing,
            Tag.STRATEGY: run.strategy,
            Tag.PAPER: run.paper,
            Tag.SEED: self.seed,
            Tag.METRIC: problem.metric,
            Tag.HIGHER_IS_BETTER: problem.ranking.higher,
            Tag.METRICS: as_data(problem.recorded()),
            Tag.TARGET: problem.target,
            Tag.SHOW: list(run.show),
            **_own_code(self.description()),
            Tag.EVALUATE: str(run.evaluate),
        }


@dataclass(frozen=True, slots=True)
class PooledTask:
    """Train one model on all clients' data together: the upper line of a report."""

    kind: ClassVar = Kind.POOLED
    suite: str
    label: str  # of the problem
    problem: Problem
    seed: int

    @property
    def key(self) -> str:
        """The baseline's identity: a hash of all that it depends on."""
        identity = self.problem.identity().items()
        problem = {name: value for name, value in identity if name not in NOT_IN_POOLED_TRAINING}
        return key([self.kind, problem, self.seed])

    @property
    def name(self) -> str:
        """A readable name."""
        return f"centralised baseline · {self.label} · seed {self.seed}"

    def description(self) -> dict[str, Any]:
        """Problem and seed as plain data."""
        return {"problem": self.problem.model_dump(mode="json"), "seed": self.seed}

    def about(self) -> dict[Tag, Any]:
        """The tags by which baselines are searched."""
        return {Tag.PROBLEM: self.label, Tag.SEED: self.seed, **_own_code(self.description())}


def _own_code(description: dict[str, Any]) -> dict[Tag, Any]:
    code = named(description)
    return {Tag.CODE: code} if code else {}


Task = RunTask | PooledTask


def tasks(runs: Sequence[PlannedRun]) -> list[Task]:
    """All tasks of a suite, seed by seed: comparisons grow evenly, and consecutive runs share a world."""
    baselines = {task.key: task for task in _baselines(runs)}
    simulated = [RunTask(run) for run in runs]
    places = _places(task.problem for task in simulated)
    seeds = _places(task.seed for task in simulated)
    simulated.sort(key=lambda task: (seeds[repr(task.seed)], places[repr(task.problem)]))
    return [*baselines.values(), *simulated]


def _baselines(runs: Iterable[PlannedRun]) -> Iterable[PooledTask]:
    for run in runs:
        problem = run.experiment.scenario.problem
        if problem.has_baseline:  # a user's own problem may have none
            yield PooledTask(run.suite, run.problem, problem, run.experiment.seed)


def _places(items: Iterable[object]) -> dict[str, int]:
    """Where each item came first."""
    return {text: place for place, text in enumerate(dict.fromkeys(map(repr, items)))}
