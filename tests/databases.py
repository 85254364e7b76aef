"""Stores with an empty MLflow database, read once in a process."""

import tempfile
from functools import cache
from pathlib import Path

from benchmarks.mlflow_store import database
from benchmarks.mlflow_store.store import Store


@cache
def empty_database() -> bytes:
    """The file of a database without anything in it."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "mlflow.db"
        database.make_empty_database(path)
        return path.read_bytes()


def new_store(folder: Path) -> Store:
    """Return a store in a folder that is created, with a database without anything in it."""
    store = Store(folder)
    store.folder.mkdir()
    store.database.write_bytes(empty_database())
    return store
