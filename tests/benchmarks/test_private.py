"""Who may read what a command leaves: its owner, unless it is made to be passed on."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from subprocess import CompletedProcess

import pytest
from recorded import write_suite

from benchmarks.mlflow_store import database
from tuning.storage import open_storage


@pytest.fixture(autouse=True)
def open_umask() -> Iterator[None]:
    """Rights for everyone, unless a program takes care."""
    before = os.umask(0)
    yield
    os.umask(before)


def rights(path: Path) -> str:
    return f"{path.stat().st_mode & 0o777:o}"


@pytest.mark.slow
@pytest.mark.usefixtures("fork_server")
def test_results_are_their_owner_s_and_pages_may_be_passed_on(
    tmp_path: Path, typed: Callable[..., CompletedProcess[str]]
) -> None:
    suite = write_suite(tmp_path)
    done = typed("run", str(suite), "--workers", "1", "--quiet", "--store", "new/results")
    assert done.returncode == 0, done.stderr
    store = tmp_path / "new" / "results"
    assert (rights(store), rights(store / "outbox")) == ("700", "700")
    assert rights(store / "mlflow.db") == "600"
    assert rights(store / "reports" / "small.html") == "666"
    done = typed("report", "small", "--store", str(store), "--files", "figures")
    assert done.returncode == 0, done.stderr
    assert {rights(file) for file in (tmp_path / "figures").iterdir()} == {"666"}


@pytest.mark.parametrize("address", ["{}/tuning.journal", "sqlite:///{}/tuning.db"])
def test_studies_are_their_owner_s(tmp_path: Path, address: str) -> None:
    folder = tmp_path / "studies"
    open_storage(address.format(folder))
    (file,) = (path for path in folder.iterdir() if path.is_file())
    assert (rights(folder), rights(file)) == ("700", "600")


def test_what_is_there_keeps_its_rights(tmp_path: Path) -> None:
    folder, journal = tmp_path / "shared", tmp_path / "shared" / "tuning.journal"
    folder.mkdir(0o770)
    journal.touch(0o660)
    open_storage(str(journal))
    database.create(f"sqlite:///{folder}/mlflow.db")
    assert (rights(folder), rights(journal), rights(folder / "mlflow.db")) == ("770", "660", "600")
