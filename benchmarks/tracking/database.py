"""MLflow's SQLite file: recognised before anything touches it, and created whole or not at all."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path
from urllib.parse import urlsplit

from benchmarks.errors import UserError

SCHEMES = ("sqlite", "http", "https", "postgresql", "mysql", "mssql")


def check(uri: str) -> None:
    """UserError if `uri` is no MLflow store, or a file of something else, into which MLflow would write."""
    scheme, colon, _ = uri.partition("://")
    if not colon or scheme.partition("+")[0] not in SCHEMES:
        known = "sqlite:///FILE, http(s)://…, postgresql://…, mysql://… or mssql://…"
        raise UserError(f"--tracking-uri {uri}: must be {known}")
    _must_be_an_address(uri)
    path = file(uri)
    if path is None or not path.exists() or (path.is_file() and not path.stat().st_size):
        return
    tables = _tables(path)
    if tables and not {"alembic_version", "experiments"} <= tables:
        raise UserError(
            f"{path} is not MLflow's: it holds other tables, such as '{min(tables)}'; name another file"
        )


def _must_be_an_address(uri: str) -> None:
    try:
        parts = urlsplit(uri)
        host, _ = parts.hostname, parts.port
    except ValueError as error:  # of the port, or of brackets around a host
        raise UserError(f"--tracking-uri {uri}: is no address: {error}") from None
    if parts.scheme == "sqlite" and not (uri.startswith("sqlite:///") and parts.path.strip("/")):
        raise UserError(f"--tracking-uri {uri}: names no file: must be sqlite:///FILE")
    if parts.scheme in {"http", "https"} and not host:
        raise UserError(f"--tracking-uri {uri}: names no host")


def file(uri: str) -> Path | None:
    """The SQLite file that `uri` names, or None."""
    prefix = "sqlite:///"
    return Path(uri.removeprefix(prefix).partition("?")[0]) if uri.startswith(prefix) else None


def is_new(uri: str) -> bool:
    """Whether it names an SQLite file that is not there, so that nothing can be recorded in it."""
    path = file(uri)
    return path is not None and not path.exists()


def create(uri: str) -> None:
    """Make MLflow's tables in a file that is not there; a killed process leaves no half of them."""
    from mlflow import MlflowClient

    path = file(uri)
    assert path is not None
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        MlflowClient(f"sqlite:///{partial}")
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def _tables(path: Path) -> set[str]:
    try:
        # Not `ro`: what a killed process was writing has to be rolled back before it can be read.
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=rw", uri=True)) as database:
            return {
                name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
            }
    except sqlite3.Error as error:
        raise UserError(f"{path} cannot be read as an SQLite database: {error}") from None
