"""A suite as tidy tables of pandas: a row for each run, and a row for each evaluation."""

from collections.abc import Mapping

import pandas as pd

from fl_core.schema import SEED, TO_TARGET, Clock
from reports.records.records import RecordedSuite
from reports.records.runs import RecordedRun

READ_OFF = {*TO_TARGET, *(clock.metric for clock in Clock)}  # totals that are read off the curve
LABELS = ("scenario", "strategy", "seed")


def runs(suite: RecordedSuite) -> pd.DataFrame:
    """Return a table with a row per run: labels, outcome, and every metric at the end.

    `updates_to_target`, `time_to_target` and `bytes_to_target` are ∞ where the target was not reached, and
    absent without one.
    Hyper-parameters, and keys of the scenario, have a column each where they differ between runs.
    """
    differ = _differing({run.key: run.params for run in suite.runs})
    rows = [_row(suite, run) | differ[run.key] for run in suite.runs]
    table = pd.DataFrame(rows) if rows else pd.DataFrame(columns=["suite", *LABELS])
    return table.sort_values([*LABELS], kind="stable", ignore_index=True)


def curves(suite: RecordedSuite) -> pd.DataFrame:
    """Return a table with a row per evaluation: labels of the run, clocks, every evaluated metric."""
    first = [*LABELS, *(clock.value for clock in Clock)]
    parts = [
        pd.DataFrame({**run.files.curve, **{label: getattr(run, label) for label in LABELS}})
        for run in suite.runs
        if run.files.curve
    ]
    table = pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=first)
    first = [name for name in first if name in table]  # bytes were not always recorded
    table = table[[*first, *(name for name in table if name not in first)]]
    return table.sort_values([*LABELS], kind="stable", ignore_index=True)


def _row(suite: RecordedSuite, run: RecordedRun) -> dict[str, object]:
    curve = run.files.curve
    clocks = TO_TARGET if run.target is not None else {}
    to_target = {
        name: run.time_to_target(clock, run.target)
        for name, clock in clocks.items()
        if clock in curve or not curve
    }
    return {
        "suite": suite.name,
        **{label: getattr(run, label) for label in LABELS},
        "problem": run.problem,
        "partition": run.partition,
        "timing": run.timing,
        "status": str(run.status),
        "reason": run.reason,
        **{name: values[-1].item() for name, values in curve.items()},
        **to_target,
        **{name: value for name, value in run.totals.items() if name not in curve and name not in READ_OFF},
        "key": run.key,
    }


def _differing(params: Mapping[str, Mapping[str, str]]) -> dict[str, dict[str, object]]:
    """Return for each run the parameters with differences between runs, as numbers where all values are."""
    table = pd.DataFrame.from_dict(dict(params), orient="index", dtype="object")
    columns = {}
    for name in table.columns.drop(SEED, errors="ignore"):
        if table[name].nunique(dropna=False) > 1:
            numbers = pd.to_numeric(table[name], errors="coerce")
            columns[name] = numbers if numbers.notna().equals(table[name].notna()) else table[name]
    return {key: {name: column[key] for name, column in columns.items()} for key in params}
