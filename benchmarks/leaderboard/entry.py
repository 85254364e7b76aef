"""Entries of the leaderboard: from the studies of a design to stored tables, final and held-out runs."""

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from math import inf, nan
from pathlib import Path
from typing import Any

import pandas as pd

from benchmarks import yaml_io
from benchmarks.errors import UserError, writing
from benchmarks.leaderboard.finals import finals, label
from benchmarks.suite import labels
from benchmarks.suite.suite import PlannedRun, Suite
from benchmarks.tracking.run_result import TrialResult
from fl_core.recording.atomic import whole
from fl_core.schema import Status, TrialMetric, TrialState
from reports.leaderboard.choice import for_others, one_setting, tuned
from reports.leaderboard.costs import Costs
from reports.leaderboard.rules import FILE, SCENARIO, Frame, Rules, digest
from reports.leaderboard.tables import DESIGN, FINALS, ONE_SETTING, POINTS, TUNED, Tables
from reports.leaderboard.workloads import Asked, Place, place
from tuning.plan import plan
from tuning.results import StudyResult
from tuning.study import Campaign

VERSION = "1.0"
STRATEGIES = "strategies.yaml"  # the strategies of a folder, as a suite has them
Run = Callable[[Campaign], Sequence[StudyResult]]  # runs what is left of a campaign


@dataclass(frozen=True)
class Design:
    """The scenarios of a design with all studies ended."""

    asked: Asked
    campaign: Campaign
    studies: Sequence[StudyResult]

    @cached_property
    def places(self) -> dict[str, Place]:
        """Scenario → place in the tables, for whole scenarios; in the order of the suite."""
        open_ = {study.plan.scenario for study in self.studies if not study.whole}
        return {run.scenario: place(run) for run in self.campaign.suite.runs() if run.scenario not in open_}

    def rules(self, earlier: Rules | None = None) -> Rules:
        """Return the rules of the version with the design's scenarios; UserError for missing targets.

        Args:
            earlier: The rules of the folder, whose scenarios on other workloads are kept.
        """
        suite, study = self.campaign.suite, self.campaign.studies[0]
        frames = [frame(run) for run in scenarios(suite) if run.scenario in self.places]
        problems = {frame.problem for frame in frames}
        old_frames = [
            old_frame
            for old_frame in (earlier.scenarios if earlier else ())
            if old_frame.problem not in problems
        ]
        return Rules(
            version=earlier.version if earlier else VERSION,
            date=earlier.date if earlier else datetime.now(UTC).date(),
            suite=self.asked.suite,
            suite_digest=digest(suite.source),
            points=study.trials,
            design_seeds=study.seeds + study.seeds_again,
            final_seeds=suite.spec.seeds,
            scenarios=(*old_frames, *frames),
            held_out=elsewhere(earlier, problems),
        )

    def tables(self, rules: Rules) -> Tables:
        """Return the tables of the design, without final runs."""
        studies = [study for study in self.studies if study.plan.scenario in self.places]
        design = [row for study in studies for row in self._design(study)]
        points = {
            (row["problem"], row["strategy"], row["point"]): row
            for study in studies
            for row in self._points(study)
        }
        return Tables(
            rules,
            pd.DataFrame(design, columns=DESIGN),
            pd.DataFrame(points.values(), columns=POINTS),
            pd.DataFrame(columns=FINALS),
        )

    def _design(self, study: StudyResult) -> Iterator[dict[str, Any]]:
        for seeds in (study.plan.seeds, study.plan.seeds_again):
            for trial in study.trials:
                for row in results(trial.under(seeds)):
                    yield self._names(study) | {"point": trial.number} | row

    def _points(self, study: StudyResult) -> Iterator[dict[str, Any]]:
        names = self._names(study)
        for point, (_, values) in enumerate(study.plan.first):
            text = json.dumps(values, sort_keys=True)
            yield {"problem": names["problem"], "strategy": names["strategy"], "point": point, "values": text}

    def _names(self, study: StudyResult) -> dict[str, Any]:
        place = dict(zip(SCENARIO, self.places[study.plan.scenario], strict=True))
        return place | {"strategy": study.plan.strategy}


