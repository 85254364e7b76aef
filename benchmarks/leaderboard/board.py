"""Studies and final runs of leaderboard entries in a scenario, as rows of tables.

`asyncfl leaderboard run` and `evidence` plan and compute with `StudyOfScale`; pages read the tables
(`reports/leaderboard/`). A scenario is a scale of the board's suite: a workload and a population of clients.
There, each entry is tuned by four independent studies (`STUDIES`). The best trial of each makes final runs on
fresh seeds, which are judged on the other half of the test data. Copies of some entries have separate
studies, so that the distance between copy and entry shows the effect of chance. The constants are published
rules of the board: docs/how-to/leaderboard.md.

Fixed: these rules, the seeds, and names of suites and labels, by which stored runs and rows are found.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf
from typing import Any

import numpy as np

from benchmarks import yaml_io
from benchmarks.errors import UserError
from benchmarks.suite import labels
from benchmarks.suite.overrides import Setting
from benchmarks.suite.shipped import file_of
from benchmarks.suite.suite import Suite, load
from fl_core.problems.models.linear import Affine, Linear, Logistic
from fl_core.recorded_names import Clock, Name, TrialMetric
from fl_core.strategies.hyperparameters import Values
from fl_core.text import unknown
from fl_core.timing.power import PHASES, Power
from reports.leaderboard.board_tables import BoardTables
from reports.leaderboard.scores import COPY, ScenarioGoal
from reports.records.records import RecordedSuite
from tuning.plan import plan
from tuning.results import StudyResult
from tuning.study import Campaign

STUDIES = (1, 2, 3, 4)  # numbers of an entry's studies in a scenario
COPY_STUDIES = (5, 6, 7, 8)  # numbers of its copy's studies
COPIED = ("FedBuff", "ASGD", "ACE")
SEEDS_PER_STUDY = 10  # study n has final runs under the seeds from 10 n on
ENTRIES_PER_PART = 8  # tuned together; tables are written after each part
LINEAR_MODELS = (Logistic, Affine, Linear)
TUNING_SEED_OFFSET = 1000  # from the seeds of a study's final runs to those of its trials
# Held-out scenario → scenario whose tuned parameters its final runs use; nothing is tuned in a held-out one
HELD_OUT = {
    "features10-alpha": "features10-alike",
    "features10-clients": "features10-persistent",
    "features10-tails": "features10-persistent",
}


@dataclass(frozen=True)
class StudyOfScale:
    """Studies with a common number, one for each entry in a scenario: trials, then final runs of the best."""

    suite: str  # the board's, or another one, by name or file
    scale: str  # empty for a suite without scales
    number: int  # of STUDIES or COPY_STUDIES
    entries: Sequence[str] = ()  # labels, or strategies as a suite writes them; none: all of the suite

    def loaded(self, name: str, strategies: Sequence[Mapping[str, Any]], **more: Any) -> Suite:
        """Load the suite with the study's seeds, given strategies, and a name with the study's number.

        Args:
            name: Part of the name between suite and number.
            strategies: As in a suite file.
            more: Further settings, by dotted key.
        """
        seeds = [
            SEEDS_PER_STUDY * self.number + at for at in range(self._suite_as_written.spec.seeds[-1] + 1)
        ]
        values = {"name": f"{self._suite_as_written.spec.name}_{name}{self.number}", "seeds": seeds, **more}
        settings = [Setting(tuple(key.split(".")), value, "") for key, value in values.items()]
        return load(
            self.suite,
            [*settings, Setting(("strategies",), [*strategies], "")],
            self.scale or None,
            tuned=False,
        )

    @cached_property
    def _suite_as_written(self) -> Suite:
        return load(self.suite, (), self.scale or None, tuned=False)

    @property
    def place(self) -> str:
        """Return the scenario's name in the tables: the scale, or the suite without scales."""
        return self.scale or self._suite_as_written.spec.name

    @cached_property
    def strategies(self) -> list[dict[str, Any]]:
        """Return the strategies of the study in the form of a suite file, each with a label.

        Raises:
            UserError: An entry is neither a label of the suite nor a strategy.
        """
        by_label = {strategy["label"]: strategy for strategy in written(self._suite_as_written)}
        return [
            strategy
            for entry in self.entries or by_label
            for strategy in ([by_label[entry]] if entry in by_label else self._own_strategy(entry, by_label))
        ]

    def _own_strategy(self, entry: str, labels: Collection[str]) -> list[dict[str, Any]]:
        """Return a user's own strategy, given by import path or as YAML instead of a label of the suite."""
        if not any(sign in entry for sign in ":{"):
            raise UserError(
                f"{self.suite}: {unknown('entry', entry, labels)}. Write your own strategy as MODULE:CLASS"
            )
        try:
            value = yaml_io.value(entry)
        except yaml_io.YAMLParseError as error:
            raise UserError(f"--entry {entry}: {error}") from None
        setting = Setting(("strategies",), [value], f"entry {entry}: ")
        return written(load(self.suite, [setting], self.scale or None, tuned=False))

    @property
    def labels(self) -> list[str]:
        """Return the labels of the study's strategies."""
        return [strategy["label"] for strategy in self.strategies]

    def campaign(self) -> Campaign:
        """Return the trials of all entries."""
        first = TUNING_SEED_OFFSET + SEEDS_PER_STUDY * self.number
        tuning = {"tuning.scramble": self.number, "tuning.seeds": [first, first + 1]}
        campaign = plan(self.loaded("study", self.strategies, **tuning))
        if (count := len({study.scenario for study in campaign.studies})) > 1:
            raise UserError(
                f"{self.suite}: {self.place} has {count} scenarios, but a board needs exactly one. "
                "Give each scenario a scale of its own"
            )
        return campaign

    def winners(self, tables: BoardTables) -> dict[str, Values]:
        """Return the parameters of the best trials in the tables, by label of the entry."""
        best = tables.best_trials(HELD_OUT.get(self.place, self.place), self.number)
        return {label: best[self.label(label)] for label in self.labels if self.label(label) in best}

    @property
    def held_out(self) -> bool:
        """Return whether parameters come from another scenario (`HELD_OUT`)."""
        return self.place in HELD_OUT

    def without(self, labels: Collection[str]) -> StudyOfScale | None:
        """Return the study without the entries of given labels; None if no entry is left."""
        entries = zip(self.labels, self.entries or self.labels, strict=True)
        remaining = tuple(entry for label, entry in entries if label not in labels)
        return replace(self, entries=remaining) if remaining else None

    def finals(self, winners: Mapping[str, Values]) -> Suite:
        """Return the suite of the final runs.

        Args:
            winners: Label of an entry → parameters of its best trial.
        """
        strategies = []
        for study in self.campaign().studies:
            if study.strategy in winners:
                tuned = study.space.apply(winners[study.strategy], study.tried_on)
                fields = tuned.model_dump(mode="json")  # with defaults, or the suite would fill in its own
                strategies.append({"name": tuned.reference(), **fields, "label": study.strategy})
        return self.loaded("finals", strategies)

    def label(self, strategy: str) -> str:
        """Return the label of an entry in the tables; studies of copies have a suffix."""
        return f"{strategy}{COPY}" if self.number in COPY_STUDIES else strategy

    def rows_of_trials(self, studies: Sequence[StudyResult]) -> Iterator[dict[str, Any]]:
        """Yield a row for each seed of each trial."""
        for study in studies:
            best = study.best
            for trial in study.trials:
                values = json.dumps(dict(trial.parameters), sort_keys=True)
                for seed, result in sorted(trial.runs.items()):
                    yield {
                        "scale": self.place,
                        "strategy": self.label(study.plan.strategy),
                        "study": self.number,
                        "trial": trial.number,
                        "seed": seed,
                        "status": str(result.status),
                        "time": result.metrics.get(TrialMetric.TIME_HARD, inf),
                        "end": result.metrics.get(TrialMetric.END, 0.0),
                        "best": int(best is not None and trial.number == best.number),
                        "values": values,
                    }

    def rows_of_finals(self, recorded: RecordedSuite) -> Iterator[dict[str, Any]]:
        """Yield a row for each final run, with the learning curve."""
        for run in recorded.runs:
            yield {
                "scale": self.place,
                "strategy": self.label(run.strategy),
                "study": self.number,
                "seed": run.seed,
                "status": str(run.status),
                "commit": run.commit,
                **measured(run.files.curve, run.metric, run.time_to_target(Clock.TIME, run.target)),
            }

    def simulations(self, tables: BoardTables) -> int:
        """Return the number of runs: final runs, and trial runs of entries without trials in the tables."""
        spec = self._suite_as_written.spec
        seeds = spec.tuning.seeds
        per_entry = spec.tuning.trials * (seeds if isinstance(seeds, int) else len(seeds))
        untuned = 0 if self.held_out else len(self.labels) - len(self.winners(tables))
        return untuned * per_entry + len(self.labels) * len(spec.seeds)


