"""Reading a suite out of an MLflow store: SQLite file, server, or any other address."""

from __future__ import annotations

import tempfile
from collections.abc import Collection, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit, urlunsplit

import numpy as np
import pandas as pd

from benchmarks.errors import UserError
from benchmarks.redaction import redacted
from benchmarks.tracking.places import place
from fl_core.keys import is_older
from reports.records.records import CLOCKS, Files, Pooled, RecordedRun, RecordedSuite, latest
from reports.records.studies import SUFFIX, RecordedStudy, read_studies
from reports.records.tags import read_run
from reports.records.values import clean

if TYPE_CHECKING:
    from mlflow import MlflowClient

PAGE = 500  # runs per request
VARIANT = "-tuned"  # ends the names of suites that ran with what was found for another
DOWNLOADS = 8  # at a time, from a server


def load(tracking_uri: str, suite: str, files_of: Collection[str] | None = None) -> RecordedSuite:
    """All runs of a suite, and its tuning studies; a Suite without any if MLflow knows none of that name.

    Files are read of the runs with the given keys, of all by default. Raises UserError if the store cannot be
    read.
    """
    _must_exist(tracking_uri)
    from mlflow import MlflowClient

    address = redacted(tracking_uri)
    try:
        client = MlflowClient(tracking_uri)
        experiment = client.get_experiment_by_name(suite)
        found = list(_runs(client, experiment.experiment_id)) if experiment is not None else []
        studies = _studies(client, suite)
        campaign = _campaign(client, suite)
    except Exception as error:  # noqa: BLE001 - MLflow, SQLAlchemy and HTTP each fail in ways of their own
        reason = redacted(str(error).strip().partition("\n")[0])
        raise UserError(f"MLflow at {address} cannot be read: {reason}") from None
    if experiment is None:
        return RecordedSuite(suite, address, studies=studies)

    kinds = [(run, run.data.tags.get("asyncfl.kind")) for run in found]
    runs, older = latest(_run(r) for r, kind in kinds if kind == "run")
    folders = {run.info.run_id: run.info.artifact_uri for run in found}
    return RecordedSuite(
        suite,
        address,
        experiment.experiment_id,
        _description(experiment.tags),
        _with_files(runs, folders, tracking_uri, files_of),
        _pooled(run for run, kind in kinds if kind == "pooled"),
        older,
        studies,
        campaign,
    )


def _description(tags: Mapping[str, str]) -> str:
    """The suite's description; its note also has links for MLflow's pages."""
    return clean(tags.get("asyncfl.description", tags.get("mlflow.note.content", "")))


def _must_exist(uri: str) -> None:
    """MLflow would create a missing SQLite file; a report only reads."""
    if uri.startswith("sqlite:///"):
        path = Path(uri.removeprefix("sqlite:///").partition("?")[0])
        if not path.is_file():
            raise UserError(f"nothing is recorded at {uri}: there is no such file")


def _runs(client: MlflowClient, experiment: str) -> Iterator[Any]:
    token = None
    while True:
        page = client.search_runs([experiment], max_results=PAGE, page_token=token)
        yield from page
        token = page.token
        if not token:
            return


def _studies(client: MlflowClient, suite: str) -> tuple[RecordedStudy, ...]:
    """The studies of a suite's campaign, which has an experiment of its own; that name is accepted, too."""
    experiment = client.get_experiment_by_name(f"{suite.removesuffix(SUFFIX)}{SUFFIX}")
    if experiment is None:
        return ()

    def by_seed(trial: str) -> list[float]:
        return [one.value for one in client.get_metric_history(trial, "objective/seed")]

    return read_studies(_runs(client, experiment.experiment_id), by_seed)


def _campaign(client: MlflowClient, suite: str) -> str:
    """The suite of whose campaign a tuned variant has its values; empty where none is recorded."""
    name = suite.removesuffix(VARIANT)
    known = name != suite and client.get_experiment_by_name(f"{name}{SUFFIX}") is not None
    return name if known else ""


def _run(run: Any) -> RecordedRun:
    return read_run(run.info, run.data.tags, run.data.params, run.data.metrics)


