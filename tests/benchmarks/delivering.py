"""A process that brings records into a database which others make at the same moment. It imports no torch."""

import shutil
import time
from collections.abc import Sequence
from multiprocessing.synchronize import Barrier
from pathlib import Path
from unittest import mock

from benchmarks.mlflow_store import database
from benchmarks.mlflow_store.delivery import Delivery
from benchmarks.mlflow_store.outbox import Outbox
from benchmarks.mlflow_store.store import Store

WINDOW = 0.3  # seconds in which a database is being made


def deliver(records: Path, databases: Sequence[Path], empty: Path, together: Barrier) -> None:
    """Bring the records of an outbox into each database; AssertionError if any is left."""

    def make_slowly(path: Path) -> None:
        time.sleep(WINDOW)
        shutil.copy(empty, path)

    with mock.patch.object(database, "make_empty_database", make_slowly):
        for number, path in enumerate(databases):
            store = Store(records.with_name(f"{records.name}.{number}"), f"sqlite:///{path}")
            outbox = Outbox(Path(shutil.copytree(records, store.outbox)))
            delivery = Delivery(store, outbox)
            together.wait()
            delivery.close()
            assert not outbox.waiting(), delivery.pending_reason
