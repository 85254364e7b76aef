"""Locations of the files of runs: relative to the database, for stores to be moved or copied.

All code that reads or writes files of a run asks `place` or `fetched`. MLflow records absolute addresses.
Those of our stores end in `artifacts/<suite>/<run>/artifacts`, with the database beside the first of these
folders: files are read and written there, whatever precedes that part of the address. MLflow's own pages
follow the recorded address: for a moved store they show numbers, but no files.

Fixed: this rule, by which files of earlier and of moved stores are found.
"""

import functools
import re
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit
from urllib.request import url2pathname

from benchmarks.mlflow_store import database

ARTIFACTS = "artifacts"


def place(uri: str, tracking_uri: str) -> Path | None:
    """Return the local folder of a run's files, from the address in MLflow; None if the files are elsewhere.

    The folder need not exist: lost files are reported as missing from the store's own folder.
    """
    recorded, artifacts = local_path(uri), _artifacts_beside(tracking_uri, Path.cwd())
    if recorded is None or artifacts is None:
        return recorded
    beside_database = artifacts.joinpath(*recorded.parts[-3:])
    ours = recorded.parts[-4:-3] == (ARTIFACTS,)
    return beside_database if beside_database.is_dir() or (ours and not recorded.is_dir()) else recorded


@functools.cache  # thousands of runs have the same
def _artifacts_beside(tracking_uri: str, here: Path) -> Path | None:
    """Return the folder of artifacts beside a database, seen from the folder `here`; None for a server."""
    file = database.file(tracking_uri)
    return file and here / file.parent / ARTIFACTS


def are_lost(uri: str, tracking_uri: str, names: Iterable[str]) -> bool:
    """Return whether a run recorded in an SQLite file lacks any of the given files."""
    folder = place(uri, tracking_uri)
    if folder is None or database.file(tracking_uri) is None:
        return False
    return not all((folder / name).exists() for name in names)


@contextmanager
def fetched(uri: str, tracking_uri: str, names: Iterable[str]) -> Iterator[Path]:
    """Yield a folder with the given files of a run: the run's own folder, or a temporary copy.

    Files that cannot be fetched are missing there.
    """
    folder = place(uri, tracking_uri)
    if folder is not None:
        yield folder
        return
    from mlflow.artifacts import download_artifacts
    from mlflow.exceptions import MlflowException

    parts = urlsplit(uri)
    with tempfile.TemporaryDirectory() as scratch:
        for name in names:
            file = urlunsplit(parts._replace(path=f"{parts.path.rstrip('/')}/{name}"))
            with suppress(MlflowException, OSError):
                download_artifacts(artifact_uri=file, dst_path=scratch, tracking_uri=tracking_uri)
        yield Path(scratch)


def local_path(uri: str) -> Path | None:
    """Return the local folder named by an artifact address; None if the folder is elsewhere."""
    parts = urlsplit(uri)
    if parts.scheme == "file":
        return Path(url2pathname(parts.path))
    return Path(uri) if parts.scheme == "" or re.fullmatch("[a-zA-Z]", parts.scheme) else None