def written(suite: Suite) -> list[dict[str, Any]]:
    """Return the strategies of a suite in the form of a suite file, each with a label."""
    return [
        {"name": part.reference(), **part.model_dump(mode="json", exclude_defaults=True), "label": label}
        for label, part in suite.labelled(suite.points[0]).items()
    ]


def scales(suite: str) -> list[str]:
    """Return the names of a suite's scales without held-out scales; [""] for a suite without scales."""
    return [scale for scale in all_scales(suite) if scale not in HELD_OUT]


def all_scales(suite: str) -> list[str]:
    """Return the names of all scales of a suite; [""] for a suite without scales."""
    return list(yaml_io.read(file_of(suite)).get("scales") or {}) or [""]


def goals(suite: str, places: Sequence[str]) -> dict[str, ScenarioGoal]:
    """Return budget, target and description of scenarios, by name in the tables.

    Raises:
        UserError: The suite lacks a scenario, or a scenario lacks a budget, a target or a fitting metric.
    """
    goals = {}
    by_place = {StudyOfScale(suite, scale, 1).place: scale for scale in all_scales(suite)}
    for place in places:
        if place not in by_place:
            raise UserError(
                f"{suite}: has no scale '{place}', but the tables have runs of this scale. Name the "
                "suite that has it with --suite"
            )
        spec = load(suite, (), by_place[place] or None, tuned=False).spec
        metric, model = spec.problem.ranking, getattr(spec.problem, "model", None)
        if not (metric.share and metric.higher):
            raise UserError(
                f"{suite}, {place}: a board needs a metric between 0 and 1 for which higher is "
                f"better, not {metric.name}"
            )
        if spec.budget.time is None or spec.problem.target is None:
            raise UserError(f"{suite}, {place}: a board needs budget.time and problem.target")
        linear = isinstance(model, LINEAR_MODELS)
        goals[place] = ScenarioGoal(
            float(spec.budget.time),
            spec.problem.target,
            spec.problem.target_marks,
            metric=metric.title,
            workload=labels.problem(spec.problem)
            + ("" if linear or model is None else f" ({model.label()})"),
            linear=linear,
            clients=f"{spec.problem.clients} clients, {labels.partition(spec.problem)}",
            power=_in_words(spec.timing.power),
            tuned_in=HELD_OUT.get(place, ""),
        )
    return goals


