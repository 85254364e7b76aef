"""Stores with an empty MLflow database, made once in a process: MLflow takes seconds to make its tables."""

import tempfile
from functools import cache
from pathlib import Path

from benchmarks.mlflow_store import database
from benchmarks.mlflow_store.store import Store

make_tables = database.make_tables  # the real one: conftest.py puts a copy in its place


@cache
def empty_database() -> bytes:
    """The file of a database without anything in it."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "mlflow.db"
        make_tables(path)
        return path.read_bytes()


def new_store(folder: Path) -> Store:
    """Return a store in a folder that is created, with a database without anything in it."""
    store = Store(folder)
    store.folder.mkdir()
    store.database.write_bytes(empty_database())
    return store