def _pooled(runs: Iterable[Any]) -> tuple[Pooled, ...]:
    """The centralised baselines; those of an earlier version only where there are no others."""
    found = list(runs)
    renewed = [run for run in found if not is_older(run.data.tags.get("asyncfl.key", ""))]
    return tuple(map(_baseline, renewed or found))


def _baseline(run: Any) -> Pooled:
    seed = run.data.tags.get("asyncfl.seed", "")
    problem = run.data.tags.get("asyncfl.problem", "")
    return Pooled(problem, int(seed) if seed.isdecimal() else 0, dict(run.data.metrics))


def _with_files(
    runs: tuple[RecordedRun, ...], folders: dict[str, str], tracking_uri: str, wanted: Collection[str] | None
) -> tuple[RecordedRun, ...]:
    """The runs, the wanted ones with their artifacts: read in place, or fetched from another machine."""
    if wanted is not None:
        found = _with_files(tuple(run for run in runs if run.key in wanted), folders, tracking_uri, None)
        read_of = {run.id: run for run in found}
        return tuple(read_of.get(run.id, run) for run in runs)
    places = [place(folders[run.id], tracking_uri) for run in runs]
    if all(where is not None for where in places):
        return tuple(
            replace(run, files=_in_place(where)) for run, where in zip(runs, places, strict=True) if where
        )
    with tempfile.TemporaryDirectory() as scratch, ThreadPoolExecutor(DOWNLOADS) as pool:

        def fetch(number: int, run: RecordedRun) -> RecordedRun:
            into = Path(scratch) / str(number)  # not its id: a foreign server may call it ../x
            files = _fetched(folders[run.id], tracking_uri, into, diagnosed=run.diagnosed)
            return replace(run, files=files)

        return tuple(pool.map(fetch, range(len(runs)), runs))


def _in_place(folder: Path) -> Files:
    """The tables of a run; unreadable files are reported with the folder."""
    files = read(folder)
    return replace(files, unread=f"{files.unread} in {folder}") if files.unread else files


def _fetched(uri: str, tracking_uri: str, into: Path, *, diagnosed: bool) -> Files:
    from mlflow.artifacts import download_artifacts
    from mlflow.exceptions import MlflowException

    into.mkdir()
    parts = urlsplit(uri)
    for name in ("curve", "arrivals", "clients", "diagnostics")[: 4 if diagnosed else 3]:
        one = urlunsplit(parts._replace(path=f"{parts.path.rstrip('/')}/{name}.parquet"))
        try:
            download_artifacts(artifact_uri=one, dst_path=str(into), tracking_uri=tracking_uri)
        except (MlflowException, OSError):
            continue  # `read` says which file is missing
    return read(into)


def read(folder: Path) -> Files:
    """The tables of a run; diagnostics are there only where the suite requested them."""
    from pyarrow import ArrowException

    try:
        curve = _table(folder / "curve.parquet")
    except (OSError, ArrowException) as error:
        return Files.none(f"curve.parquet: {_reason(error)}")
    if absent := CLOCKS.keys() - set(curve.columns):
        return Files.none(f"curve.parquet: no column {min(absent)}")
    files = replace(Files.none(), curve=curve)
    try:
        clients = _table(folder / "clients.parquet")
        arrivals = _table(folder / "arrivals.parquet", ["client", "staleness"]).astype(int)
    except (OSError, ArrowException) as error:
        return replace(files, unread=f"clients.parquet or arrivals.parquet: {_reason(error)}")
    participation = np.bincount(arrivals["client"], minlength=len(clients))
    files = replace(
        files, clients=clients, staleness=np.bincount(arrivals["staleness"]), participation=participation
    )
    try:
        return replace(files, diagnostics=_table(folder / "diagnostics.parquet"))
    except FileNotFoundError:
        return files
    except (OSError, ArrowException) as error:
        return replace(files, unread=f"diagnostics.parquet: {_reason(error)}")


def _table(path: Path, columns: list[str] | None = None) -> pd.DataFrame:
    from pyarrow.parquet import read_table

    table: pd.DataFrame = read_table(path, columns=columns, use_threads=False).to_pandas()
    return table


def _reason(error: Exception) -> str:
    return "no such file" if isinstance(error, FileNotFoundError) else type(error).__name__
