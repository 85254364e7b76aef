"""Verification of a board: `asyncfl leaderboard verify` computes stored final runs again, and compares.

Fixed: the tolerances. Nothing is stored.
"""

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from math import isclose, isnan
from multiprocessing import get_context
from typing import Any

import numpy as np

from benchmarks.errors import UserError
from benchmarks.leaderboard.board import StudyOfScale, measured
from benchmarks.runs.run_jobs import EXECUTIONS
from benchmarks.suite.suite import PlannedRun
from fl_core.import_guard import own_packages
from fl_core.parts import Count
from fl_core.recorded_names import Clock
from fl_core.recording.recorder import run
from fl_core.time_to_target import time_to_target
from reports.leaderboard.board_tables import OPTIONAL, BoardTables, numbers

ACCURACY = (
    0.01  # allowed difference of metrics: stacked computation differs in the last bits, which then grow
)
EXACT = ("updates", "uploads", "downloads")  # compared if the target was met at the same time


@dataclass(frozen=True)
class StoredRun:
    """A stored final run."""

    row: Mapping[str, Any]  # of the board's table
    planned: PlannedRun  # the run by its suite

    @property
    def name(self) -> str:
        """Return the run in words."""
        row = self.row
        return f"{row['strategy']} · {row['scale']} · study {row['study']} · seed {row['seed']}"

    def differences(self, repeated_row: Mapping[str, Any]) -> list[str]:
        """Return a text for each different measure, with both values.

        Args:
            repeated_row: The row of the repeated run.
        """
        budget = self.planned.experiment.scenario
        mark = float(budget.budget.time or 0) / budget.evaluations
        near = {"time": 1.001 * mark, "worst_client": ACCURACY}
        exact = EXACT if isnan(self.row["energy"]) else (*EXACT, "energy")  # not of tables without it
        lines = [
            f"{name} {self.row[name]:g}, again {repeated_row[name]:g}"
            for name, within in near.items()
            if not np.isclose(self.row[name], repeated_row[name], rtol=0, atol=within, equal_nan=True)
        ]
        if self.row["status"] != repeated_row["status"]:
            lines.append(f"status {self.row['status']}, again {repeated_row['status']}")
        if self.row["time"] == repeated_row["time"]:
            lines += [
                f"{name} {self.row[name]}, again {repeated_row[name]}"
                for name in exact
                if not isclose(self.row[name], repeated_row[name], rel_tol=1e-6)
            ]
        stored, repeated = numbers(self.row["values"]), numbers(repeated_row["values"])
        if len(stored) != len(repeated):
            lines.append(f"{len(stored)} evaluations, again {len(repeated)}")
        elif not np.allclose(stored, repeated, rtol=0, atol=ACCURACY, equal_nan=True):
            lines.append(f"values differ by up to {np.nanmax(np.abs(stored - repeated)):.3g}")
        return lines


def stored_runs(studies: Sequence[StudyOfScale], tables: BoardTables) -> list[StoredRun]:
    """Return the stored final runs of studies.

    Raises:
        UserError: The tables have no trial whose parameters a final run should have.
    """
    return [stored for study in studies for stored in _of_study(study, tables)]


def _of_study(study: StudyOfScale, tables: BoardTables) -> Iterator[StoredRun]:
    """Yield the stored final runs of a study, each with the planned run."""
    labels = {study.label(label): label for label in study.labels}
    finals = tables.finals
    finals = finals[(finals["scale"] == study.place) & (finals["study"] == study.number)]
    rows = [row for row in finals.to_dict("records") if row["strategy"] in labels]
    values = study.winners(tables)
    if lacking := {labels[row["strategy"]] for row in rows} - values.keys():
        raise UserError(
            f"{study.place}, study {study.number}: no trial of {min(lacking)} is marked as the best, so its "
            "final runs cannot be repeated. Restore the table of trials"
        )
    planned = {(run.strategy, run.seed): run for run in study.finals(values).runs()} if rows else {}
    for row in rows:
        run_place = labels[row["strategy"]], row["seed"]
        if run_place not in planned:
            raise UserError(
                f"{study.place}, study {study.number}: the suite has no seed {row['seed']}. Restore the "
                "table of final runs"
            )
        yield StoredRun({str(name): value for name, value in row.items()}, planned[run_place])


def repeated(stored_runs: Sequence[StoredRun], processes: Count) -> Iterator[tuple[StoredRun, list[str]]]:
    """Compute stored runs again; yield every run in order, with all differences."""
    finder = own_packages()  # with it, workers can import the user's strategies
    with ProcessPoolExecutor(
        processes, get_context("forkserver"), finder.install if finder else None
    ) as pool:
        rows = pool.map(_again, [stored.planned for stored in stored_runs])
        for stored, row in zip(stored_runs, rows, strict=True):
            yield stored, stored.differences(row)


def _again(planned: PlannedRun) -> dict[str, Any]:
    """Compute a run, and return the row for the table."""
    record = run(planned.experiment, execution=EXECUTIONS["all_in_flight"](), evaluate=planned.evaluate)
    curve = {name: np.array([row.get(name, np.nan) for row in record.curve]) for name in record.curve[0]}
    problem = planned.problem
    target = float(problem.target or 0)  # never None on a board
    time = time_to_target(curve[Clock.TIME], curve[problem.metric], target, True, problem.target_marks)
    row = measured(curve, problem.metric, time)
    empty = {name: np.nan for name in OPTIONAL if row[name] == ""}
    return row | empty | {"status": str(record.status)}
