"""Small campaigns on quadratics, in stores of their own."""

import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml
from small import SUITE, Make, Write

from benchmarks import database
from benchmarks.fork_server import warm_up
from benchmarks.store import Store
from benchmarks.suite import load
from benchmarks.tracking import keep_quiet
from tuning.plan import plan


@pytest.fixture(scope="session")
def empty_database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An MLflow database without anything in it."""
    keep_quiet()
    path = tmp_path_factory.mktemp("mlflow") / "mlflow.db"
    database.create(f"sqlite:///{path}")
    return path


@pytest.fixture
def store(tmp_path: Path, empty_database: Path) -> Store:
    """A store of the test's own, with a database in it."""
    store = Store(tmp_path / "results")
    store.folder.mkdir()
    shutil.copy(empty_database, store.database)
    return store


@pytest.fixture(scope="session")
def fork_server() -> None:
    """Workers are forked from a process that has imported everything."""
    warm_up()


@pytest.fixture
def sluggish(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes `sluggish:Slow` known, a strategy whose server takes its time."""
    monkeypatch.syspath_prepend(str(Path(__file__).parents[1] / "benchmarks"))


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes a suite, with other keys than the usual ones where they are given."""

    def _write(**changed: Any) -> Path:
        path = tmp_path / "small.yaml"
        path.write_text(yaml.safe_dump({**SUITE, **changed}))
        return path

    return _write


@pytest.fixture
def make(write: Write) -> Make:
    """The campaign of such a suite."""
    return lambda **changed: plan(load(str(write(**changed)), tuned=False))
