"""Study: the search for a strategy's parameters in a scenario. Campaign: a suite's studies.

`tuning/plan.py` makes them. They are plans: trials and results are in the storage and in MLflow, found again
by `Study.identity`, a hash of `Study.common`.

Fixed: `name` and `definition`, names and forms included. Any change starts all studies from the beginning.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from benchmarks.suite import labels, tuned
from benchmarks.suite.fields import Tuning
from benchmarks.suite.suite import PlannedRun, Suite
from fl_core.experiment import Experiment
from fl_core.keys import digest
from fl_core.metrics import FEDERATED, TRAINING, as_data
from fl_core.recorded_names import CAMPAIGN, TO_TARGET, JudgedOn, Kind, Origin, Tag
from fl_core.scenario import Scenario
from fl_core.strategies.hyperparameters import Space, Values
from fl_core.user_code import digests, named
from tuning.objective import Objective
from tuning.trial import TrialRun

JUDGED_ON = {"validation": JudgedOn.VALIDATION, "first_half": JudgedOn.HALF, "second_half": JudgedOn.HALF}
PRUNERS_BY_EVALUATION, PRUNERS_BY_SEED = ("median", "hyperband"), ("wilcoxon",)


@dataclass(frozen=True)
class Study:
    """The search for a strategy's parameters in a scenario."""

    suite: str  # name, or that of its pilot
    scenario: str  # label
    strategy: str  # label
    tried_on: Scenario  # of the trials: with validation data and the budget of tuning
    space: Space
    objective: Objective
    seeds: tuple[int, ...]
    trials: int  # each under all `seeds`
    seeds_again: tuple[int, ...]  # additional seeds …
    repeated: int  # … of this number of best trials
    sampler: str
    pruner: str
    first: tuple[tuple[Origin, Values], ...]  # points tried before the sampler draws: `first_points`
    digest: str  # of the suite's own scenario and strategy: tuned values are used only where it is the same
    conditions: tuple[str, ...] = ()  # the parts of the scenario's label

    @property
    def name(self) -> str:
        """The study's name in the storage."""
        return f"{self.suite} · {self.strategy} · {self.scenario}"

    @property
    def planned(self) -> int:
        """Number of trials, repetitions under more seeds included."""
        return self.trials + self.repeated

    @property
    def simulations(self) -> int:
        """Number of runs: seeds of all trials, repetitions included."""
        return self.trials * len(self.seeds) + self.repeated * len(self.seeds_again)

    @property
    def judged_on(self) -> JudgedOn:
        """Return the data for evaluating the objective."""
        if self.objective.metric in FEDERATED:
            return JudgedOn.TRAINING
        judged_on = getattr(self.tried_on.problem, "evaluate_on", "")
        return JUDGED_ON.get(judged_on, JudgedOn.PROBLEM)

    @property
    def budget(self) -> str:
        """Budget of each simulation, in words."""
        return self.tried_on.budget.label()

    @property
    def prunable(self) -> bool:
        """Whether a pruner may stop runs early."""
        return self.pruner in PRUNERS_BY_EVALUATION

    def runs(self, number: int, values: Values, origin: Origin, seeds: Sequence[int]) -> list[TrialRun]:
        """Return the runs of a trial, by seed."""
        strategy = self.space.apply(values, self.tried_on)
        first = TrialRun(
            f"{self.suite}{CAMPAIGN}",
            Experiment(scenario=self.tried_on, strategy=strategy),
            self.scenario,
            self.strategy,
            conditions=self.conditions,
            evaluate="clients" if self.objective.metric.name in TRAINING else "test",
            execution="auto",
            prunable=self.prunable,
            study=self.name,
            identity=self.identity,
            number=number,
            origin=origin,
            values=dict(values),
            logarithmic=tuple(
                name for name, spec in self.space.described().items() if spec.get("log") and values.get(name)
            ),
            objective=self.objective,
        )
        return [
            replace(first, experiment=first.experiment.model_copy(update={"seed": seed})) for seed in seeds
        ]

    def tags(self) -> dict[Tag, Any]:
        """Return the tags for searching and reading studies."""
        objective = self.objective
        return {
            Tag.KIND: Kind.STUDY,
            Tag.STUDY: self.name,
            Tag.SCENARIO: self.scenario,
            Tag.CONDITIONS: json.dumps(self.conditions, ensure_ascii=False),
            Tag.STRATEGY: self.strategy,
            Tag.PROBLEM: labels.problem(self.tried_on.problem),
            Tag.OBJECTIVE: objective.kind,
            Tag.METRIC: objective.metric.name,
            Tag.METRICS: as_data([objective.metric]),
            Tag.DIRECTION: objective.direction,
            Tag.TRIALS: self.trials,
            Tag.SEEDS: self.seeds,
            Tag.BUDGET: self.budget,
            Tag.SAMPLER: self.sampler,
            Tag.PRUNER: self.pruner,
            Tag.SPACE: self.space.described(),
            Tag.JUDGED_ON: self.judged_on,
        }

    @cached_property
    def common(self) -> dict[str, Any]:
        """Return the properties shared by all trials, by name: an edit of any makes another study."""
        return {**self.definition(), "data": self.tried_on.problem.data_digest()}

    @cached_property
    def identity(self) -> str:
        """Return the hash of `common`: identity of the study in storage and MLflow."""
        return digest(json.dumps(self.common, sort_keys=True).encode())

    def definition(self) -> dict[str, Any]:
        """Return the properties shared by all trials, without the digest of the data.

        Names and forms are part of the identity: keep them.
        """
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
            "code": digests(
                named(Experiment(scenario=self.tried_on, strategy=self.space.strategy).description())
            ),
        }
        return json.loads(json.dumps(spec))


@dataclass(frozen=True)
class Campaign:
    """All studies of a suite, and the strategies reusing values."""

    suite: Suite
    studies: tuple[Study, ...]
    # Of each strategy with `tuning.reuse`: one of its runs, and the label of the strategy whose values it
    # takes
    reused: tuple[tuple[PlannedRun, str], ...]

    @property
    def name(self) -> str:
        """Name of the campaign in records: the suite's name, or a pilot's."""
        return self.studies[0].suite if self.studies else self.suite.name

    @property
    def spec(self) -> Tuning:
        """Return the settings of tuning."""
        return self.suite.spec.tuning

    @property
    def trials(self) -> int:
        """Number of trials of all studies, repetitions included."""
        return sum(study.planned for study in self.studies)

    @property
    def simulations(self) -> int:
        """Number of runs of all trials."""
        return sum(study.simulations for study in self.studies)

    def check(self) -> None:
        """Raise if data are missing or damaged, or a problem cannot be built as described."""
        problems = {repr(study.tried_on.problem): study.tried_on.problem for study in self.studies}
        for problem in problems.values():
            for seed in self.studies[0].seeds + self.studies[0].seeds_again:
                problem.check(seed)