def results(trial: TrialResult) -> Iterator[dict[str, Any]]:
    """Yield the seed and the measures of each run of a complete trial."""
    if trial.state is TrialState.COMPLETE:
        for seed, run in trial.runs.items():
            yield {"seed": seed} | measures(run.status, run.metrics)


def measures(status: Status, metrics: Mapping[str, float]) -> dict[str, Any]:
    """Return the columns of a run's results."""
    return {
        "status": str(status),
        "time_easy": metrics.get(TrialMetric.TIME_EASY, inf),
        "time_hard": metrics.get(TrialMetric.TIME_HARD, inf),
        "updates": int(metrics[TrialMetric.UPDATES]),
        "bytes": int(metrics[TrialMetric.UPLOADS]),
        "accuracy": metrics.get(TrialMetric.END, nan),
        "worst_client": metrics.get(TrialMetric.WORST_CLIENT, nan),
    }


def chosen(tables: Tables) -> dict[tuple[Place, str], dict[str, int]]:
    """Return the points of the final runs: (scenario, strategy) → ruleset → point."""
    costs = Costs.of(tables)
    by_ruleset = {TUNED: tuned(costs), ONE_SETTING: one_setting(costs)}
    return {
        (scenario, name): {ruleset: int(at[a, s]) for ruleset, at in by_ruleset.items() if at[a, s] >= 0}
        for a, name in enumerate(costs.strategies)
        for s, scenario in enumerate(costs.scenarios)
    }


def chosen_for_others(tables: Tables) -> dict[tuple[str, str], int]:
    """Return the points of held-out runs: (problem, strategy) → the best point over the scenarios."""
    costs = Costs.of(tables)
    points = for_others(costs)
    return {
        (scenario[0], name): int(points[a, s])
        for a, name in enumerate(costs.strategies)
        for s, scenario in enumerate(costs.scenarios)
    }


def with_finals(design: Design, rules: Rules, run: Run) -> Tables:
    """Return the tables of a design with the final runs of the chosen points."""
    tables = design.tables(rules)
    picked = chosen(tables)
    points = {
        (scenario, strategy): set(picked[place, strategy].values())
        for scenario, place in design.places.items()
        for strategy in tables.entries
    }
    rows = list(_runs(tables, plan(design.asked.finals.loaded), points, run))
    finals = [
        row | {"ruleset": ruleset}
        for row in rows
        for ruleset, point in picked[place_of(row), row["strategy"]].items()
        if point == row["point"]
    ]
    return replace(tables, finals=pd.DataFrame(finals, columns=FINALS))


def kept(folder: Path, asked: Asked) -> Tables:
    """Return the tables of a workload already in a folder; UserError if nothing can be added."""
    problems = {place(planned)[0] for planned in asked.loaded.runs()}
    tables = Tables.load(folder).on(*problems) if (folder / FILE).is_file() else None
    if tables is None or tables.design.empty or asked.held_out is None:
        raise UserError(f"no scenario of {asked.loaded.name} is tuned to its end: asyncfl tune {asked.suite}")
    return tables


def with_held_out(asked: Asked, tables: Tables, run: Run) -> Tables:
    """Return the tables with runs in the held-out scenarios, if any, of a workload with a whole design."""
    if asked.held_out is None or {*map(frame, scenarios(asked.loaded))} - {*tables.rules.scenarios}:
        return tables
    suite, picked = asked.held_out.finals.loaded, chosen_for_others(tables)
    planned_runs = scenarios(suite)
    points = {
        (planned.scenario, strategy): {picked[place(planned)[0], strategy]}
        for planned in planned_runs
        for strategy in tables.entries
    }
    rows = _runs(tables, plan(suite), points, run)
    frames = [frame(planned) for planned in planned_runs]
    other_frames = elsewhere(tables.rules, {new_frame.problem for new_frame in frames})
    update = {"held_out": (*other_frames, *frames), "suite_digest": digest(suite.source)}
    held_out = pd.DataFrame((row | {"ruleset": ONE_SETTING} for row in rows), columns=FINALS)
    return replace(tables, rules=tables.rules.model_copy(update=update), held_out=held_out)


