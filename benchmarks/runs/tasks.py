"""What there is to compute for a suite: its runs, and the centralised baseline of each of its problems."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from benchmarks.suite import labels
from benchmarks.suite.suite import PlannedRun, own_code
from fl_core.keys import key
from fl_core.problems.problem import Problem
from fl_core.schema import Kind, Tag

# Of no consequence for one model trained on all data together: the same baseline serves them all.
NOT_IN_POOLED_TRAINING = {"partition", "target"}


@dataclass(frozen=True, slots=True)
class PooledTask:
    """Train one model on all clients' data together: the upper line of a report."""

    kind: ClassVar = Kind.POOLED
    suite: str
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
        return f"centralised baseline · {labels.problem(self.problem)} · seed {self.seed}"

    def description(self) -> dict[str, Any]:
        """Problem and seed as plain data."""
        return {"problem": self.problem.model_dump(mode="json"), "seed": self.seed}

    def about(self) -> dict[Tag, Any]:
        """The tags by which baselines are searched."""
        return {
            Tag.PROBLEM: labels.problem(self.problem),
            Tag.SEED: self.seed,
            **own_code(self.description()),
        }


Task = PlannedRun | PooledTask


def tasks(runs: Sequence[PlannedRun]) -> list[Task]:
    """All tasks of a suite, seed by seed: comparisons grow evenly, and consecutive runs share a world."""
    # A user's own problem may have no baseline.
    baselines = [PooledTask(run.suite, run.problem, run.seed) for run in runs if run.problem.has_baseline]
    places = _places(run.problem for run in runs)
    seeds = _places(run.seed for run in runs)
    simulated = sorted(runs, key=lambda run: (seeds[repr(run.seed)], places[repr(run.problem)]))
    return [*{task.key: task for task in baselines}.values(), *simulated]


def _places(items: Iterable[object]) -> dict[str, int]:
    """Where each item came first."""
    return {text: place for place, text in enumerate(dict.fromkeys(map(repr, items)))}