def _in_words(power: Power | None) -> str:
    laws = {} if power is None else {phase: getattr(power, phase) for phase in (*PHASES, "idle")}
    words = {phase: f"{law.label()} W" for phase, law in laws.items() if law is not None}
    return ", ".join(f"{phase} {watts}" for phase, watts in words.items())


def missing(study: StudyOfScale, tables: BoardTables) -> list[StudyOfScale]:
    """Return the entries of a study without final runs in the tables, in parts of `ENTRIES_PER_PART`."""
    entries = list(zip(study.labels, study.entries or study.labels, strict=True))
    if study.number in COPY_STUDIES:
        entries = [(label, entry) for label, entry in entries if label in COPIED]
    if study.held_out:
        tuned = study.winners(tables)
        if not tuned:
            raise UserError(
                f"{study.place}: no tuned parameters of {HELD_OUT[study.place]}, study {study.number}. Run "
                f"--scale {HELD_OUT[study.place]} first"
            )
        entries = [(label, entry) for label, entry in entries if label in tuned]
    done = tables.done(study.place, study.number)
    remaining = [entry for label, entry in entries if study.label(label) not in done]
    starts = range(0, len(remaining), ENTRIES_PER_PART)
    return [replace(study, entries=tuple(remaining[at : at + ENTRIES_PER_PART])) for at in starts]


def measured(curve: Mapping[str, np.ndarray], metric: str, time: float) -> dict[str, Any]:
    """Return the measures of a final run: the curve as text, and counts until the target or the end.

    Args:
        curve: The learning curve, with all counts.
        metric: Of the target.
        time: At which the run met the target; ∞ for never.
    """
    until = len(curve[Clock.TIME]) - 1 if time == inf else int((curve[Clock.TIME] < time).sum())
    worst, energy = curve.get(f"worst_client/{metric.rpartition('/')[-1]}"), curve.get(Clock.ENERGY)
    return {
        "time": time,
        "updates": int(curve[Clock.UPDATES][until]),
        "uploads": int(curve[Name.UPLOADS][until]),
        "downloads": int(curve[Name.DOWNLOADS][until]),
        "energy": "" if energy is None else float(energy[until]),
        "worst_client": "" if worst is None else float(worst[-1]),
        "times": " ".join(f"{value:.5g}" for value in curve[Clock.TIME]),
        "values": " ".join(f"{value:.4f}" for value in curve[metric]),
    }


def winners(studies: Sequence[StudyResult]) -> dict[str, Values]:
    """Return the parameters of each study's best trial, by strategy; nothing for a study without any."""
    return {study.plan.strategy: dict(study.best.parameters) for study in studies if study.best is not None}
