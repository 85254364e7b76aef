"""Tables of runs for reports: from the files of each run, or from copies in a single SQLite file.

Without the copies, a report would open thousands of files, which takes minutes. Delivery copies the tables of
each run, and reports copy missing ones. A copy is valid as long as sizes and times of the run's own files
stay the same. Copies are no records: they may be deleted at any time.

Fixed: the form of copies, unless `FOLDER` changes with it: nothing else tells earlier copies apart.
"""

from __future__ import annotations

import functools
import json
import os
import sqlite3
import zlib
from collections.abc import Mapping
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path

import numpy as np

from benchmarks.mlflow_store import database, parquet
from benchmarks.mlflow_store.parquet import UnreadableTableError
from benchmarks.mlflow_store.run_result import Files, RunResult
from fl_core.recorded_names import ARRIVALS, CLIENTS, CURVE, DIAGNOSTICS, UPDATES, Name, Table
from fl_core.text import many

FOLDER = "packed"  # of copies, beside the database
TABLES, ARRAYS = ("curve", "clients", "diagnostics"), ("staleness", "participation")  # fields of `Files`
MAX_BYTES = 2**20  # of a run's files; larger ones are not copied, since reading takes longer than opening

Copy = tuple[str, bytes]  # state of a run's own files, and the packed tables


def tables_of(run: RunResult) -> tuple[Table, ...]:
    """Return the tables of a run; diagnostics only where recorded."""
    return (CURVE, ARRIVALS, CLIENTS, *([DIAGNOSTICS] if run.diagnosed else []))


def read(folder: Path, run: RunResult, curves_only: bool = False) -> Files:
    """Return the tables of a run from the run's folder, or only the curve."""
    files = Files()
    try:
        curve = parquet.arrays(folder, CURVE)
        if run.metric not in curve:
            raise UnreadableTableError(f"{CURVE.file}: no column {run.metric}")
        files = replace(files, curve=curve)
        if curves_only:
            return files
        clients = parquet.arrays(folder, CLIENTS)
        arrivals = parquet.arrays(folder, ARRIVALS, [Name.CLIENT, Name.STALENESS, Name.VERSION])
        senders = arrivals[Name.CLIENT]
        if len(senders) < (updates := curve[UPDATES][-1]):
            raise UnreadableTableError(f"{ARRIVALS.file}: {many(len(senders), 'row')} of {updates:,}")
        if (senders >= len(clients[Name.CLIENT])).any():
            raise UnreadableTableError(
                f"{ARRIVALS.file}: column {Name.CLIENT}: must be one in {CLIENTS.file}"
            )
        files = replace(
            files,
            clients=clients,
            staleness=np.stack(np.unique(arrivals[Name.STALENESS], return_counts=True)),
            participation=np.bincount(senders, minlength=len(clients[Name.CLIENT])),
        )
        if run.diagnosed:
            files = replace(files, diagnostics=parquet.arrays(folder, DIAGNOSTICS))
    except UnreadableTableError as fault:
        return replace(files, unread=str(fault))
    return files


def state_of(folder: Path, run: RunResult) -> str:
    """Return sizes and times of a run's files as text; empty for large files, or where a file is missing."""
    names = [table.file for table in tables_of(run)]
    try:
        with os.scandir(folder) as entries:
            by_name = {entry.name: entry.stat() for entry in entries if entry.name in names}
        files = [by_name[name] for name in names]
    except (OSError, KeyError):
        return ""
    states = [f"{file.st_size} {file.st_mtime_ns} {file.st_ctime_ns}" for file in files]
    return ", ".join(states) if sum(file.st_size for file in files) <= MAX_BYTES else ""


def copy_of(folder: Path, run: RunResult) -> Copy | None:
    """Return a copy of the files in a run's folder; None for large or unreadable files."""
    state = state_of(folder, run)
    if state and not (files := read(folder, run)).unread:
        return state, pack(files)
    return None


class Copies:
    """Copies of the tables of all runs of an experiment, given by MLflow's id, next to the database."""

    def __init__(self, tracking_uri: str, experiment: str) -> None:
        file = database.file(tracking_uri)  # None for a server, and so is the path: there are no copies
        self.path = file and file.absolute().parent / FOLDER / f"{file.stem}-{experiment}.db"

    def load(self) -> dict[str, Copy]:
        """Return the copy of each run by MLflow's id; a damaged file is deleted."""
        if self.path is None or not self.path.is_file():
            return {}
        try:
            with closing(database.open_file(self.path)) as connection:
                sound = connection.execute("PRAGMA quick_check(1)").fetchone() == ("ok",)
                rows = connection.execute("SELECT run, state, tables FROM runs ORDER BY rowid").fetchall()
        except sqlite3.Error:
            sound = False
        if not sound:
            with suppress(OSError):
                self.path.unlink()
            return {}
        return {run: (state, tables) for run, state, tables in rows}  # the newest of each run

    def add(self, copies: Mapping[str, Copy]) -> None:
        """Add copies by MLflow's id of the run; without effect where the file cannot be written to."""
        if self.path is None or not copies:
            return
        with suppress(OSError, sqlite3.Error):
            self.path.parent.mkdir(0o700, parents=True, exist_ok=True)
            with closing(sqlite3.connect(self.path, timeout=20)) as connection, connection:
                connection.execute("PRAGMA synchronous = OFF")
                connection.execute("CREATE TABLE IF NOT EXISTS runs (run TEXT, state TEXT, tables BLOB)")
                rows = ((run, *copy) for run, copy in copies.items())
                connection.executemany("INSERT INTO runs VALUES (?, ?, ?)", rows)


def pack(files: Files) -> bytes:
    """Return tables as bytes with a checksum: a line with names, types and shapes, then all values."""
    columns = [
        (table, name, np.asarray(values, str) if values.dtype == object else values)
        for table in TABLES
        for name, values in getattr(files, table).items()
    ]
    columns += [(name, "", getattr(files, name)) for name in ARRAYS]
    layout = [(table, name, values.dtype.str, values.shape) for table, name, values in columns]
    content = b"".join(values.tobytes() for _, _, values in columns)
    return zlib.compress(json.dumps(layout).encode() + b"\n" + content, 1)


def unpack(packed: bytes) -> Files | None:
    """Return the tables in the bytes of `pack`; None if damaged."""
    try:
        layout, _, content = zlib.decompress(packed).partition(b"\n")
    except (zlib.error, TypeError):
        return None
    tables: dict[str, dict[str, np.ndarray]] = {name: {} for name in (*TABLES, *ARRAYS)}
    at = 0
    for table, name, kind, shape in _columns(layout):
        values: np.ndarray = np.ndarray(shape, kind, content, at)
        at += values.nbytes
        tables[table][name] = values.astype(object) if kind.kind == "U" else values.copy()
    staleness, participation = (tables[name][""] for name in ARRAYS)
    return Files(tables["curve"], tables["clients"], staleness, participation, "", tables["diagnostics"])


@functools.lru_cache  # thousands of runs have the same
def _columns(layout: bytes) -> list[tuple[str, str, np.dtype, list[int]]]:
    """Return table, name, type and shape of every column, from the first line of `pack`."""
    return [(table, name, np.dtype(kind), shape) for table, name, kind, shape in json.loads(layout)]
