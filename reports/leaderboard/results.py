"""The results behind a leaderboard: a table with one row for each run, kept as CSV."""

from __future__ import annotations

from collections.abc import Iterable
from io import BytesIO
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.errors import UserError
from benchmarks.suite.tuned import TunedEntry
from fl_core import reading
from fl_core.schema import MODEL_NAME, TIME, Name, Status, Total
from reports.records.records import RecordedRun, RecordedSuite
from reports.records.summary import time_to_target

SCENARIO = ["problem", "partition", "timing"]  # the last with arrangement, and whatever else tells them apart
COLUMNS = [
    *SCENARIO,
    "strategy",
    "seed",
    "status",
    "value",  # of the metric that ranks, at the end; greater is better
    "worst_client",  # the same metric at the client where it is worst
    "time_to_target",  # virtual time; inf if the target was never met
    "uploads",  # bytes sent to the server until then; inf as well
    "server_bytes",  # kept at the end beside models and updates
    "clients_bytes",  # of all clients together
    "width",  # of the good rates, of the study that tuned it: the greatest over the least
]
DIGITS = 6


def results(suite: RecordedSuite, tuned: Iterable[TunedEntry] = ()) -> pd.DataFrame:
    """The runs of a suite that have ended, with what tuned them.

    UserError where the suite ranks by a metric of which less is better.
    """
    widths = {(one.scenario, one.strategy): one.width for one in tuned}
    runs = [
        run
        for scenario in suite.scenarios()
        for cell in scenario.cells
        for run in cell.runs
        if run.status.terminated
    ]
    if any(not run.higher_is_better for run in runs):
        raise UserError(f"{suite.name}: a leaderboard needs a metric of which more is better")
    table = pd.DataFrame(
        [{**_row(run), "width": widths.get((run.scenario, run.strategy))} for run in runs], columns=COLUMNS
    )
    return table.sort_values([*SCENARIO, "strategy", "seed"], ignore_index=True)


def _row(run: RecordedRun) -> dict[str, object]:
    def final(metric: str) -> float:
        return np.nan if run.status is Status.DIVERGED else run.final(metric)

    model = run.params.get(MODEL_NAME)
    return {
        "problem": f"{run.problem} ({model})" if model else run.problem,
        "partition": run.partition,
        "timing": _clients(run),
        "strategy": run.strategy,
        "seed": run.seed,
        "status": str(run.status),
        "value": final(run.metric),
        "worst_client": final(run.measure(run.metric).worst_client.name),
        "time_to_target": time_to_target(run, TIME, run.target),
        "uploads": time_to_target(run, Name.UPLOADS, run.target),
        "server_bytes": run.totals.get(Total.KEPT_BY_SERVER, np.nan),
        "clients_bytes": run.totals.get(Total.KEPT_BY_CLIENTS, np.nan),
    }


def _clients(run: RecordedRun) -> str:
    """What the scenario's label says beside problem and partition."""
    return " · ".join(word for word in run.scenario.split(" · ") if word not in (run.problem, run.partition))


def among(kept: pd.DataFrame, ours: pd.DataFrame) -> pd.DataFrame:
    """Our results beside those that are kept; of a strategy that both have, ours."""
    others = kept[~kept["strategy"].isin(ours["strategy"])]
    return pd.concat([others, ours], ignore_index=True)


def save(table: pd.DataFrame, path: Path) -> None:
    """Write a table of results."""
    path.parent.mkdir(parents=True, exist_ok=True)
    table.to_csv(path, index=False, float_format=f"%.{DIGITS}g")


def load(path: Path) -> pd.DataFrame:
    """A table that was saved; UserError if it is missing or is none."""
    try:
        table = pd.read_csv(BytesIO(reading.content(path)), keep_default_na=True)
    except FileNotFoundError:
        raise UserError(f"{path}: there are no such results") from None
    except (ValueError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: this is no table of results: {error}") from None
    if missing := [name for name in COLUMNS if name not in table]:
        raise UserError(f"{path}: this is no table of results: there is no column '{missing[0]}'")
    return table.astype(dict.fromkeys((*SCENARIO, "strategy", "status"), str))
