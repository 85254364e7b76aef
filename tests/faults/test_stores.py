"""Stores with names that are no addresses, copies of stores in use, and names that were never recorded."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from benchmarks.commands.compare import choose, load, with_metric
from benchmarks.errors import UserError
from benchmarks.tracking.store import Store
from reports.records import store as records
from tests.benchmarks.damages import damages, fill, sql


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory, empty_database: Path) -> Store:
    store = Store(tmp_path_factory.mktemp("stores") / "store")
    store.folder.mkdir()
    shutil.copy(empty_database, store.database)
    fill(store)
    return store


@pytest.mark.parametrize("name", ["runs?lr=1", "runs#1", "runs%20a"])
def test_a_folder_whose_name_ends_an_address_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(UserError):
        Store(tmp_path / name)


def test_other_folders_hold_their_own_database(tmp_path: Path) -> None:
    from benchmarks.tracking import database

    name = "100% läufe lr=1 a&b+c;d"
    store = Store(tmp_path / name)
    store.make()
    database.create(store.tracking_uri)
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert store.database.is_file()


def test_a_time_to_target_without_a_target_is_refused(filled: Store, tmp_path: Path) -> None:
    copy = Store(Path(shutil.copytree(filled.folder, tmp_path / "copy")))
    damages(filled)["tag target deleted"](copy)
    _, scenarios = choose(load(copy, "small", ("asgd", "fedbuff")), "asgd", "fedbuff", None)
    with pytest.raises(UserError, match="no target"):
        with_metric(scenarios, "time_to_target")


def test_a_strategy_whose_records_are_damaged_is_told_as_damaged(
    filled: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copy = Store(Path(shutil.copytree(filled.folder, tmp_path / "copy")))
    asgd = "SELECT run_uuid FROM tags WHERE key = 'asyncfl.strategy' AND value LIKE 'ASGD%'"
    sql(f"UPDATE tags SET value = 'x' WHERE key = 'asyncfl.seed' AND run_uuid IN ({asgd})")(copy)
    with pytest.raises(UserError):
        choose(load(copy, "small", ("asgd", "fedbuff")), "asgd", "fedbuff", None)
    assert "damaged" in capsys.readouterr().err


def test_a_copy_of_the_database_before_its_artifacts_is_whole(filled: Store, tmp_path: Path) -> None:
    copy = Store(tmp_path / "copy")
    copy.folder.mkdir()
    with (
        closing(sqlite3.connect(filled.database)) as source,
        closing(sqlite3.connect(copy.database)) as target,
    ):
        source.backup(target)
    shutil.copytree(filled.artifacts, copy.artifacts)
    shutil.move(filled.artifacts, filled.artifacts.with_name("away"))
    try:
        suite = records.load(copy.tracking_uri, "small")
    finally:
        shutil.move(filled.artifacts.with_name("away"), filled.artifacts)
    assert len(suite.runs) == suite.shown == 4


def test_a_copy_that_lacks_files_says_so(
    filled: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copy = Store(Path(shutil.copytree(filled.folder, tmp_path / "copy")))
    min(copy.artifacts.glob("small/*/artifacts/curve.parquet")).unlink()
    suite = records.load(copy.tracking_uri, "small")
    assert len(suite.unread) == 1
    assert "copy" in capsys.readouterr().err
