"""Tables of the leaderboard: trials and final runs of a scenario, a row for each seed, as CSV files.

Runs of the leaderboard (`benchmarks/leaderboard/`) write them, pages and scores read them.

Fixed: columns, their order, and the digits of numbers in stored files.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.errors import UserError, writing
from fl_core import file_reading
from fl_core.recording.atomic import whole
from reports.tables import as_written, harmless

PLACE = ["scale", "strategy", "study"]
TRIALS = [*PLACE, "trial", "seed", "status", "time", "end", "best", "values"]
FINALS = [
    *PLACE,
    "seed",
    "status",
    "commit",
    "time",  # virtual time; inf if the target was never met
    "updates",  # of clients, until the target or the end
    "uploads",  # bytes until then
    "downloads",
    "energy",  # joules until then, of all clients; empty where their power is not given
    "worst_client",  # the metric at the client where it is worst, at the end
    "times",  # of the learning curve, separated by blanks
    "values",  # of the metric at these
]
KINDS = {"trials": TRIALS, "finals": FINALS}
TEXTS = ("scale", "strategy", "status", "commit", "times", "values")
OPTIONAL = ("energy", "worst_client")  # NaN if a cell is empty
INTEGERS = ("study", "trial", "seed", "best", "updates", "uploads", "downloads")


@dataclass(frozen=True, eq=False)
class BoardTables:
    """The trials and final runs of a board."""

    trials: pd.DataFrame
    finals: pd.DataFrame

    @classmethod
    def load(cls, *folders: Path) -> BoardTables:
        """Return the tables of all folders together; if folders share a run, the last folder's row counts.

        Tables are empty without files. UserError for damaged files.
        """
        tables = {}
        for kind in KINDS:
            paths = [path for folder in folders for path in sorted(folder.glob(f"*-{kind}.csv"))]
            tables[kind] = _joined(kind, [_read(path, kind) for path in paths])
        return cls(**tables)

    @cached_property
    def scales(self) -> list[str]:
        """Scenarios with final runs."""
        return sorted(set(self.finals["scale"]))

    def of(self, scales: Sequence[str]) -> BoardTables:
        """Return the rows of some scenarios."""
        return BoardTables(*(table[table["scale"].isin([*scales])] for table in (self.trials, self.finals)))

    def done(self, scale: str, study: int) -> set[str]:
        """Return the labels of the entries with final runs in a study."""
        rows = self.finals[(self.finals["scale"] == scale) & (self.finals["study"] == study)]
        return set(rows["strategy"])

    def best_trials(self, scale: str, study: int) -> dict[str, dict[str, Any]]:
        """Return the parameters of the best trial of each entry in a study, by label."""
        rows = self.trials
        rows = rows[(rows["scale"] == scale) & (rows["study"] == study) & (rows["best"] == 1)]
        return {
            str(label): json.loads(values)
            for label, values in zip(rows["strategy"], rows["values"], strict=True)
        }

    def with_rows(self, **more: Iterable[Mapping[str, Any]]) -> BoardTables:
        """Return the tables with additional rows, which replace earlier rows of equal runs."""
        tables = {}
        for kind, columns in KINDS.items():
            fresh = pd.DataFrame([*more.get(kind, ())], columns=columns)
            tables[kind] = _joined(kind, [getattr(self, kind), fresh])
        return BoardTables(**tables)

    def save(self, folder: Path) -> None:
        """Write the tables into a folder, two files for each scenario."""
        for kind, columns in KINDS.items():
            for scale, rows in getattr(self, kind).groupby("scale"):
                table = rows[columns].sort_values(_key(columns))
                table = table.assign(**{name: table[name].map(harmless) for name in TEXTS if name in table})
                path = folder / f"{scale}-{kind}.csv"
                with writing(path), whole(path) as partial:
                    table.to_csv(partial, index=False, float_format="%.9g")


def numbers(cell: str) -> np.ndarray:
    """Return the numbers of a learning curve: of the column `times` or `values`."""
    return np.array(cell.split(), float)


def _key(columns: list[str]) -> list[str]:
    """Return the columns that identify a row."""
    return [name for name in (*PLACE, "trial", "seed") if name in columns]


def _joined(kind: str, tables: Iterable[pd.DataFrame]) -> pd.DataFrame:
    """Return tables of a kind as a single table; of rows for the same run, the last."""
    parts = [table for table in tables if len(table)]
    joined = pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=KINDS[kind])
    return joined.drop_duplicates(_key(KINDS[kind]), keep="last", ignore_index=True)


def _read(path: Path, kind: str) -> pd.DataFrame:
    """Read a table; UserError if damaged, or with two rows for one run."""
    columns = KINDS[kind]
    try:
        table = pd.read_csv(
            BytesIO(file_reading.content(path)), dtype=dict.fromkeys(TEXTS, str), keep_default_na=False
        )
        if missing := [name for name in columns if name not in table]:
            raise ValueError(f"no column '{missing[0]}'")
        kinds = {name: str if name in TEXTS else int if name in INTEGERS else float for name in columns}
        optional = {name: table[name].replace("", np.nan) for name in OPTIONAL if name in columns}
        table = table.assign(**optional)[columns].astype(kinds)
    except (ValueError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: not a table of the leaderboard: {error}. Restore the file") from None
    table = table.assign(**{name: table[name].map(as_written) for name in TEXTS if name in columns})
    if (twice := table.duplicated(_key(columns))).any():
        raise UserError(f"{path}: row {int(twice.argmax()) + 1} is a duplicate. Restore the file")
    return table
