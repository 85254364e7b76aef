"""Which run of which shipped suite stands for what, and how much it computes."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.errors import UserError
from benchmarks.suite.suite import PlannedRun, load


@dataclass(frozen=True)
class RunCase:
    """The first run of a suite with this strategy and, where the suite has several, this problem."""

    what: str
    suite: str
    strategy: str
    problem: str | None = None
    settings: tuple[str, ...] = ()  # KEY=VALUE, as of `asyncfl run --set`

    def planned(self) -> PlannedRun:
        """The run; UserError if the suite has none."""
        for run in load(self.suite, self.settings).runs():
            experiment = run.experiment
            problem = experiment.scenario.problem.name
            if experiment.strategy.name == self.strategy and self.problem in (None, problem):
                return run
        raise UserError(f"{self.suite}: no run of {self.strategy}")


@dataclass(frozen=True)
class Amount:
    """How much a run computes: what the same work as a script consists of."""

    updates: int
    steps: int  # of an update
    batch: int
    tests: int  # evaluations on test data
    trainings: int  # of these with the losses of all clients


CASES = (
    RunCase("logistic", "ace", "ace"),
    RunCase("logistic, 10 steps", "fraboni", "async_fedavg"),
    RunCase("CNN", "fraboni_weights_cnn", "async_fedavg"),
    RunCase("LSTM", "fraboni_shakespeare", "async_fedavg"),
    RunCase("text, linear", "ace_newsgroups", "ace"),
    RunCase("quadratics", "ci", "async_fedavg", "quadratic"),
)
