"""A suite as tidy tables of pandas: a row for each run, and a row for each evaluation."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from fl_core.schema import SEED, TO_TARGET, Clock
from reports.records.records import RecordedRun, RecordedSuite
from reports.records.summary import time_to_target

LABELS = ("scenario", "strategy", "seed")


def runs(suite: RecordedSuite) -> pd.DataFrame:
    """One row a run: its labels, how it ended, and every metric at its end.

    `updates_to_target` and `time_to_target` are ∞ where the target was not reached, and absent without one.
    Hyper-parameters, and keys of the scenario, have a column each where they differ between runs.
    """
    differ = _differing({run.key: run.params for run in suite.runs})
    return _ordered([_row(suite, run) | differ[run.key] for run in suite.runs])


def curves(suite: RecordedSuite) -> pd.DataFrame:
    """One row an evaluation: labels of the run, the three clocks, and every metric that was evaluated."""
    first = [*LABELS, *(clock.value for clock in Clock)]
    parts = [
        run.files.curve.assign(**{label: getattr(run, label) for label in LABELS})
        for run in suite.runs
        if not run.files.curve.empty
    ]
    found = pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=first)
    found = found[[*first, *(name for name in found if name not in first)]]
    return found.sort_values([*LABELS], kind="stable", ignore_index=True)


def _row(suite: RecordedSuite, run: RecordedRun) -> dict[str, object]:
    curve = run.files.curve
    clocks = TO_TARGET if run.target is not None else {}
    to_target = {name: time_to_target(run, clock, run.target) for name, clock in clocks.items()}
    return {
        "suite": suite.name,
        **{label: getattr(run, label) for label in LABELS},
        "problem": run.problem,
        "partition": run.partition,
        "timing": run.timing,
        "status": str(run.status),
        "reason": run.reason,
        **{str(name): value for row in curve.tail(1).to_dict("records") for name, value in row.items()},
        **to_target,
        **{name: value for name, value in run.totals.items() if _of_the_whole(name, curve)},
        "key": run.key,
    }


def _of_the_whole(name: str, curve: pd.DataFrame) -> bool:
    """Whether a metric is measured once a run, and is not the last value of its curve, nor read off it."""
    return name not in curve and name not in TO_TARGET and name not in {clock.metric for clock in Clock}


def _differing(params: Mapping[str, Mapping[str, str]]) -> dict[str, dict[str, object]]:
    """For each run the parameters in which runs differ, as numbers where all are; None where it has none."""
    table = pd.DataFrame.from_dict(dict(params), orient="index", dtype="object")
    found = {}
    for name in table.columns.drop(SEED, errors="ignore"):
        if table[name].nunique(dropna=False) > 1:
            numbers = pd.to_numeric(table[name], errors="coerce")
            found[name] = numbers if numbers.notna().equals(table[name].notna()) else table[name]
    return {key: {name: of[key] for name, of in found.items()} for key in params}


def _ordered(rows: list[dict[str, object]]) -> pd.DataFrame:
    """By scenario, strategy and seed; a table with labels only if there are no rows."""
    found = pd.DataFrame(rows) if rows else pd.DataFrame(columns=["suite", *LABELS])
    return found.sort_values([*LABELS], kind="stable", ignore_index=True)
