"""The suites of a version: a workload is a scale, with held-out scenarios at a separate scale."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

from benchmarks import yaml_io
from benchmarks.suite import labels
from benchmarks.suite.overrides import Setting
from benchmarks.suite.suite import PlannedRun, Suite, load
from fl_core.schema import JOINT
from reports.leaderboard.rules import Rules

FINAL = "_finals"  # ends the name of the suite under which final runs are recorded
HELD_OUT = "_held_out"  # ends the name of a workload's scale with scenarios in which nothing is tuned
Place = tuple[str, str, str]  # problem, partition, timing


def place(run: PlannedRun) -> Place:
    """Return problem, partition and timing of a run, as named in the tables."""
    problem, partition = labels.problem(run.problem), labels.partition(run.problem)
    rest = [words for words in run.conditions if words not in (problem, partition)]
    return problem, partition, JOINT.join(rest)


@dataclass(frozen=True)
class Asked:
    """A requested suite with a design of tuning."""

    suite: str  # its name, or the path of its file
    settings: Sequence[str | Setting] = ()  # or texts as of --set
    scale: str | None = None
    leave_out: bool = False  # scenarios that a strategy refuses

    @cached_property
    def loaded(self) -> Suite:
        """The suite, without tuned values."""
        return load(self.suite, self.settings, self.scale, tuned=False, leave_out=self.leave_out)

    @property
    def finals(self) -> Self:
        """The suite under the name of the final runs."""
        return replace(self, settings=[*self.settings, f"name={self.loaded.spec.name}{FINAL}"])

    @property
    def held_out(self) -> Self | None:
        """The held-out scenarios of the workload; None where the suite has none."""
        scale = f"{self.loaded.scale}{HELD_OUT}"
        scales = yaml_io.read(self.loaded.source).get("scales") or {}
        return replace(self, scale=scale) if scale in scales else None


def suites(rules: Rules, *settings: str) -> list[Suite]:
    """Return the suites of all workloads of a version, held-out suites too, with settings as of --set."""
    asked = [Asked(rules.suite, settings, workload) for workload in rules.workloads]
    return [own.loaded for each in asked for own in (each, each.held_out) if own]
