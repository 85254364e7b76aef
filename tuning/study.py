"""A study, the search for one strategy's parameters in one scenario; and a campaign, a suite's studies."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

from benchmarks.suite import labels, tuned
from benchmarks.suite.suite import PlannedRun, Suite
from benchmarks.suite.tuning_section import Tuning
from fl_core.metrics import FEDERATED, as_data
from fl_core.scenario import Scenario
from fl_core.schema import TO_TARGET, JudgedOn, Kind, Origin, Tag
from fl_core.strategies.hyperparameters import Space, Values
from fl_core.strategies.strategy import Strategy
from tuning.objective import Objective


@dataclass(frozen=True)
class Study:
    """The search for one strategy's parameters in one scenario."""

    suite: str
    scenario: str  # label
    strategy: str  # label
    tried_on: Scenario  # what trials are simulated on: validation data, and the budget of tuning
    space: Space
    objective: Objective
    seeds: tuple[int, ...]
    trials: int  # under these seeds
    seeds_again: tuple[int, ...]  # more seeds …
    repeated: int  # … for so many of the trials, the best
    sampler: str
    pruner: str
    first: tuple[tuple[Origin, Values], ...]  # what is tried first: where it comes from, and its values
    digest: str  # of the suite's own scenario and strategy, for users of the values

    @property
    def name(self) -> str:
        """The study's name in the storage."""
        return f"{self.suite} · {self.strategy} · {self.scenario}"

    @property
    def planned(self) -> int:
        """Trials and repetitions of trials."""
        return self.trials + self.repeated

    @property
    def simulations(self) -> int:
        """Seeds of all trials."""
        return self.trials * len(self.seeds) + self.repeated * len(self.seeds_again)

    @property
    def judged_on(self) -> JudgedOn:
        """Which data the objective looks at."""
        if self.objective.metric in FEDERATED:
            return JudgedOn.TRAINING
        held_out = getattr(self.tried_on.problem, "evaluate_on", "") == "validation"
        return JudgedOn.VALIDATION if held_out else JudgedOn.PROBLEM

    @property
    def budget(self) -> str:
        """Where each simulation ends, in words."""
        return self.tried_on.budget.label()

    def on(self, scenario: Scenario) -> Self:
        """The study with trials on another scenario, whose budget and target take the place of tuning's."""
        objective = replace(self.objective, target=scenario.target, budget=scenario.budget)
        return replace(self, tried_on=scenario, objective=objective)

    def strategy_with(self, values: Mapping[str, Any]) -> Strategy:
        """The strategy that a trial simulates."""
        return self.space.apply(values, self.tried_on)

    def about(self) -> dict[Tag, Any]:
        """Return the tags by which studies are searched and read."""
        objective = self.objective
        return {
            Tag.KIND: Kind.STUDY,
            Tag.STUDY: self.name,
            Tag.SCENARIO: self.scenario,
            Tag.STRATEGY: self.strategy,
            Tag.PROBLEM: labels.problem(self.tried_on.problem),
            Tag.OBJECTIVE: objective.kind,
            Tag.METRIC: objective.metric.name,
            Tag.METRICS: as_data([objective.metric]),
            Tag.DIRECTION: objective.direction,
            Tag.TRIALS: self.trials,
            Tag.SEEDS: self.seeds + self.seeds_again,
            Tag.BUDGET: self.budget,
            Tag.SAMPLER: self.sampler,
            Tag.PRUNER: self.pruner,
            Tag.SPACE: self.space.described(),
            Tag.JUDGED_ON: self.judged_on,
        }

    def definition(self) -> dict[str, Any]:
        """All that its trials must have in common, by the word for it."""
        objective = self.objective
        target = objective.target if objective.kind in TO_TARGET else None
        spec = {
            "space": self.space.described(),
            "objective": [objective.kind, objective.metric.name, objective.last, target],
            "seeds": self.seeds,
            **({"again": [self.repeated, *self.seeds_again]} if self.repeated else {}),
            "scenario or strategy": tuned.digest(self.tried_on, self.space.strategy, self.space.candidates),
            "evaluations": self.tried_on.evaluations,
            "sampler": self.sampler,
            "pruner": self.pruner,
        }
        return json.loads(json.dumps(spec))


@dataclass(frozen=True)
class Campaign:
    """All studies of a suite, and which of them serve other strategies too."""

    suite: Suite
    studies: tuple[Study, ...]
    reused: tuple[
        tuple[PlannedRun, str], ...
    ]  # a run of each strategy that takes over values, and from which label

    @property
    def spec(self) -> Tuning:
        """How it is tuned."""
        return self.suite.spec.tuning

    @property
    def trials(self) -> int:
        """Of all studies, repetitions included."""
        return sum(study.planned for study in self.studies)

    @property
    def simulations(self) -> int:
        """Of all trials."""
        return sum(study.simulations for study in self.studies)

    def check(self) -> None:
        """Raise if data are missing or damaged, or a problem cannot be built as described."""
        problems = {repr(study.tried_on.problem): study.tried_on.problem for study in self.studies}
        for problem in problems.values():
            for seed in self.studies[0].seeds + self.studies[0].seeds_again:
                problem.check(seed)
