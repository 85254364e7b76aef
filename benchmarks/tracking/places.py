"""Where the files of runs lie: in the store's own folder first, since a store may be moved or copied.

MLflow records absolute addresses. In a store of ours they end in `artifacts/<suite>/<run>/artifacts`, and the
database lies beside the first of these folders: files are looked up there, whatever precedes that part of the
address.
"""

import re
import sqlite3
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit
from urllib.request import url2pathname

from benchmarks.tracking import database
from benchmarks.tracking.store import Store

ARTIFACTS = "artifacts"


def place(uri: str, tracking_uri: str) -> Path | None:
    """The folder of a run's files on this machine, from the address in MLflow; None if they lie elsewhere.

    It need not exist: lost files are reported as missing from the store's own folder.
    """
    recorded, file = local_path(uri), database.file(tracking_uri)
    if recorded is None or file is None:
        return recorded
    here = file.absolute().parent.joinpath(ARTIFACTS, *recorded.parts[-3:])
    ours = recorded.parts[-4:-3] == (ARTIFACTS,)
    return here if here.is_dir() or (ours and not recorded.is_dir()) else recorded


def are_lost(uri: str, tracking_uri: str, names: Iterable[str]) -> bool:
    """Whether a run recorded in an SQLite file lacks some of its files, which are kept nowhere else."""
    folder = place(uri, tracking_uri)
    if folder is None or database.file(tracking_uri) is None:
        return False
    return not all((folder / name).exists() for name in names)


@contextmanager
def fetched(uri: str, tracking_uri: str, names: Iterable[str]) -> Iterator[Path]:
    """The folder with these files of a run: its own, or one to which they are fetched, as long as this lasts.

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
    """The folder that an artifact address names on this machine; None if it lies elsewhere."""
    parts = urlsplit(uri)
    if parts.scheme == "file":
        return Path(url2pathname(parts.path))
    return Path(uri) if parts.scheme == "" or re.fullmatch("[a-zA-Z]", parts.scheme) else None


def settle(store: Store) -> str:
    """Give MLflow the present addresses of a store that was moved or copied, for its server and for new runs.

    Returns why it could not be done; empty if it was, or if nothing had to be. Another MLflow store than the
    folder's own is left as it is.
    """
    if store.tracking is not None or not store.database.is_file():
        return ""
    try:
        with closing(sqlite3.connect(store.database, timeout=20)) as opened, opened:
            for experiment, old, new in list(_moved(opened, store.artifacts)):
                opened.execute(
                    "UPDATE runs SET artifact_uri = ? || substr(artifact_uri, ?) "
                    "WHERE experiment_id = ? AND substr(artifact_uri, 1, ?) = ?",
                    (new, len(old) + 1, experiment, len(old) + 1, f"{old}/"),
                )
                opened.execute(
                    "UPDATE experiments SET artifact_location = ? WHERE experiment_id = ?", (new, experiment)
                )
    except sqlite3.Error as error:
        return f"{store.database} still has the addresses of the folder it was moved from: {error}"
    return ""


def _moved(opened: sqlite3.Connection, artifacts: Path) -> Iterator[tuple[int, str, str]]:
    """Experiments whose files are in the store's folder, not where MLflow thinks: id, old and new address."""
    for experiment, old in opened.execute("SELECT experiment_id, artifact_location FROM experiments"):
        recorded = local_path(old) if isinstance(old, str) else None
        if recorded is None or recorded.parent.name != ARTIFACTS:
            continue
        here = artifacts / recorded.name
        if here.is_dir() and not (recorded.is_dir() and here.samefile(recorded)):
            yield experiment, old, here.as_uri()
