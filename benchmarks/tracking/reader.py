"""Reading of MLflow stores as plain data: an SQLite file by SQL, other stores through MLflow's client."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Sequence
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING

from benchmarks.errors import UserError, warn
from benchmarks.redaction import redacted
from benchmarks.tracking import database
from benchmarks.tracking.queries import INFO, ExperimentEntry, Queries, RunColumns, unexpected
from benchmarks.tracking.run_result import RunResult

if TYPE_CHECKING:
    import pandas as pd
    from mlflow import MlflowClient
    from mlflow.entities import Run

PAGE = 1000  # runs a request


def frame(runs: RunColumns) -> pd.DataFrame:
    """Return a table with a row for each run and the columns of `mlflow.search_runs`; times as in MLflow."""
    import pandas as pd

    columns = dict(runs.info)
    for name in ("metrics", "params", "tags"):
        table = getattr(runs, name)
        columns |= {f"{name}.{key}": table[key] for key in sorted(table)}
    types = {f"metrics.{key}": float for key in runs.metrics}
    return pd.DataFrame(columns, dtype=object).astype(types | {"start_time": int, "end_time": int})


def results(runs: RunColumns) -> list[RunResult]:
    """Return the result of each run."""
    all_runs = [RunResult(*values) for values in zip(*runs.info.values(), strict=True)]
    for name in ("tags", "params", "metrics"):
        parts = [getattr(result, name) for result in all_runs]
        for key, column in getattr(runs, name).items():
            for part, value in zip(parts, column, strict=True):
                if value is not None:
                    part[key] = value
    return all_runs


class Reader(ABC):
    """An MLflow store to read from."""

    @abstractmethod
    def experiments(self) -> dict[str, ExperimentEntry]:
        """Return all experiments by name, without experiments in MLflow's bin."""

    @abstractmethod
    def runs(
        self, experiment: str, ids: Sequence[str] = (), tags: Collection[str] | None = None
    ) -> RunColumns:
        """Return the runs of an experiment, all or only the named runs, the newest first.

        With `tags` only these tags need be there, and neither parameters nor metrics.
        """

    def results(
        self, experiment: str, ids: Sequence[str] = (), tags: Collection[str] | None = None
    ) -> list[RunResult]:
        """Return the runs of an experiment as results."""
        return results(self.runs(experiment, ids, tags))


class ClientReader(Reader):
    """Reader of a server, or of another store, through MLflow's client."""

    def __init__(self, client: MlflowClient) -> None:
        self._client = client

    def experiments(self) -> dict[str, ExperimentEntry]:
        return {
            experiment.name: ExperimentEntry(experiment.experiment_id, experiment.name, experiment.tags)
            for experiment in self._client.search_experiments()
        }

    def runs(
        self, experiment: str, ids: Sequence[str] = (), tags: Collection[str] | None = None
    ) -> RunColumns:
        all_runs = list(self._runs(experiment, ids))
        columns = RunColumns({name: [] for name in INFO})
        for at, run in enumerate(all_runs):
            info, data = run.info, run.data
            for name, column in columns.info.items():
                column.append(getattr(info, name))
            kept_tags = {key: value for key, value in data.tags.items() if tags is None or key in tags}
            for table, values in (
                (columns.tags, kept_tags),
                (columns.params, data.params if tags is None else {}),
                (columns.metrics, data.metrics if tags is None else {}),
            ):
                for key, value in values.items():
                    table.setdefault(key, [None] * len(all_runs))[at] = value
        columns.info["end_time"] = [end or 0 for end in columns.info["end_time"]]
        return columns

    def _runs(self, experiment: str, ids: Sequence[str]) -> Iterator[Run]:
        condition = "attributes.run_id IN ({})".format(", ".join(f"'{run}'" for run in ids)) if ids else ""
        token = None
        while True:
            page = self._client.search_runs([experiment], condition, max_results=PAGE, page_token=token)
            yield from page
            token = page.token
            if not token:
                return


class FileReader(Queries, Reader):
    """Reader of an SQLite file with MLflow's tables."""


@contextmanager
def opened(uri: str) -> Iterator[Reader]:
    """Open a store for reading: SQLite files by SQL, others through MLflow's client; raises store errors.

    A file whose tables are not as expected is read through the client, as a warning says.
    """
    path = database.file(uri)
    if path is not None and (reason := unexpected(path)):
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
