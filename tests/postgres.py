"""A real PostgreSQL of a test's own, which nothing else can reach."""

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from patience import PATIENCE

USER = "tuner"


def address(folder: Path, database: str = "postgres", password: str = "") -> str:
    """Of a database in the cluster of that folder, which believes everyone: a password is only to be seen."""
    return f"postgresql+psycopg://{USER}:{password}@/{database}?host={folder}".replace(":@", "@")


@contextmanager
def cluster() -> Iterator[Path]:
    """PostgreSQL at work; the folder of its socket. Skips the test where PostgreSQL or psycopg is missing."""
    pytest.importorskip("psycopg", reason="psycopg is not installed")
    binaries = _binaries()
    if binaries is None:
        pytest.skip("PostgreSQL is not installed")
    user = "nobody" if os.geteuid() == 0 else None  # PostgreSQL refuses to run as root
    with tempfile.TemporaryDirectory(prefix="asyncfl-postgres-") as name:
        folder = Path(name)
        if user:
            shutil.chown(folder, user)
        data = folder / "data"
        made = subprocess.run(
            [binaries / "initdb", "-D", data, "-U", USER, "-A", "trust", "--no-sync"],
            user=user, cwd=folder, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert made.returncode == 0, made.stderr
        server = subprocess.Popen(
            [binaries / "postgres", "-D", data, "-k", folder, "-c", "listen_addresses=", "-c", "fsync=off"],
            user=user, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        try:
            _wait_for(server, folder)
            yield folder
        finally:
            server.send_signal(signal.SIGINT)
            server.wait(60)


def make_database(folder: Path, name: str) -> None:
    """An empty database in the cluster."""
    import psycopg

    with psycopg.connect(f"host={folder} user={USER} dbname=postgres", autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")


@contextmanager
def kept_from_adding(folder: Path, database: str, table: str, *, more: int) -> Iterator[Callable[[], bool]]:
    """Let at most so many rows be added to a table meanwhile; tells whether somebody waits to add another."""
    import psycopg

    where = f"host={folder} user={USER} dbname={database}"
    with psycopg.connect(where, autocommit=True) as connection:
        ((rows,),) = connection.execute(f"SELECT count(*) FROM {table}").fetchall()
        connection.execute("SELECT pg_advisory_lock(1)")
        connection.execute(
            f"""CREATE FUNCTION hold() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
                IF (SELECT count(*) FROM {table}) >= {rows + more} THEN
                    PERFORM pg_advisory_xact_lock(1);
                END IF;
                RETURN NEW;
            END $$;
            CREATE TRIGGER hold BEFORE INSERT ON {table} FOR EACH ROW EXECUTE FUNCTION hold()"""
        )
        yield lambda: bool(connection.execute("SELECT FROM pg_locks WHERE NOT granted").fetchall())
        connection.execute("SELECT pg_advisory_unlock(1)")
        connection.execute("DROP FUNCTION hold CASCADE")


def _binaries() -> Path | None:
    """Where PostgreSQL's programs are: on the path, or where Debian puts them."""
    on_path = shutil.which("initdb")
    found = [Path(on_path).parent] if on_path else sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    return found[-1] if found and (found[-1] / "postgres").exists() else None


def _wait_for(server: subprocess.Popen[bytes], folder: Path) -> None:
    import psycopg

    end = time.monotonic() + PATIENCE
    while True:
        try:
            psycopg.connect(f"host={folder} user={USER} dbname=postgres").close()
            return
        except psycopg.OperationalError:
            assert server.poll() is None and time.monotonic() < end
            time.sleep(0.1)
