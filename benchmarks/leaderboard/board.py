"""Studies and final runs of leaderboard entries in a scenario, as rows of tables.

A scenario is a scale of the board's suite: a workload and a population of clients. An entry is tuned by
`STUDIES` independent studies there. The best trial of each makes final runs on fresh seeds, which are judged
on the other half of the test data. Copies of some entries have studies of their own: how far they lie from
the entry is what luck alone does.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import Any

from benchmarks import yaml_io
from benchmarks.errors import UserError
from benchmarks.leaderboard.entry import strategies
from benchmarks.suite.overrides import Setting
from benchmarks.suite.suite import Suite, load
from benchmarks.tracking.run_result import RunResult
from fl_core.schema import Clock, Name, TrialMetric
from fl_core.strategies.hyperparameters import Values
from reports.leaderboard.board_tables import BoardTables
from reports.leaderboard.populations import COPY, ScenarioGoal
from reports.records.records import RecordedSuite
from tuning.plan import plan
from tuning.results import StudyResult
from tuning.study import Campaign

STUDIES = (1, 2, 3, 4)  # of an entry in a scenario
COPY_STUDIES = (5, 6, 7, 8)  # of its copy
COPIED = ("FedBuff", "ASGD", "ACE")
SEEDS = 10  # seeds of a study are counted from so many times its number
AT_ONCE = 8  # entries that are tuned together; tables are written after them
TUNING = 1000  # seeds of trials are so far above


@dataclass(frozen=True)
class StudyOfScale:
    """A study, by number, of every entry in a scenario."""

    suite: str  # the board's, or one with own strategies, by name or file
    scale: str
    number: int  # of STUDIES or COPY_STUDIES
    labels: Sequence[str] = ()  # of the entries; none: all of the suite
    own: Sequence[str] = ()  # strategies in place of the suite's, written as in a suite

    def loaded(self, name: str, strategies: Sequence[Mapping[str, Any]], **more: Any) -> Suite:
        """Return the suite under a name and with strategies of this study."""
        seeds = [SEEDS * self.number + at for at in range(self._asked.spec.seeds[-1] + 1)]
        values = {"name": f"{self._asked.spec.name}_{name}{self.number}", "seeds": seeds, **more}
        settings = [Setting(tuple(key.split(".")), value, "") for key, value in values.items()]
        return load(
            self.suite, [*settings, Setting(("strategies",), [*strategies], "")], self.scale, tuned=False
        )

    @property
    def _asked(self) -> Suite:
        settings: tuple[Setting, ...] = ()
        if self.own:
            settings = (Setting(("strategies",), list(map(_strategy, self.own)), "--with "),)
        return load(self.suite, settings, self.scale, tuned=False)

    @property
    def entries(self) -> list[dict[str, Any]]:
        """Return the strategies of the study, as a suite file has them.

        Raises:
            UserError: The suite has no strategy of a given label.
        """
        by_label = {strategy["label"]: strategy for strategy in strategies(self._asked)}
        if unknown := [label for label in self.labels if label not in by_label]:
            raise UserError(f"no strategy '{unknown[0]}' in {self.suite}; there are: {', '.join(by_label)}")
        return [by_label[label] for label in self.labels or by_label]

    def campaign(self) -> Campaign:
        """Return the trials of all entries."""
        first = TUNING + SEEDS * self.number
        tuning = {"tuning.scramble": self.number, "tuning.seeds": [first, first + 1]}
        return plan(self.loaded("study", self.entries, **tuning))

    def finals(self, winners: Mapping[str, Values]) -> Suite:
        """Return the suite of the final runs.

        Args:
            winners: Label of an entry → parameters of its best trial.
        """
        written = []
        for study in self.campaign().studies:
            if study.strategy in winners:
                tuned = study.space.apply(winners[study.strategy], study.tried_on)
                fields = tuned.model_dump(mode="json")  # defaults, too: the suite has others
                written.append({"name": tuned.reference(), **fields, "label": study.strategy})
        return self.loaded("finals", written)

    def label(self, strategy: str) -> str:
        """Return the label of an entry in the tables."""
        return f"{strategy}{COPY}" if self.number in COPY_STUDIES else strategy

    def rows_of_trials(self, studies: Sequence[StudyResult]) -> Iterator[dict[str, Any]]:
        """Yield a row for each seed of each trial."""
        for study in studies:
            best = study.best
            for trial in study.trials:
                values = json.dumps(dict(trial.parameters), sort_keys=True)
                for seed, result in sorted(trial.runs.items()):
                    yield {
                        "scale": self.scale,
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
                "scale": self.scale,
                "strategy": self.label(run.strategy),
                "study": self.number,
                "seed": run.seed,
                "status": str(run.status),
                "commit": run.commit,
                **measured(run),
            }

    @property
    def simulations(self) -> int:
        """Return the number of trial runs and final runs."""
        loaded = self._asked
        seeds = loaded.spec.tuning.seeds
        per_entry = loaded.spec.tuning.trials * (seeds if isinstance(seeds, int) else len(seeds))
        return len(self.entries) * (per_entry + len(loaded.spec.seeds))


def _strategy(written: str) -> Any:
    try:
        return yaml_io.value(written)
    except yaml_io.YAMLParseError as error:
        raise UserError(f"--with {written}: {error}") from None


def scales(suite: str) -> list[str]:
    """Return the names of all scales of a suite; an empty name for a suite without scales."""
    return list(yaml_io.read(load(suite, tuned=False).source).get("scales") or {}) or [""]


def goals(suite: str, scales: Sequence[str]) -> dict[str, ScenarioGoal]:
    """Return budget and target of each scenario; UserError where a scenario lacks one."""
    goals = {}
    for scale in scales:
        spec = load(suite, (), scale, tuned=False).spec
        if spec.budget.time is None or spec.problem.target is None:
            raise UserError(f"{suite}, scale {scale}: a board needs budget.time and problem.target")
        marks = spec.problem.target_marks
        goals[scale] = ScenarioGoal(float(spec.budget.time), spec.problem.target, marks)
    return goals


def missing(study: StudyOfScale, tables: BoardTables) -> list[StudyOfScale]:
    """Return the parts of a study that the tables do not have, of a few entries each."""
    labels = [entry["label"] for entry in study.entries]
    if study.number in COPY_STUDIES:
        labels = [label for label in labels if label in COPIED]
    done = tables.done(study.scale, study.number)
    remaining = [label for label in labels if study.label(label) not in done]
    return [replace(study, labels=remaining[at : at + AT_ONCE]) for at in range(0, len(remaining), AT_ONCE)]


def measured(run: RunResult) -> dict[str, Any]:
    """Return the measures of a final run: the curve as text, and counts until the target or the end."""
    curve = run.files.curve
    time = run.time_to_target(Clock.TIME, run.target)
    until = len(curve[Clock.TIME]) - 1 if time == inf else int((curve[Clock.TIME] < time).sum())
    worst = curve.get(f"worst_client/{run.metric.split('/')[-1]}")
    return {
        "time": time,
        "updates": int(curve[Clock.UPDATES][until]),
        "uploads": int(curve[Name.UPLOADS][until]),
        "downloads": int(curve[Name.DOWNLOADS][until]),
        "worst_client": "" if worst is None else float(worst[-1]),
        "times": " ".join(f"{value:.5g}" for value in curve[Clock.TIME]),
        "values": " ".join(f"{value:.4f}" for value in curve[run.metric]),
    }


def winners(studies: Sequence[StudyResult]) -> dict[str, Values]:
    """Return the parameters of the best trial of each study; without studies in which every trial failed."""
    return {study.plan.strategy: dict(study.best.parameters) for study in studies if study.best is not None}


def failed(studies: Sequence[StudyResult]) -> list[str]:
    """Return a line for each study with trials that ended in error."""
    return [f"{study.plan.strategy}: {study.errors()[0]}" for study in studies if study.errors()]
