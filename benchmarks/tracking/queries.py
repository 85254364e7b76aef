"""Queries of MLflow's tables in an SQLite file, a single query for each table."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from math import nan
from pathlib import Path
from typing import Any

from benchmarks.tracking.database import open_file

INFO = ("run_id", "experiment_id", "status", "start_time", "end_time", "artifact_uri")

# All that is relied on: MLflow's tables and their columns.
COLUMNS = {
    "experiments": ("experiment_id", "name", "lifecycle_stage"),
    "experiment_tags": ("experiment_id", "key", "value"),
    "runs": ("run_uuid", *INFO[1:], "lifecycle_stage"),
    "tags": ("run_uuid", "key", "value"),
    "params": ("run_uuid", "key", "value"),
    "latest_metrics": ("run_uuid", "key", "value", "is_nan"),
}

Column = list[Any]  # a value a run


@dataclass(frozen=True, slots=True)
class ExperimentEntry:
    """An experiment in MLflow: a suite, or a tuning campaign."""

    id: str
    name: str
    tags: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class RunColumns:
    """Runs, the newest first: a column for each name, with None for missing values."""

    info: dict[str, Column]  # times in milliseconds since 1970, 0 until a run has ended
    tags: dict[str, Column] = field(default_factory=dict)
    params: dict[str, Column] = field(default_factory=dict)
    metrics: dict[str, Column] = field(default_factory=dict)  # the latest values


class Queries:
    """A consistent state of an SQLite file."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        connection.execute("BEGIN")  # all queries see one state

    def experiments(self) -> dict[str, ExperimentEntry]:
        """Return all experiments by name, without deleted experiments."""
        tags: dict[int, dict[str, str]] = {}
        for experiment, key, value in self._rows("SELECT experiment_id, key, value FROM experiment_tags"):
            tags.setdefault(experiment, {})[key] = value
        query = "SELECT experiment_id, name FROM experiments WHERE lifecycle_stage = 'active'"
        rows = self._rows(query).fetchall()
        if any(not isinstance(name, str) for _, name in rows):
            raise sqlite3.DatabaseError("experiments.name: must be a text")
        return {name: ExperimentEntry(str(id_), name, tags.get(id_, {})) for id_, name in rows}

    def runs(
        self, experiment: str, ids: Sequence[str] = (), tags: Collection[str] | None = None
    ) -> RunColumns:
        """Return the runs of an experiment, without deleted runs.

        With `tags`, only these tags, and of everything else what is not of the type that MLflow writes.
        """
        condition, chosen = "experiment_id = ? AND lifecycle_stage = 'active'", [int(experiment), *ids]
        condition += f" AND run_uuid IN ({_marks(ids)})" if ids else ""
        info = "CAST(experiment_id AS TEXT), status, start_time, ifnull(end_time, 0), artifact_uri"
        query = f"SELECT run_uuid, {info} FROM runs WHERE {condition} ORDER BY start_time DESC, run_uuid"
        rows = list(zip(*self._rows(query, *chosen), strict=True)) or [()] * len(INFO)
        runs = RunColumns(dict(zip(INFO, map(list, rows), strict=True)))
        index = {run: at for at, run in enumerate(runs.info["run_id"])}

        def fill(
            columns: dict[str, Column], table: str, types: str, keys: Collection[str], is_nan: str = "0"
        ) -> None:
            selected = f"run_uuid, key, value, {is_nan}"
            query = f"SELECT {selected} FROM runs JOIN {table} USING (run_uuid) WHERE {condition}"
            if tags is not None:
                other_types = f"typeof(key) != 'text' OR typeof(value) NOT IN ({types})"
                query += f" AND (key IN ({_marks(keys)}) OR {other_types})"
            for run, key, value, not_a_number in self._rows(query, *chosen, *keys):
                if (column := columns.get(key)) is None:
                    column = columns[key] = [None] * len(index)
                column[index[run]] = nan if not_a_number == 1 else value

        fill(runs.tags, "tags", "'text'", tags or ())
        fill(runs.params, "params", "'text'", ())
        fill(runs.metrics, "latest_metrics", "'real', 'integer'", (), "is_nan")
        return runs

    def _rows(self, query: str, *values: Any) -> sqlite3.Cursor:
        return self._connection.execute(query, values)


def unexpected(path: Path) -> str:
    """Return a message about the first missing column; empty if all required columns exist."""
    with closing(open_file(path)) as connection:
        for table, expected in COLUMNS.items():
            columns = {row[1] for row in connection.execute(f"PRAGMA table_info({table})")}
            if missing := [name for name in expected if name not in columns]:
                return f"MLflow's table '{table}' has no column '{missing[0]}'"
    return ""


def _marks(values: Collection[str]) -> str:
    return ", ".join("?" * len(values))
