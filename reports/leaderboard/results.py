"""The results behind a leaderboard: a table with one row for each run, kept as CSV."""

from collections.abc import Iterable
from io import BytesIO
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.errors import UserError
from benchmarks.suite.tuned import TunedEntry
from fl_core import reading
from fl_core.schema import JOINT, MODEL_NAME, TIME, Name, Status, Total
from reports.leaderboard.rules import SCENARIO
from reports.records.records import RecordedRun, RecordedSuite, time_to_target

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
    """Return the runs of a suite that have ended, with the width of their strategies' good rates.

    Args:
        suite: The suite as it was recorded.
        tuned: The values found by tuning.

    Raises:
        UserError: The suite ranks by a metric of which less is better.
    """
    widths = {(entry.scenario, entry.strategy): entry.width for entry in tuned}
    runs = [run for run in suite.runs if run.status.terminated]
    if any(not run.higher_is_better for run in runs):
        raise UserError(f"{suite.name}: a leaderboard needs a metric of which more is better")
    rows = [{**_row(run), "width": widths.get((run.scenario, run.strategy))} for run in runs]
    table = pd.DataFrame(rows, columns=COLUMNS)
    return table.sort_values([*SCENARIO, "strategy", "seed"], ignore_index=True)


def _row(run: RecordedRun) -> dict[str, object]:
    model = run.params.get(MODEL_NAME)
    words = [word for word in run.scenario.split(JOINT) if word not in (run.problem, run.partition)]
    worst = run.measure(run.metric).worst_client.name
    diverged = run.status is Status.DIVERGED
    return {
        "problem": f"{run.problem} ({model})" if model else run.problem,
        "partition": run.partition,
        "timing": JOINT.join(words),  # with whatever else the scenario's label says
        "strategy": run.strategy,
        "seed": run.seed,
        "status": str(run.status),
        "value": np.nan if diverged else run.final(run.metric),
        "worst_client": np.nan if diverged else run.final(worst),
        "time_to_target": time_to_target(run, TIME, run.target),
        "uploads": time_to_target(run, Name.UPLOADS, run.target),
        "server_bytes": run.totals.get(Total.KEPT_BY_SERVER, np.nan),
        "clients_bytes": run.totals.get(Total.KEPT_BY_CLIENTS, np.nan),
    }


def among(kept: pd.DataFrame, ours: pd.DataFrame) -> pd.DataFrame:
    """Return our results beside those that are kept; of a strategy that both have, ours."""
    others = kept[~kept["strategy"].isin(ours["strategy"])]
    return pd.concat([others, ours], ignore_index=True)


def save(table: pd.DataFrame, path: Path) -> None:
    """Write a table of results."""
    path.parent.mkdir(parents=True, exist_ok=True)
    table.to_csv(path, index=False, float_format=f"%.{DIGITS}g")


def load(path: Path) -> pd.DataFrame:
    """Return a table that was saved; UserError if the file is missing or holds no such table."""
    try:
        table = pd.read_csv(BytesIO(reading.content(path)), keep_default_na=True)
    except FileNotFoundError:
        raise UserError(f"{path}: there are no such results") from None
    except (ValueError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: this is no table of results: {error}") from None
    if missing := [name for name in COLUMNS if name not in table]:
        raise UserError(f"{path}: this is no table of results: there is no column '{missing[0]}'")
    return table.astype(dict.fromkeys((*SCENARIO, "strategy", "status"), str))
