"""Reading of MLflow stores as plain data: an SQLite file by SQL, other stores through MLflow's client.

Reports, commands and `Tracking` read through it. Both ways give the same `RunResult`s; SQL is faster by an
order of magnitude.

Fixed: equal results both ways (tests/reports/test_store_reader.py). Free: queries.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from math import nan
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.errors import UserError, warn
from benchmarks.mlflow_store import database
from benchmarks.mlflow_store.run_result import RunResult
from benchmarks.redaction import redacted

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Run

PAGE = 1000  # runs in a request

# Columns of MLflow's tables that the queries below need; if one is missing, the client is used instead.
COLUMNS = {
    "experiments": ("experiment_id", "name", "lifecycle_stage"),
    "experiment_tags": ("experiment_id", "key", "value"),
    "runs": (
        "run_uuid",
        "experiment_id",
        "status",
        "start_time",
        "end_time",
        "artifact_uri",
        "lifecycle_stage",
    ),
    "tags": ("run_uuid", "key", "value"),
    "params": ("run_uuid", "key", "value"),
    "latest_metrics": ("run_uuid", "key", "value", "is_nan"),
}


@dataclass(frozen=True, slots=True)
class ExperimentEntry:
    """An experiment in MLflow: a suite, or a tuning campaign."""

    id: str
    name: str
    tags: Mapping[str, str]


class ClientReader:
    """Reader of a server, or of another store, through MLflow's client."""

    def __init__(self, client: MlflowClient) -> None:
        self._client = client

    def experiments(self) -> dict[str, ExperimentEntry]:
        """Return all experiments by name, without experiments in MLflow's bin."""
        return {
            experiment.name: ExperimentEntry(experiment.experiment_id, experiment.name, experiment.tags)
            for experiment in self._client.search_experiments()
        }

    def results(
        self, experiment: str, ids: Sequence[str] = (), tags: Collection[str] | None = None
    ) -> list[RunResult]:
        """Return the runs of an experiment as `FileReader` does; `tags` save no time here."""
        results = [RunResult.of_run(run) for run in self._runs(experiment, ids)]
        if tags is not None:
            for result in results:
                result.tags = {key: value for key, value in result.tags.items() if key in tags}
                result.params, result.metrics = {}, {}
        return results

    def _runs(self, experiment: str, ids: Sequence[str]) -> Iterator[Run]:
        """Yield the runs of an experiment, all or only the given, page by page."""
        condition = "attributes.run_id IN ({})".format(", ".join(f"'{run}'" for run in ids)) if ids else ""
        token = None
        while True:
            page = self._client.search_runs([experiment], condition, max_results=PAGE, page_token=token)
            yield from page
            token = page.token
            if not token:
                return


class FileReader:
    """Reader of a consistent state of an SQLite file with MLflow's tables, by a query for each table."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        connection.execute("BEGIN")  # all queries see one state

    def experiments(self) -> dict[str, ExperimentEntry]:
        """Return all experiments by name, without experiments in MLflow's bin."""
        tags: dict[int, dict[str, str]] = {}
        for experiment, key, value in self._rows("SELECT experiment_id, key, value FROM experiment_tags"):
            tags.setdefault(experiment, {})[key] = value
        query = "SELECT experiment_id, name FROM experiments WHERE lifecycle_stage = 'active'"
        rows = self._rows(query).fetchall()
        if any(not isinstance(name, str) for _, name in rows):
            raise sqlite3.DatabaseError("experiments.name: must be a text")
        return {name: ExperimentEntry(str(id_), name, tags.get(id_, {})) for id_, name in rows}

    def results(
        self, experiment: str, ids: Sequence[str] = (), tags: Collection[str] | None = None
    ) -> list[RunResult]:
        """Return the runs of an experiment, all or only the named runs, the newest first.

        Deleted runs are left out. With `tags`, only these tags are read, and neither parameters nor metrics,
        except for values of a wrong type: they must be seen, to report the damage.
        """
        condition, chosen = "experiment_id = ? AND lifecycle_stage = 'active'", [int(experiment), *ids]
        condition += f" AND run_uuid IN ({_marks(ids)})" if ids else ""
        info = "run_uuid, CAST(experiment_id AS TEXT), status, start_time, ifnull(end_time, 0), artifact_uri"
        query = f"SELECT {info} FROM runs WHERE {condition} ORDER BY start_time DESC, run_uuid"
        results = {row[0]: RunResult(*row) for row in self._rows(query, *chosen)}
        for name, table, is_nan, types, keys in (
            ("tags", "tags", "0", "'text'", tags or ()),
            ("params", "params", "0", "'text'", ()),
            ("metrics", "latest_metrics", "is_nan", "'real', 'integer'", ()),
        ):
            values = {run: getattr(result, name) for run, result in results.items()}
            query = f"SELECT run_uuid, key, value, {is_nan} FROM runs JOIN {table} USING (run_uuid)"
            query += f" WHERE {condition}"
            if tags is not None:
                other_types = f"typeof(key) != 'text' OR typeof(value) NOT IN ({types})"
                query += f" AND (key IN ({_marks(keys)}) OR {other_types})"
            for run, key, value, not_a_number in self._rows(query, *chosen, *keys):
                if not_a_number == 1:
                    values[run][key] = nan
                elif value is not None:
                    values[run][key] = value
        return list(results.values())

    def _rows(self, query: str, *values: Any) -> sqlite3.Cursor:
        return self._connection.execute(query, values)


Reader = FileReader | ClientReader


@contextmanager
def opened(uri: str) -> Iterator[Reader]:
    """Open a store for reading: SQLite files by SQL, others through MLflow's client; raises store errors.

    A file whose tables are not as expected is read through the client, as a warning says.
    """
    path = database.file(uri)
    if path is not None and (reason := _unexpected(path)):
        warn(f"{path}: {reason}. It is read through MLflow's client instead, which takes longer")
        path = None
    if path is None:
        yield ClientReader(database.client(uri))
        return
    with closing(database.open_file(path)) as connection:
        yield FileReader(connection)


@contextmanager
def reading(uri: str) -> Iterator[Reader]:
    """Open a reader of the store; raise UserError if nothing is recorded, or if reading fails."""
    database.must_exist(uri)
    try:
        with opened(uri) as reader:
            yield reader
    except database.failures() as error:
        reason = str(error).strip().partition("\n")[0]
        raise UserError(f"MLflow at {redacted(uri)} cannot be read: {reason}") from None


def _unexpected(path: Path) -> str:
    """Return a message about the first missing column; empty if all required columns exist."""
    with closing(database.open_file(path)) as connection:
        for table, expected in COLUMNS.items():
            columns = {row[1] for row in connection.execute(f"PRAGMA table_info({table})")}
            if missing := [name for name in expected if name not in columns]:
                return f"MLflow's table '{table}' has no column '{missing[0]}'"
    return ""


def _marks(values: Collection[str]) -> str:
    return ", ".join("?" * len(values))
