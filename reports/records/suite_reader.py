"""Reading a suite out of an MLflow store: SQLite file, server, or any other address.

All reports, the gate and `asyncfl.results` call `load`. Tables of runs are read from one packed copy if
current (`benchmarks/mlflow_store/run_files.py`), otherwise from the artifacts of each run.

Fixed: stores in files and on servers give the same records. Free: how files are read.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from benchmarks.errors import RUN_AGAIN, warn
from benchmarks.mlflow_store.artifact_locations import fetched, place
from benchmarks.mlflow_store.reader import reading
from benchmarks.mlflow_store.run_files import Copies, pack, read, state_of, tables_of, unpack
from benchmarks.mlflow_store.run_result import (
    TOTALS,
    Files,
    RunResult,
    clean,
    cleaned_texts,
    fault_of,
    must_be_current,
    parsed,
    valid_tags,
)
from benchmarks.redaction import redacted
from fl_core.metrics import SURROGATE
from fl_core.recorded_names import CAMPAIGN, CURVE, UNTUNED, VARIANT, Kind, MlflowTag, Tag
from fl_core.text import many, nearest
from reports.records.records import RecordedSuite, latest
from reports.records.studies import read_studies

DOWNLOADS = 8  # at a time, from a server


def load(
    tracking_uri: str,
    suite: str,
    files_of: Collection[str] | Callable[[RunResult], bool] | None = None,
    *,
    curves_only: bool = False,
) -> RecordedSuite:
    """Return all runs and tuning studies of a suite; no runs for a name unknown to MLflow.

    Damaged records are left out, with a warning.

    Args:
        tracking_uri: The address of the MLflow store.
        suite: The name under which the suite is recorded.
        files_of: The keys of the runs whose files are read, or a test of a run; all by default.
        curves_only: Whether to read no other file than the curve of a run.

    Raises:
        UserError: The store cannot be read.
    """
    with reading(tracking_uri) as reader:
        experiments = reader.experiments()
        experiment, tuning = (
            experiments.get(suite),
            experiments.get(f"{suite.removesuffix(CAMPAIGN)}{CAMPAIGN}"),
        )
        recorded = reader.results(experiment.id) if experiment else []
        tried = reader.results(tuning.id) if tuning else []
    must_be_current(recorded, redacted(tracking_uri))
    tags = valid_tags(experiment.tags) if experiment else {}
    base = suite.removesuffix(VARIANT)  # the suite whose campaign found the values of a tuned variant
    tuned = base != suite and f"{base}{CAMPAIGN}" in experiments
    faults = {run.run_id: fault for run in (*recorded, *tried) if (fault := fault_of(run))}
    kinds = [(run, run.tags.get(Tag.KIND)) for run in recorded if run.run_id not in faults]
    runs, older = latest(cleaned(run) for run, kind in kinds if kind == Kind.RUN)
    loaded = RecordedSuite(
        suite,
        redacted(tracking_uri),
        experiment.id if experiment else "",
        # MLflow's note adds links and a warning on rates, which the page has elsewhere
        clean(tags.get(Tag.DESCRIPTION, tags.get(MlflowTag.NOTE, ""))).removesuffix(UNTUNED).strip(),
        runs,
        tuple(cleaned(run) for run, kind in kinds if kind == Kind.POOLED),
        older,
        read_studies(run for run in tried if run.run_id not in faults),
        base if tuned else "",
        tuple(map(str, parsed(tags.get(Tag.HIGHLIGHT, ""), []))),
        tuple(f"run {run}: {fault}" for run, fault in faults.items()),
    )
    if loaded.damaged:
        damaged = many(len(loaded.damaged), "damaged record")
        warn(f"left out: {damaged}, such as {loaded.damaged[0]}; {RUN_AGAIN}")
    loaded = replace(loaded, runs=_with_files(runs, tracking_uri, files_of, curves_only))
    _warn(loaded)
    return loaded


def _warn(suite: RecordedSuite) -> None:
    """Warn of unreadable files, unequal budgets or data, and metrics of `show` recorded by no run."""
    if suite.unread:
        first = suite.unread[0]
        warn(
            f"{len(suite.unread)} of {many(len(suite.runs), 'run')} cannot be read, such as "
            f"{first.strategy} · {first.scenario} · seed {first.seed}: {first.files.unread}; {RUN_AGAIN}. "
            "If this is a copy of a store in use, copy it anew: the database first, then artifacts"
        )
    for unfair in filter(None, (suite.unequal_budgets, suite.unequal_data)):
        warn(unfair)
    with_curves = [run for run in suite.runs if run.files.curve]
    recorded = set().union(*(run.files.curve for run in with_curves))
    recorded |= TOTALS & set().union(*(run.metrics for run in with_curves))
    for name in dict.fromkeys(name for run in suite.runs for name in run.show):
        if recorded and name not in recorded | SURROGATE:
            warn(f"show: {name} was recorded in no run{nearest(name, recorded)}")


def cleaned(run: RunResult) -> RunResult:
    """Return a run with tags and parameters free of control characters, for pages."""
    return replace(run, tags=cleaned_texts(run.tags), params=cleaned_texts(run.params))


def _with_files(
    runs: tuple[RunResult, ...],
    tracking_uri: str,
    files_of: Collection[str] | Callable[[RunResult], bool] | None,
    curves_only: bool,
) -> tuple[RunResult, ...]:
    """Return the runs, with tables for those of `files_of`: read in place, or fetched from a server."""
    chosen = files_of if callable(files_of) else lambda run: files_of is None or run.key in files_of
    stored = [run for run in runs if chosen(run)]
    places = {run.run_id: folder for run in stored if (folder := place(run.artifact_uri, tracking_uri))}
    if len(places) == len(stored):  # on a local disk threads gain nothing
        files = _read_in_place(stored, places, tracking_uri, curves_only)
    else:

        def fetch(run: RunResult) -> Files:
            names = [table.file for table in ((CURVE,) if curves_only else tables_of(run))]
            with fetched(run.artifact_uri, tracking_uri, names) as folder:
                return _read(folder, run, curves_only, is_local=run.run_id in places)

        with ThreadPoolExecutor(DOWNLOADS) as pool:
            files = dict(zip([run.run_id for run in stored], pool.map(fetch, stored), strict=True))
    return tuple(run.with_files(files[run.run_id]) if run.run_id in files else run for run in runs)


def _read_in_place(
    runs: Sequence[RunResult], places: Mapping[str, Path], tracking_uri: str, curves_only: bool
) -> dict[str, Files]:
    """Return the tables of runs by MLflow's id, from the packed copy or else from the folders of runs.

    Tables read from folders are added to the copy.
    """
    copies = Copies(tracking_uri, runs[0].experiment_id if runs else "")
    present, missing, files = copies.load(), {}, {}
    for run in runs:
        folder = places[run.run_id]
        state = state_of(folder, run) if copies.path else ""
        copied_state, packed = present.get(run.run_id, ("", b""))
        tables = unpack(packed) if state and state == copied_state else None
        if tables is None or run.metric not in tables.curve:
            tables = _read(folder, run, curves_only, is_local=True)
            if state and not (tables.unread or curves_only):
                missing[run.run_id] = state, pack(tables)
        files[run.run_id] = Files(tables.curve, unread=tables.unread) if curves_only else tables
    copies.add(missing)
    return files


def _read(folder: Path, run: RunResult, curves_only: bool, *, is_local: bool) -> Files:
    """Return the tables of a run; the reason for unreadable tables names a local folder."""
    files = read(folder, run, curves_only)
    return replace(files, unread=f"{files.unread} in {folder}") if files.unread and is_local else files
