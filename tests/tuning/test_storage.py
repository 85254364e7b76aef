"""Storages that are not there, or belong to somebody else: one line, and nothing is written."""

import errno
import sqlite3
from pathlib import Path

import pytest
from sqlalchemy.exc import OperationalError

from benchmarks.errors import UserError
from benchmarks.mlflow_store.store import Store
from tuning.storage import open_storage, storage_errors_explained


@pytest.mark.parametrize(
    ("where", "shown"),
    [
        ("mysql://somewhere/x", None),
        ("sqlite://x", None),
        ("postgresql://me:s3c/ret@host:x/db", "postgresql+psycopg://host:x/db"),
        ("postgresql://[host/db", "postgresql+psycopg://[host/db"),
        ("postgresql+psycopg://me:secret@127.0.0.1:9/x", "postgresql+psycopg://127.0.0.1:9/x"),
        ("/proc/no/such/place", None),
        ("/tmp", None),
        ("sqlite:////proc/no/x.db", None),
    ],
)
def test_what_cannot_be_used_is_one_line(where: str, shown: str | None) -> None:
    if "psycopg" in where:
        pytest.importorskip("psycopg", reason="psycopg is not installed")
    with pytest.raises(UserError) as caught:
        open_storage(where)
    (line,) = caught.value.lines
    assert line.startswith(f"--storage {shown or where}: ") and "secret" not in line and "s3c" not in line


@pytest.mark.parametrize("text", ['{"some": "json"}\n', "\x00\xff"])
def test_another_program_s_file_is_not_touched(tmp_path: Path, text: str) -> None:
    path = tmp_path / "notes.txt"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(UserError, match="is not an Optuna journal"):
        open_storage(str(path))
    assert path.read_bytes() == text.encode("latin-1") and list(tmp_path.iterdir()) == [path]


def test_half_a_line_in_a_journal_damages_nothing_that_follows(tmp_path: Path) -> None:
    """A full disk, or a killed process, may leave one: the next process removes it."""
    import optuna

    path = tmp_path / "tuning.journal"
    first = open_storage(str(path)).optuna
    optuna.create_study(study_name="first", storage=first)
    with path.open("ab") as file:
        file.write(b'{"op_code":0,"worker_id":"half a li')
    optuna.create_study(study_name="second", storage=open_storage(str(path)).optuna)
    there = open_storage(str(path)).optuna.get_all_studies()
    assert [study.study_name for study in there] == ["first", "second"]


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.ENOSPC, "No space left on device"),
        OperationalError("INSERT …", {}, sqlite3.OperationalError("database or disk is full")),
    ],
)
def test_a_full_disk_comes_with_advice(error: Exception) -> None:
    with pytest.raises(UserError, match=r"^--storage x: .*: free disk space"), storage_errors_explained("x"):
        raise error


def test_mlflow_s_database_is_not_touched(store: Store) -> None:
    before = store.database.read_bytes()
    with pytest.raises(UserError, match="'alembic_version'"):
        open_storage(f"sqlite:///{store.database}")
    assert store.database.read_bytes() == before


def test_a_file_that_is_no_database(tmp_path: Path) -> None:
    (tmp_path / "x.db").write_text("not a database, but long enough to be taken for one" * 3)
    with pytest.raises(UserError, match="file is not a database"):
        open_storage(f"sqlite:///{tmp_path / 'x.db'}")


def test_sqlite_is_made_and_found_again(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'new' / 'tuning.db'}"
    open_storage(url)
    open_storage(url)
    with sqlite3.connect(tmp_path / "new" / "tuning.db") as database:
        assert database.execute("SELECT count(*) FROM trials").fetchone() == (0,)
