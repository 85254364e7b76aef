"""Verification of stored results: reruns of a random tenth of an entry's runs, and table digests."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks import yaml_io
from benchmarks.errors import UserError
from benchmarks.leaderboard.entry import (
    STRATEGIES,
    chosen,
    chosen_for_others,
    frame,
    measures,
    place_of,
    scenarios,
)
from benchmarks.suite.suite import PlannedRun, Suite
from fl_core.recording.recorder import run
from fl_core.schema import Origin
from reports.leaderboard.rules import SCENARIO, Rules
from reports.leaderboard.tables import Tables, values
from reports.leaderboard.workloads import Place, place
from tuning.plan import plan
from tuning.study import Study

SHARE = 0.1  # of an entry's runs
ACCURACY = 0.01  # by which stacked and single runs may differ at the end
Studies = dict[tuple[Place, str], tuple[Study, PlannedRun]]  # by scenario and strategy


@dataclass(frozen=True)
class RerunCheck:
    """A stored run, compared with a rerun."""

    run: Mapping[str, Any]  # the row of the table
    faults: tuple[str, ...]  # columns that differ, with both values

    @property
    def name(self) -> str:
        """Return the run in words."""
        words = [self.run[key] for key in (*SCENARIO, "strategy")]
        return " · ".join([*words, f"point {self.run['point']}", f"seed {self.run['seed']}"])


def strategies(folder: Path) -> str:
    """Return the strategies of a folder, as a setting of the suites."""
    path = folder / STRATEGIES
    if not path.is_file():
        raise UserError(f"{path}: there are no strategies beside the tables")
    return f"strategies={json.dumps(yaml_io.read(path).get('strategies'))}"


def other_goals(shipped: Sequence[Suite], rules: Rules) -> list[str]:
    """Return the scenarios with another budget or other targets in the rules than in the suites."""
    stated = {frame(run) for suite in shipped for run in scenarios(suite)}
    unstated = (goal for goal in (*rules.scenarios, *rules.held_out) if goal not in stated)
    return [f"{goal.problem} · {goal.partition} · {goal.timing}" for goal in unstated]


def checks(
    known_suites: Sequence[Suite], tables: Tables, entries: Sequence[str], seed: int
) -> Iterator[RerunCheck]:
    """Rerun a random tenth of the entries' runs; yield each run with the differences.

    Args:
        known_suites: The suites of the folder.
        tables: What it holds.
        entries: Labels of strategies.
        seed: Of the choice of runs.
    """
    studies: Studies = {}
    for suite in known_suites:
        studies |= _studies(suite)
    rng = np.random.default_rng(seed)
    for name in entries:
        rows = runs(tables.of(name))
        for at in sorted(rng.choice(len(rows), max(1, round(SHARE * len(rows))), replace=False)):
            yield RerunCheck(rows[at], tuple(_faults(rows[at], studies, tables.points)))


def runs(tables: Tables) -> list[dict[str, Any]]:
    """Return the rows of all tables, each with a point or None; a run of two rulesets appears once."""
    picked, for_others = chosen(tables), chosen_for_others(tables)
    final, held_out = _records(tables.finals), _records(tables.held_out)
    for row in final:
        row["point"] = picked.get((place_of(row), row["strategy"]), {}).get(row["ruleset"])
    for row in held_out:
        row["point"] = for_others.get((row["problem"], row["strategy"]))
    unique = {(*(row[key] for key in SCENARIO), row["point"], row["seed"]): row for row in final}
    return [*_records(tables.design), *unique.values(), *held_out]


def _records(table: pd.DataFrame) -> list[dict[str, Any]]:
    return [{str(name): value for name, value in row.items()} for row in table.to_dict("records")]


def _studies(suite: Suite) -> Studies:
    by_labels = {(run.scenario, run.strategy): run for run in suite.runs()}
    pairs = ((study, by_labels[study.scenario, study.strategy]) for study in plan(suite).studies)
    return {(place(run), study.strategy): (study, run) for study, run in pairs}


def _plain(parameters: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value.item() if hasattr(value, "item") else value for name, value in parameters.items()}


def _faults(row: Mapping[str, Any], studies: Studies, points: pd.DataFrame) -> Iterator[str]:
    place, name = place_of(row), row["strategy"]
    points_of_strategy = values(points, place[0], name)
    if (place, name) not in studies:
        yield "no suite of the rules has this strategy there"
    elif row["point"] not in points_of_strategy.index:
        yield "the tables have no such point"
    else:
        yield from _differences(
            row, *studies[place, name], _plain(points_of_strategy.loc[row["point"]].dropna().to_dict())
        )


def _differences(
    row: Mapping[str, Any], study: Study, planned: PlannedRun, parameters: Mapping[str, Any]
) -> Iterator[str]:
    if "ruleset" in row:  # a final run
        study = study.on(planned.experiment.scenario)
    scenario = study.tried_on
    fits = {name: int(value) if study.space.whole(name) else value for name, value in parameters.items()}
    (planned_run,) = study.runs(0, fits, Origin.SAMPLER, [row["seed"]])
    record = run(planned_run.experiment, evaluate=planned_run.evaluate)
    rerun = measures(record.status, planned_run.measures(record))
    mark = float(scenario.budget.time or 0) / scenario.evaluations
    near = {"time_easy": mark, "time_hard": mark, "accuracy": ACCURACY}
    if row["status"] != rerun["status"]:
        yield f"status {row['status']}, again {rerun['status']}"
    for name, within in near.items():
        if not _close(row[name], rerun[name], within * 1.001):
            yield f"{name} {row[name]:g}, again {rerun[name]:g}"
    if row["time_hard"] == rerun["time_hard"]:
        for name in ("updates", "bytes"):
            if not np.isclose(row[name], rerun[name], rtol=1e-6):
                yield f"{name} {row[name]:g}, again {rerun[name]:g}"


def _close(stored: float, rerun: float, within: float) -> bool:
    if pd.isna(stored) or pd.isna(rerun) or np.isinf(stored) or np.isinf(rerun):
        return bool(stored == rerun or (pd.isna(stored) and pd.isna(rerun)))
    return bool(abs(stored - rerun) <= within)