def elsewhere(rules: Rules | None, problems: Collection[str]) -> tuple[Frame, ...]:
    """Return the held-out scenarios of earlier rules on other problems."""
    return tuple(frame for frame in (rules.held_out if rules else ()) if frame.problem not in problems)


def _runs(
    tables: Tables, campaign: Campaign, points: Mapping[tuple[str, str], set[int]], run: Run
) -> Iterator[dict[str, Any]]:
    """Make the runs of points, and yield a row with the point for each run.

    Args:
        tables: With the parameters of the points.
        campaign: Of the suite of the scenarios, under the name that the runs are to have.
        points: (scenario, strategy) → points by number.
        run: Runs a campaign.
    """
    values = {
        (row["problem"], row["strategy"], row["point"]): json.loads(row["values"])
        for row in tables.points.to_dict("records")
    }
    places = {planned.scenario: place(planned) for planned in scenarios(campaign.suite)}
    with_values = {
        (scenario, strategy): {point: values[places[scenario][0], strategy, point] for point in sorted(own)}
        for (scenario, strategy), own in points.items()
    }
    studies = run(finals(campaign, with_values))
    by_name = {(study.plan.scenario, study.plan.strategy): study for study in studies}
    for (scenario, strategy), own in with_values.items():
        names = dict(zip(SCENARIO, places[scenario], strict=True)) | {"strategy": strategy}
        for point in own:
            for trial in by_name[scenario, label(strategy, point)].trials:
                yield from (names | {"point": point} | result for result in results(trial))


def place_of(row: Mapping[str, Any]) -> Place:
    """Return the scenario of a row of a table."""
    problem, partition, timing = (row[name] for name in SCENARIO)
    return problem, partition, timing


def write(tables: Tables, folder: Path, suite: Suite) -> dict[str, str]:
    """Write tables, strategies and rules of a workload; return the digests of all tables in the folder."""
    tables.save(folder, suite.scale or suite.spec.name)
    _write(folder / STRATEGIES, {"strategies": strategies(suite)})
    digests = {path.name: digest(path) for path in sorted(folder.glob("*.csv"))}
    rules = tables.rules.model_copy(update={"files": digests})
    _write(folder / FILE, rules.model_dump(mode="json"))
    return digests


def _write(path: Path, document: dict[str, Any]) -> None:
    with writing(path), whole(path) as partial:
        partial.write_text(yaml_io.dump(document), encoding="utf-8")


def strategies(suite: Suite) -> list[dict[str, Any]]:
    """Return the strategies of a suite in the form of a suite file, each with a label."""
    named = zip(suite.spec.strategies, labels.strategies(suite.spec, suite.labels), strict=True)
    return [
        {"name": part.reference(), **part.model_dump(mode="json", exclude_defaults=True), "label": label}
        for part, label in named
    ]


def check(campaign: Campaign) -> None:
    """Raise UserError for a scenario unfit for a leaderboard, or tuned by another metric."""
    for run in scenarios(campaign.suite):
        frame(run)
        if campaign.spec.metric not in (None, run.problem.metric):
            needed = f"{run.problem.metric}, which has the targets"
            raise UserError(f"tuning.metric: {run.scenario}: a leaderboard needs {needed}")


def frame(run: PlannedRun) -> Frame:
    """Return the budget and targets of a run's scenario; UserError if unfit for a leaderboard."""
    budget, easy, metric = run.experiment.scenario.budget, run.problem.target, run.problem.ranking
    if not (metric.share and metric.higher):
        raise UserError(
            f"{run.scenario}: a leaderboard needs a metric between 0 and 1 of which more is better, "
            f"not {metric.name}"
        )
    if budget.time is None or budget.target is None or easy is None:
        raise UserError(f"{run.scenario}: a leaderboard needs budget.time, budget.target and a target")
    names = dict(zip(SCENARIO, place(run), strict=True))
    return Frame(**names, budget=float(budget.time), easy=easy, hard=budget.target)


def scenarios(suite: Suite) -> list[PlannedRun]:
    """Return a run of each scenario."""
    return list({run.scenario: run for run in suite.runs()}.values())
