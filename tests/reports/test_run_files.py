"""Copies of tables of runs: the same arrays as the runs' own files, and never more trusted than these."""

from __future__ import annotations

import os
import shutil
import sqlite3
from contextlib import closing
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest
from in_process import deliver
from synthetic import Fake, curve, write_store

from benchmarks.mlflow_store import run_files
from benchmarks.mlflow_store.run_result import Files, RunResult
from benchmarks.mlflow_store.store import Store
from reports.records import suite_reader as records

SEEDS = 4


@pytest.fixture(scope="module")
def written(store: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a store with the suite 'packed', whose tables differ in columns and types."""
    folder = tmp_path_factory.mktemp("written")
    shutil.copy(store.removeprefix("sqlite:///"), folder / "mlflow.db")
    made = curve([0.1, float("nan"), 0.9], [0, 10, 20])
    diagnosed = {"iteration": [0, 5], "noise_sq": [2.0, 1.0]}
    fakes = [
        Fake(seed=0, curve=made),
        Fake(seed=1, curve={**made, "bytes": [0, 7, 9]}),
        Fake(seed=2, curve={**made, "bytes": [0.0, 7.5, float("inf")]}),
        Fake(seed=3, curve=made, diagnostics=diagnosed, totals={"diagnostics/noise_sq": 1.5}),
    ]
    write_store(f"sqlite:///{folder}/mlflow.db", (folder / "files").as_uri(), "packed", fakes)
    return folder


@pytest.fixture
def uri(written: Path, tmp_path: Path) -> str:
    """The address of a copy of that store, which the test may change."""
    shutil.copytree(written, tmp_path, dirs_exist_ok=True)
    with closing(sqlite3.connect(tmp_path / "mlflow.db")) as database, database:
        moved = (written.as_uri(), tmp_path.as_uri())
        database.execute("UPDATE runs SET artifact_uri = replace(artifact_uri, ?, ?)", moved)
        database.execute("UPDATE experiments SET artifact_location = replace(artifact_location, ?, ?)", moved)
    return f"sqlite:///{tmp_path}/mlflow.db"


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Ids of the runs whose own files were read."""
    opened = []
    read = records.read

    def counted(folder: Path, run: RunResult, curves_only: bool = False) -> Files:
        opened.append(run.run_id)
        return read(folder, run, curves_only)

    monkeypatch.setattr(records, "read", counted)
    return opened


def loaded(uri: str, suite: str = "packed") -> dict[str, Files]:
    """The tables of the suite's runs, by MLflow's id."""
    return {run.run_id: run.files for run in records.load(uri, suite).runs}


def copy_in(folder: Path) -> Path:
    (copy,) = (folder / run_files.FOLDER).iterdir()
    return copy


def must_be_equal(first: dict[str, Files], second: dict[str, Files]) -> None:
    """Assert that order, names, types and values of all arrays are the same."""
    assert list(first) == list(second)
    for run, files in first.items():
        for attribute in (field.name for field in fields(Files)):
            one, other = getattr(files, attribute), getattr(second[run], attribute)
            if isinstance(one, dict):
                assert list(one) == list(other), attribute
            pairs = [(one[name], other[name]) for name in one] if isinstance(one, dict) else [(one, other)]
            for ours, theirs in pairs:
                assert np.asarray(ours).dtype == np.asarray(theirs).dtype
                np.testing.assert_array_equal(ours, theirs)


def test_the_copy_gives_what_the_files_give(uri: str, opened: list[str]) -> None:
    from_files = loaded(uri)
    assert len(opened) == SEEDS
    opened.clear()
    must_be_equal(from_files, loaded(uri))
    assert opened == []
    curves = records.load(uri, "packed", curves_only=True).runs
    assert opened == [] and all(run.files.curve and not run.files.clients for run in curves)


def test_delivery_copies_what_the_files_give(tmp_path: Path, opened: list[str]) -> None:
    store = Store(tmp_path / "store")
    store.make()
    deliver(tmp_path, store)
    delivered = loaded(store.tracking_uri, "small")
    assert len(delivered) == 4 and opened == []
    shutil.rmtree(store.folder / run_files.FOLDER)
    must_be_equal(delivered, loaded(store.tracking_uri, "small"))
    assert sorted(opened) == sorted(delivered)


def test_texts_types_and_missing_columns_come_back() -> None:
    devices = np.array(["phone", "tablet"], dtype=object)
    runs = {
        "first": Files({"a": np.array([1, 2])}, {"device": devices}),
        "second": Files({"a": np.array([0.5, np.nan]), "b": np.array([], np.int32)}),
        "third": Files({"b": np.array([3], np.int32)}, participation=np.array([4, 5])),
    }
    unpacked = {run: run_files.unpack(run_files.pack(files)) for run, files in runs.items()}
    must_be_equal(runs, {run: files for run, files in unpacked.items() if files is not None})


def test_a_changed_run_is_read_from_its_own_files(uri: str, tmp_path: Path, opened: list[str]) -> None:
    before = loaded(uri)
    first, second, *_ = sorted(before)
    damaged = tmp_path / "files" / first / "artifacts" / "arrivals.parquet"
    status = damaged.stat()
    damaged.write_bytes(bytes(status.st_size))
    os.utime(damaged, ns=(status.st_atime_ns, status.st_mtime_ns))  # the size is the same, too
    (tmp_path / "files" / second / "artifacts" / "curve.parquet").unlink()
    opened.clear()
    after = loaded(uri)
    assert sorted(opened) == [first, second]
    assert after[first].unread.startswith("arrivals.parquet: ")
    assert after[second].unread.startswith("curve.parquet: no such file")
    unchanged = before.keys() - {first, second}
    must_be_equal({run: before[run] for run in unchanged}, {run: after[run] for run in unchanged})


@pytest.mark.parametrize("at", [0.02, 0.5, 0.999])
def test_a_damaged_copy_is_made_anew(uri: str, tmp_path: Path, opened: list[str], at: float) -> None:
    from_files = loaded(uri)
    content = bytearray(copy_in(tmp_path).read_bytes())
    content[int(at * len(content))] ^= 255
    copy_in(tmp_path).write_bytes(content)
    must_be_equal(from_files, loaded(uri))
    opened.clear()
    must_be_equal(from_files, loaded(uri))
    assert opened == []


def test_a_lost_copy_is_made_anew_unless_the_folder_is_closed(
    uri: str, tmp_path: Path, opened: list[str]
) -> None:
    from_files = loaded(uri)
    shutil.rmtree(tmp_path / run_files.FOLDER)
    (tmp_path / run_files.FOLDER).write_text("a file in the place of the folder")
    must_be_equal(from_files, loaded(uri))
    (tmp_path / run_files.FOLDER).unlink()
    loaded(uri)
    opened.clear()
    must_be_equal(from_files, loaded(uri))
    assert opened == []


def test_large_files_are_not_copied(uri: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_files, "MAX_BYTES", 100)
    loaded(uri)
    assert not (tmp_path / run_files.FOLDER).exists()
