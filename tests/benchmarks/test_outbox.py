"""Records on disk: whole or not there."""

import json
from pathlib import Path

import numpy as np
import pytest

from benchmarks.mlflow_store import parquet
from benchmarks.mlflow_store.outbox import Announcement, Outbox, read
from benchmarks.mlflow_store.run_result import RunResult
from fl_core.recorded_names import EVENTS, JOBS, Name, Status


def result(key: str = "k", status: Status = Status.DONE, **more: object) -> RunResult:
    tags = {"kind": "run", "suite": "suite", "key": key, "status": str(status), "seed": "0", "target": ""}
    named = {f"asyncfl.{name}": text for name, text in tags.items()}
    return RunResult("", "", "FINISHED", 1, 2, "", named, **more)  # type: ignore[arg-type]


@pytest.fixture
def outbox(tmp_path: Path) -> Outbox:
    return Outbox(tmp_path)


def test_what_is_put_is_what_waits(outbox: Outbox) -> None:
    one = result(metrics={"x": float("nan")}, evaluated=[1, 2])
    curve = {"iteration": [0, 4], "loss": [1.5, float("inf")]}
    outbox.put(
        one, {"seed": 0}, {"curve": curve, "arrivals": {"client": np.zeros(0, int)}}, {"note.txt": "é"}
    )
    (folder,) = outbox.waiting()
    assert repr(read(folder)) == repr(one)  # NaN is not equal to itself
    assert outbox.curve(one) == curve
    assert json.loads((folder / "artifacts" / "description.json").read_bytes()) == {"seed": 0}
    assert {path.name for path in outbox.artifacts(one).iterdir()} == {
        "curve.parquet",
        "arrivals.parquet",
        "description.json",
        "note.txt",
    }


def test_columns_without_a_value_are_of_numbers(tmp_path: Path) -> None:
    """Such as those of a run in real time without an update, or without an event."""
    parquet.write(tmp_path / JOBS.file, {name: [0] for name in JOBS.columns} | {Name.ARRIVED: [None]})
    parquet.write(tmp_path / EVENTS.file, {name: [] for name in EVENTS.columns})
    assert parquet.read(tmp_path, JOBS)[Name.ARRIVED].isna().all()
    assert parquet.read(tmp_path, EVENTS).empty


def test_a_new_record_takes_the_place_of_the_old(outbox: Outbox) -> None:
    outbox.put(result(status=Status.ERROR), {}, texts={"traceback.txt": "…"})
    outbox.put(result(), {})
    (stored,) = map(read, outbox.waiting())
    assert stored is not None and stored.status == "done"
    assert not (outbox.artifacts(stored) / "traceback.txt").exists() and not outbox.curve(stored)


def test_a_process_killed_while_it_writes_leaves_no_record(
    outbox: Outbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(parquet, "write", killed)
    with pytest.raises(KeyboardInterrupt):
        outbox.put(result(), {}, {"curve": {}})
    assert outbox.waiting() == [] and outbox.get("suite", "k") is None
    outbox.sweep()
    assert list((outbox.folder / "suite").iterdir()) == []


def test_sweeping_keeps_records_and_checkpoints(outbox: Outbox) -> None:
    outbox.put(result(), {})
    outbox.checkpoint("suite", "other").touch()
    assert outbox.sweep() == []
    assert {path.name for path in (outbox.folder / "suite").iterdir()} == {"k", "other.checkpoint"}


@pytest.mark.parametrize(
    ("name", "how"),
    [("result.json", "cut"), ("checksums.json", "gone"), ("artifacts/curve.parquet", "flipped")],
)
def test_a_damaged_record_is_set_aside(outbox: Outbox, name: str, how: str) -> None:
    for key in ("k", "whole"):
        outbox.put(result(key), {"seed": 0}, {"curve": {"iteration": [0, 4], "loss": [1.5, 0.5]}})
    file = outbox.folder / "suite" / "k" / name
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 4
    file.write_bytes(file.read_bytes()[:-5] if how == "cut" else content)
    if how == "gone":
        file.unlink()
    (aside,) = outbox.sweep()
    assert aside == outbox.folder / "suite" / "k.damaged"
    assert [folder.name for folder in outbox.waiting()] == ["whole"] and outbox.get("suite", "k") is None
    outbox.put(result(), {})
    assert outbox.sweep() == [] and outbox.get("suite", "k") is not None


def test_no_damage_changes_what_is_sent(outbox: Outbox) -> None:
    """A record with any bit flipped is not sound, or has the content that it had."""
    curve = {"iteration": [0, 4], "loss": [1.5, 0.5]}
    outbox.put(result(), {"seed": 0}, {"curve": curve}, {"traceback.txt": "…"})
    (folder,) = outbox.waiting()
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert len(files) == 5
    artifacts = outbox.artifacts(result())

    def content() -> str:
        texts = [(artifacts / name).read_bytes() for name in ("description.json", "traceback.txt")]
        return repr((read(folder), outbox.curve(result()), texts))

    meant = content()
    for path in files:
        whole = path.read_bytes()
        for bit in range(0, 8 * len(whole), 29):
            flipped = bytearray(whole)
            flipped[bit // 8] ^= 1 << bit % 8
            path.write_bytes(flipped)
            assert not read(folder) or content() == meant  # a blank for a line break, in the list of digests
        path.write_bytes(whole)
    assert read(folder)


@pytest.mark.parametrize("place", ["suite/other", "elsewhere/k"])
def test_a_record_under_another_name_is_set_aside(outbox: Outbox, place: str) -> None:
    outbox.put(result(), {})
    (folder,) = outbox.waiting()
    (outbox.folder / place).parent.mkdir(exist_ok=True)
    folder.rename(outbox.folder / place)
    assert outbox.sweep() == [outbox.folder / f"{place}.damaged"]


def test_a_damaged_announcement_is_set_aside(outbox: Outbox) -> None:
    announced = [Announcement("suite", "Three clients.", {"k": ("iid", "ASGD", "", "0")}, ["ASGD"])]
    outbox.announce(announced[0])
    path = outbox.folder / "suite" / "suite.json"
    whole = path.read_bytes()
    assert list(outbox.announced()) == announced
    for bit in range(0, 8 * len(whole), 7):
        flipped = bytearray(whole)
        flipped[bit // 8] ^= 1 << bit % 8
        path.write_bytes(flipped)
        assert list(outbox.announced()) in ([], announced)
    path.write_bytes(whole[:-9])
    (aside,) = outbox.sweep()
    assert aside.name == "suite.json.damaged" and not path.exists() and outbox.sweep() == []


def test_the_oldest_goes_first(outbox: Outbox) -> None:
    for key in "cab":
        outbox.put(result(key), {})
    assert [folder.name for folder in outbox.waiting()] == list("cab")
    outbox.drop("suite", "c")
    assert [folder.name for folder in outbox.waiting()] == list("ab")
