"""A small store, and ways to damage it: its database, the files of one run, what else lies in the folder."""

import random
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import pyarrow as pa
import pyarrow.parquet as pq
import yaml
from in_process import compute

from benchmarks.mlflow_store import run_result
from benchmarks.mlflow_store.delivery import Delivery
from benchmarks.mlflow_store.outbox import Announcement, Outbox
from benchmarks.mlflow_store.store import Store
from benchmarks.suite.suite import PlannedRun, load, tasks
from fl_core.problems.models.model import Model
from fl_core.recorded_names import Origin, StudyStatus, Tag
from tuning.plan import plan

SUITE = {
    "name": "small",
    "seeds": 2,
    "problem": {"name": "digits", "clients": 4, "target": 0.2},
    "budget": {"updates": 12},
    "evaluations": 2,
    "diagnostics": {"gradient": 4},
    "strategies": ["asgd", {"name": "fedbuff", "buffer": 2}],
}

Damage = Callable[[Store], object]
Column = list[Any]  # of a table of a run


def fill(store: Store) -> None:
    """Four runs and a study of two trials; beside the store lies the suite they are of."""
    suite = store.folder.with_name("small.yaml")
    suite.write_text(yaml.safe_dump(SUITE))
    found = tasks(load(str(suite)).runs())
    outbox = Outbox(store.outbox)
    delivery = Delivery(store, outbox)
    places = {task.key: task.place for task in found if isinstance(task, PlannedRun)}
    delivery.announce(Announcement("small", "", places))
    with mock.patch.object(Model, "pooled_steps", 5):  # how good the baselines are matters not
        for task in found:
            compute(task, outbox)
    study = plan(load(str(suite), tuned=False)).studies[0]
    trials = [run for at in range(2) for run in study.runs(at, {"local_lr": 0.1 + at}, Origin.GRID, (1000,))]
    tags = study.tags() | {
        Tag.IDENTITY: study.identity,
        Tag.STATUS: StudyStatus.FINISHED,
        Tag.SPACE: {"local_lr": {"low": 0.01, "high": 2.0, "log": True}},
        Tag.SEEDS: [1000],
    }
    delivery.flush()
    known = {str(tag): run_result.text(value) for tag, value in tags.items() if value not in (None, {}, [])}
    delivery.announce(
        Announcement("small.tuning", "", {run.key: run.place for run in trials}, studies=[known])
    )
    for run in trials:
        compute(run, outbox)
    delivery.close()


def damages(store: Store) -> dict[str, Damage]:
    """Every way to damage a copy of the store, by name."""
    return dict([*of_database(store), *of_files(store), *of_folder()])


# -- the database ---------------------------------------------------------------------------------

ROWS = (
    "alembic_version", "experiments", "experiment_tags", "runs", "tags", "params", "metrics",
    "latest_metrics", "datasets", "inputs", "input_tags",
)  # fmt: skip
VALUES = ("NULL", "'x'", "-1", "1000000000000000000", "X'ff00'", "''")
TAGS = (
    "key", "kind", "scenario", "strategy", "seed", "status", "metric", "metrics", "target", "show",
    "higher_is_better", "versions", "data", "code", "wall_seconds", "trial", "identity", "pruned", "space",
    "seeds", "objective", "direction", "trials", "importance", "evaluate", "mean_of",
)  # fmt: skip


