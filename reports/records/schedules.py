"""Digests of schedules: when each client's update arrived, its start version, and its staleness."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from benchmarks.errors import UserError
from benchmarks.tracking.places import place

COLUMNS = (("time", "<f8"), ("client", "<i8"), ("staleness", "<i8"), ("version", "<i8"))


def schedules(tracking_uri: str, runs: Iterable[str]) -> dict[str, str]:
    """The digest of each run's arrivals, by MLflow's run id; UserError where they cannot be read."""
    from mlflow import MlflowClient
    from mlflow.artifacts import download_artifacts
    from mlflow.exceptions import MlflowException
    from pyarrow import ArrowException

    client, found = MlflowClient(tracking_uri), {}
    with tempfile.TemporaryDirectory() as scratch:
        for run in runs:
            try:
                folder = place(client.get_run(run).info.artifact_uri or "", tracking_uri)
                if folder is None:  # it lies on another machine
                    fetched = Path(scratch) / run
                    fetched.mkdir()
                    folder = Path(
                        download_artifacts(
                            run_id=run,
                            artifact_path="arrivals.parquet",
                            dst_path=str(fetched),
                            tracking_uri=tracking_uri,
                        )
                    ).parent
                found[run] = digest(folder / "arrivals.parquet")
            except (MlflowException, OSError, ArrowException) as error:
                raise UserError(f"arrivals.parquet of run {run}: {type(error).__name__}") from None
    return found


def digest(path: Path) -> str:
    """A hash of all arrivals in a file, the same on every machine."""
    from pyarrow.parquet import read_table

    table = read_table(path, columns=[name for name, _ in COLUMNS], use_threads=False)
    text = hashlib.sha256()
    for name, kind in COLUMNS:
        text.update(np.ascontiguousarray(table.column(name).to_numpy(), kind).tobytes())
    return text.hexdigest()[:16]
