"""Runs behind evidence: a design of trials for a strategy and baselines, final runs, an ablation."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import pandas as pd

from benchmarks import yaml_io
from benchmarks.errors import UserError
from benchmarks.leaderboard import entry
from benchmarks.leaderboard.ablation import Ablation, switches
from benchmarks.suite import labels
from benchmarks.suite.overrides import Setting
from benchmarks.suite.suite import Suite
from benchmarks.tracking.provenance import provenance
from fl_core import sources
from fl_core.text import nearest
from reports.leaderboard.findings import Findings
from reports.leaderboard.marks import incomplete, unequal
from reports.leaderboard.rules import SCENARIO
from reports.leaderboard.tables import RULESETS, Tables
from reports.leaderboard.workloads import Asked
from tuning.plan import plan
from tuning.space import must_fit
from tuning.study import Campaign


@dataclass(frozen=True)
class Evidence:
    """A strategy and baselines in the scenarios of a suite."""

    written: str  # the strategy as a suite has it
    suite: str  # its name, or the path of its file
    scale: str | None
    against: Sequence[str]  # labels of the baselines; none: the suite's

    @cached_property
    def asked(self) -> Asked:
        """The suite with strategy and baselines, without scenarios refused by the strategy."""
        listed = entry.strategies(Asked(self.suite, (), self.scale).loaded)
        by_label = {strategy["label"]: strategy for strategy in listed}
        for name in self.against:
            if name not in by_label:
                raise UserError(
                    f"--against: no strategy '{name}' in {self.suite}{nearest(name, list(by_label))}"
                )
        try:
            strategies = [yaml_io.value(self.written), *(by_label[name] for name in self.against or by_label)]
        except yaml_io.YAMLParseError as error:
            raise UserError(f"STRATEGY: {error}") from None
        setting = Setting(("strategies",), strategies, "STRATEGY: ")
        return Asked(self.suite, [setting], self.scale, leave_out=True)

    @property
    def loaded(self) -> Suite:
        """The loaded suite with strategy and baselines."""
        return self.asked.loaded

    @cached_property
    def campaign(self) -> Campaign:
        """The design."""
        campaign = plan(self.loaded)
        if self.loaded.spec.tuning.sampler != "sobol":
            raise UserError(f"{self.suite}: evidence needs a design: write tuning: {{sampler: sobol, …}}")
        entry.check(campaign)
        problems = Counter(labels.problem(run.problem) for run in entry.scenarios(self.loaded))
        for problem, count in problems.items():
            if count == 1:
                raise UserError(
                    f"{self.suite}: {problem} has one scenario: one setting for all is chosen over the "
                    "others, so name two"
                )
        return campaign

    @cached_property
    def strategy(self) -> str:
        """The label of the author's strategy."""
        return labels.strategies(self.loaded.spec, self.loaded.labels)[0]

    @cached_property
    def ablation(self) -> Ablation:
        """The ablation of the strategy's parts."""
        first = self.loaded.points[0]
        return Ablation(self.strategy, switches(first.spec.strategies[0], first.scenario))

    @property
    def final_simulations(self) -> int:
        """The simulations after tuning, of final runs and the ablation, at most."""
        spec, studies = self.loaded.spec, self.campaign.studies
        scenarios = len({study.scenario for study in studies})
        return (len(studies) * len(RULESETS) + scenarios * len(self.ablation.off)) * len(spec.seeds)

    def findings(self, run: entry.Run) -> Findings:
        """Return the findings from the runs; UserError if runs of the strategy do not finish.

        Args:
            run: Runs what is left of a campaign; returns its results.
        """
        studies = run(self.campaign)
        if any(study.errors() for study in studies if study.plan.strategy == self.strategy):
            raise UserError(
                f"{self.strategy}: trials ended in error; mend it, and run the same command again"
            )
        design = entry.Design(self.asked, self.campaign, studies)
        tables = entry.with_finals(design, design.rules(), run)
        if incomplete(tables, self.strategy):
            raise UserError(f"{self.strategy}: {'; '.join(unequal(tables, self.strategy))}")
        return Findings(self.strategy, tables, self._ablated(design, tables, run), self.refused())

    def _ablated(self, design: entry.Design, tables: Tables, run: entry.Run) -> pd.DataFrame:
        """Return the factors from runs without each part."""
        values = {
            design.places[study.scenario]: {point: values for point, (_, values) in enumerate(study.first)}
            for study in self.campaign.studies
            if study.strategy == self.strategy
        }
        final = plan(self.asked.finals.loaded)
        studies = self.ablation.studies(final, design.places, tables, values)
        errors: dict[str, dict[str, str]] = {name: {} for name in self.ablation.off}
        for part, study in studies:
            try:
                must_fit(study.space, study.first[0][1], study.tried_on, study.seeds[0])
            except ValueError as error:
                errors[part][study.scenario] = str(error)
        fit = [(part, study) for part, study in studies if study.scenario not in errors[part]]
        results = run(replace(final, studies=tuple(study for _, study in fit), reused=())) if fit else ()
        rows: list[dict[str, Any]] = []
        for (part, study), result in zip(fit, results, strict=True):
            if failed := result.errors():
                errors[part][study.scenario] = failed[0]
            names = dict(zip(SCENARIO, design.places[study.scenario], strict=True)) | {"part": part}
            rows += [names | row for trial in result.trials for row in entry.results(trial)]
        return self.ablation.factors(tables, pd.DataFrame(rows), errors)

    def refused(self) -> dict[str, str]:
        """Return the features and scenarios declared as unsupported by the strategy, each with the reason."""
        from fl_core.diagnostics.error_terms import refuses

        run = self.loaded.runs()[0]
        strategy = run.experiment.strategy
        reasons = {
            "Server optimisers": strategy.refuses_optimizer,
            "Error terms": refuses(run.experiment),
            **self.loaded.left_out,
        }
        return {name: reason for name, reason in reasons.items() if reason}

    def manifest(self, findings: Findings, digests: dict[str, str]) -> dict[str, Any]:
        """Return digests of code, data and tables, versions, and the request, as JSON data."""
        experiment = self.loaded.runs()[0].experiment
        problems = {labels.problem(run.problem): run.problem for run in self.loaded.runs()}
        rules = findings.tables.rules
        return {
            "strategy": experiment.description()["strategy"],
            "code": sources.digests(sources.named(experiment.description())),
            "suite": {"name": self.suite, "scale": self.scale, "digest": rules.suite_digest},
            "rules": {
                "points": rules.points,
                "design_seeds": rules.design_seeds,
                "final_seeds": rules.final_seeds,
            },
            "data": {name: problem.world(0).fingerprint for name, problem in problems.items()},
            "tables": digests,
            "versions": {str(tag): value for tag, value in provenance().items()},
            "claim": findings.claim(),
            "open": [point for met, point in findings.checklist() if not met],
        }