def of_database(store: Store) -> Iterator[tuple[str, Damage]]:
    """Tables, columns, values, tags; and the file itself."""
    with closing(sqlite3.connect(store.database)) as opened:
        for (table,) in opened.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY 1"):
            yield f"table {table} dropped", sql(f"DROP TABLE {table}")
        for table in ROWS:
            yield f"rows of {table} deleted", sql(f"DELETE FROM {table}")
            for _, column, *_ in opened.execute(f"PRAGMA table_info({table})").fetchall():
                rename = f"ALTER TABLE {table} RENAME COLUMN {column} TO x"
                yield f"column {table}.{column} renamed", sql(rename)
                for value in VALUES:
                    update = f"UPDATE OR IGNORE {table} SET {column} = {value}"
                    yield f"{table}.{column} = {value}", sql(update)
    for tag in TAGS:
        where = f"WHERE key = 'asyncfl.{tag}'"
        yield f"tag {tag} deleted", sql(f"DELETE FROM tags {where}")
        for value in VALUES[1:]:
            yield f"tag {tag} = {value}", sql(f"UPDATE tags SET value = {value} {where}")
    size = store.database.stat().st_size
    for length in (0, 1, 50, 100, 4096, size // 3, size // 2, size - 4096, size - 1):
        yield f"database of {length} bytes", partial(change, change_by=lambda old, n=length: old[:n])
    for page in (0, 1, 2, 5, 20, 50):
        at = 4096 * page
        yield (
            f"page {page} zeroed",
            partial(change, change_by=lambda old, at=at: old[:at] + bytes(4096) + old[at + 4096 :]),
        )
    yield "database is text", partial(change, change_by=lambda _: b"a shopping list, and a long one\n" * 999)
    yield "database is a folder", lambda store: in_place_of(store.database).mkdir()
    yield "database is a broken link", lambda store: in_place_of(store.database).symlink_to("nowhere.db")
    yield "database is gone", lambda store: store.database.unlink()
    yield "noise in its journal", put("mlflow.db-journal", random.Random(0).randbytes(9000))


def sql(statement: str) -> Damage:
    """A change by hand, as far as keys allow it."""

    def damage(store: Store) -> None:
        with closing(sqlite3.connect(store.database)) as opened, opened, suppress(sqlite3.IntegrityError):
            opened.execute(statement)

    return damage


def change(store: Store, change_by: Callable[[bytes], bytes]) -> None:
    """Change the bytes of the database."""
    store.database.write_bytes(change_by(store.database.read_bytes()))


def in_place_of(path: Path) -> Path:
    """The path, with nothing there any more."""
    path.unlink()
    return path


# -- the files of one run -------------------------------------------------------------------------

COLUMNS: dict[str, Callable[[Column], pa.Array]] = {
    "null": lambda old: pa.array([None] * len(old), pa.float64()),
    "null in one row": lambda old: pa.array([None, *old[1:]]),
    "of no type": lambda old: pa.nulls(len(old)),
    "text": lambda old: pa.array(["x"] * len(old)),
    "numbers as text": lambda old: pa.array(list(map(str, old))),
    "lists": lambda old: pa.array([[1]] * len(old)),
    "truth": lambda old: pa.array([True] * len(old)),
    "times": lambda old: pa.array([0] * len(old), pa.timestamp("us")),
    "negative": lambda old: pa.array([-3] * len(old)),
    "10¹²": lambda old: pa.array([10**12] * len(old)),
    "10¹⁸ in one row": lambda old: pa.array([10**18, *(int(one or 0) for one in old[1:])]),
    "halves": lambda old: pa.array([0.5] * len(old)),
    "NaN": lambda old: pa.array([float("nan")] * len(old)),
    "infinite": lambda old: pa.array([float("inf")] * len(old)),
    "in reverse": lambda old: pa.array(old[::-1]),
}
ROWS_OF_A_BOMB = 100_000_000


def of_files(store: Store) -> Iterator[tuple[str, Damage]]:
    """Each table of one run, and each of its columns."""
    for name in ("curve.parquet", "arrivals.parquet", "clients.parquet", "diagnostics.parquet"):
        path = first(store, name)
        whole, columns = path.read_bytes(), pq.read_schema(path).names
        bits = bytearray(whole)
        bits[len(whole) // 3] ^= 8
        yield f"{name} is gone", lambda store, name=name: first(store, name).unlink()
        yield f"{name} is a folder", lambda store, name=name: in_place_of(first(store, name)).mkdir()
        for how, content in {
            "is empty": b"",
            "is cut": whole[: len(whole) // 2],
            "is text": b"time,client\n1,2\n",
            "is its ends alone": b"PAR1 no PAR1",
            "has a hole": whole[:40] + bytes(60) + whole[100:],
            "has one other bit": bytes(bits),
        }.items():
            yield f"{name} {how}", lambda store, name=name, new=content: first(store, name).write_bytes(new)
        for how, other in {
            "has no rows": lambda old: old.slice(0, 0),
            "has one row": lambda old: old.slice(0, 1),
            "has its rows twice": lambda old: pa.concat_tables([old, old]),
            "is another table": lambda _: pa.table({"x": [1]}),
            f"has {ROWS_OF_A_BOMB:,} rows": lambda old: old.slice(0, 1),
        }.items():
            yield f"{name} {how}", partial(rewrite, name=name, other=other, bomb="000" in how)
        for column in columns:
            yield f"{name} without {column}", partial(rewrite, name=name, other=without(column))
            for how, make in COLUMNS.items():
                yield f"{name}: {column} {how}", partial(rewrite, name=name, other=exchanged(column, make))
    yield "artifacts are gone", lambda store: shutil.rmtree(store.artifacts)
    yield "artifacts are a file", lambda store: (shutil.rmtree(store.artifacts), put("artifacts", b"")(store))


def first(store: Store, name: str) -> Path:
    """A file of one of the runs."""
    return min(store.artifacts.glob(f"small/*/artifacts/{name}"))


def rewrite(store: Store, name: str, other: Callable[[pa.Table], pa.Table], *, bomb: bool = False) -> None:
    """Write another table in the place of a run's; as a bomb, a few kilobytes that say so many rows."""
    path = first(store, name)
    table = other(pq.read_table(path))
    pq.write_table(table.take([0] * 1_000_000) if bomb else table, path, compression="zstd")
    if bomb:
        said, million, content = path.with_name("said"), pq.read_metadata(path), path.read_bytes()
        footer = 8 + int.from_bytes(content[-8:-4], "little")
        for _ in range(ROWS_OF_A_BOMB // 1_000_000 - 1):
            million.append_row_groups(pq.read_metadata(path))
        million.write_metadata_file(said)
        path.write_bytes(content[:-footer] + said.read_bytes()[4:])
        said.unlink()


def without(column: str) -> Callable[[pa.Table], pa.Table]:
    return lambda table: table.drop_columns(column)


def exchanged(column: str, make: Callable[[Column], pa.Array]) -> Callable[[pa.Table], pa.Table]:
    def exchange(table: pa.Table) -> pa.Table:
        at = table.column_names.index(column)
        return table.set_column(at, column, make(table.column(column).to_pylist()))

    return exchange


# -- what else lies there -------------------------------------------------------------------------


def of_folder() -> Iterator[tuple[str, Damage]]:
    """Outbox, pages, lock."""
    yield "outbox is a file", lambda store: (shutil.rmtree(store.outbox), put("outbox", b"")(store))
    yield "a file in the outbox", put("outbox/x", b"")
    yield "an empty record", lambda store: (store.outbox / "small" / "k").mkdir(parents=True)
    yield "a record of text", put("outbox/small/k/result.json", b"x")
    yield "a record of another kind", put("outbox/small/k/result.json", b'{"kind": 1}')
    for text in ("x", "[]", '{"description": 1, "places": []}', '{"description": "", "places": {"k": 1}}'):
        yield f"suite.json is {text}", put("outbox/small/suite.json", text.encode())
    yield "reports is a file", put("reports", b"")
    yield "the page is not text", put("reports/small.html", b"\xff\xfe\x00")
    yield "the page is a folder", lambda store: (store.reports / "small.html").mkdir(parents=True)
    yield "the lock is a folder", lambda store: (store.folder / ".lock").mkdir()


def put(name: str, content: bytes) -> Damage:
    """A file in the store."""

    def damage(store: Store) -> None:
        path = store.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)

    return damage
