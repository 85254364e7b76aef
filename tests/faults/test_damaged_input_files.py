"""Files of users that were read in silence, and wrongly, or ended in a traceback."""

from __future__ import annotations

import random
from copy import deepcopy
from dataclasses import replace
from fractions import Fraction
from math import inf, nan
from pathlib import Path
from typing import Any

import pytest

from benchmarks import trace_import as logs
from benchmarks.commands.replay import of_file
from benchmarks.errors import UserError
from fl_core.live.replay import InvalidLogError
from fl_core.live.run import SavedRun
from fl_core.problems.partitions import PartitionFile
from fl_core.timing import traces
from fl_core.timing.network import ColumnLaw
from tests.fl_core.live.in_threads import lived
from tests.fl_core.live.test_live import experiment

LONG_CELL = "1" * 140_000  # above the limit of module csv


@pytest.mark.parametrize(
    "text", ["\ufeff0,0\r\n0,1\r\n1,2\r\n1,3\r\n", "0.0,0\n0,1\n1,2\n1,3\n", "c,i\n0,0\n0,1\n1,2\n1,3\n"]
)
def test_partition_files_as_programs_write_them(tmp_path: Path, text: str) -> None:
    path = tmp_path / "parts.csv"
    path.write_bytes(text.encode())
    assert [part.tolist() for part in PartitionFile(path=path)._parts(4, 2)] == [[0, 1], [2, 3]]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("twice.json", '{"0": [0, 1], "0": [2], "1": [3]}'),
        ("padded.json", '{"0": [0, 1], "00": [2], "1": [3]}'),
        ("half.csv", "0,0.5\n1,1\n"),
        ("index.csv", ",client,index\n0,0,1\n1,1,0\n"),
        ("long.csv", f"0,0\n1,{LONG_CELL}\n"),
    ],
)
def test_partition_files_that_mean_several_things_are_refused(tmp_path: Path, name: str, text: str) -> None:
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(ValueError, match=name):
        PartitionFile(path=path)._parts(4, 2)


@pytest.mark.parametrize("text", [",client,seconds\n0,1,5.5\n1,2,6.5\n", f"0,5\n1,{LONG_CELL}\n"])
def test_traces_with_an_index_or_a_long_cell_are_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "jobs.csv"
    path.write_text(text)
    with pytest.raises(ValueError, match="line"):
        traces.digest(path)


@pytest.mark.parametrize(
    "text", ["rate\n1\n2,3,4\n", "id,rate\na,1\nb\n", "rate\n1,2\n3,4\n", f"rate\n1\n{LONG_CELL}\n", ""]
)
def test_links_of_ragged_rows_are_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "links.csv"
    path.write_text(text)
    with pytest.raises(ValueError, match="links"):
        ColumnLaw(path=path, column="rate").values(2, 0, "rates")


def test_links_are_read(tmp_path: Path) -> None:
    path = tmp_path / "links.csv"
    path.write_text("\ufeffid,rate\na,1/3\n\nb,0.2\n")
    assert ColumnLaw(path=path, column="rate").values(2, 0, "rates") == (Fraction(1, 3), Fraction(1, 5))


EXIT_CODES = "device,seconds,exit_code\na,5,0\nb,6,0\na,100,1\nb,200,1\na,7,0\n"


def test_numbers_as_a_status_are_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "exit.csv"
    path.write_text(EXIT_CODES)
    columns = logs.Columns("device", duration="seconds", status="exit_code")
    with pytest.raises(UserError):
        logs.read(path, columns)
    jobs = logs.read(path, replace(columns, done=("0",))).jobs
    assert sorted(jobs["length"]) == [5, 6, 7]


@pytest.mark.parametrize(
    "rows", ["a,2026-01-01\nb,2026-01-02\n", "a,1e300\n", "a,true\nb,false\n", "a,nan\n", f"a,{LONG_CELL}\n"]
)
def test_lengths_that_are_none_are_refused(tmp_path: Path, rows: str) -> None:
    path = tmp_path / "jobs.csv"
    path.write_text(f"device,seconds\n{rows}")
    with pytest.raises(UserError):
        logs.read(path, logs.Columns("device", duration="seconds"))


def test_booleans_of_a_parquet_file_are_no_lengths(tmp_path: Path) -> None:
    import pandas as pd

    path = tmp_path / "jobs.parquet"
    pd.DataFrame({"device": ["a", "b"], "seconds": [True, True]}).to_parquet(path)
    with pytest.raises(UserError):
        logs.read(path, logs.Columns("device", duration="seconds"))


@pytest.fixture(scope="module")
def saved() -> SavedRun:
    return SavedRun.of(lived(experiment("fedbuff", updates=20)))


VALUES: tuple[Any, ...] = (None, nan, inf, -1, 0, 0.5, 10**18, 1e300, True, "x", [1], {"a": 1})


def damaged(saved: SavedRun, seed: int) -> SavedRun:
    """A run with one to three cells, columns or tables of its log exchanged or missing."""
    draw = random.Random(seed)
    slips: dict[str, list[Any]] = {"alarm": [3, 3], "set": [1.0, 2.5], "rang": [2.0, 4.0]}  # of no alarm
    log = {"jobs": deepcopy(saved.jobs), "events": deepcopy(saved.events), "slips": slips}
    for _ in range(draw.randint(1, 3)):
        table = draw.choice(list(log.values()))
        column = draw.choice(list(table))
        how = draw.choice(("cell", "cell", "column", "cut", "empty", "gone", "no list", "swapped"))
        if not isinstance(table.get(column), list) or not table[column]:
            continue
        if how == "cell":
            table[column][draw.randrange(len(table[column]))] = draw.choice(VALUES)
        elif how == "gone" and len(table) > 1:
            del table[column]
        elif how == "swapped":
            other = draw.choice(list(table))
            table[column], table[other] = table[other], table[column]
        else:
            values = table[column]
            fresh = {
                "column": [draw.choice(VALUES)] * len(values),
                "cut": values[: len(values) // 2],
                "empty": [],
            }
            table[column] = fresh.get(how, draw.choice(VALUES))
    return replace(saved, **log)


def replays(saved: SavedRun, path: Path, seeds: range) -> int:
    """Replay damaged logs; return how many were refused: what is not equals the run or differs from it."""
    refused = 0
    for seed in seeds:
        path.write_bytes(damaged(saved, seed).pack())
        try:
            assert of_file(path).events >= 0
        except UserError as error:
            assert str(path) in str(error)  # noqa: PT017 - most logs are refused, not all
            refused += 1
    return refused


def test_a_whole_log_is_replayed(saved: SavedRun, tmp_path: Path) -> None:
    path = tmp_path / "run.live"
    path.write_bytes(saved.pack())
    assert of_file(path).equal


def test_damaged_logs_are_replayed_or_refused(saved: SavedRun, tmp_path: Path) -> None:
    assert replays(saved, tmp_path / "run.live", range(100)) > 30


@pytest.mark.slow
def test_thousands_of_damaged_logs_are_replayed_or_refused(saved: SavedRun, tmp_path: Path) -> None:
    assert replays(saved, tmp_path / "run.live", range(2_000)) > 600


@pytest.mark.parametrize("model", [[], [0.0, 0.0, 0.0], [None, None]])
def test_another_number_of_parameters_is_refused(saved: SavedRun, model: list[Any]) -> None:
    from fl_core.live.replay import replay

    with pytest.raises(InvalidLogError):
        replay(experiment("fedbuff", updates=20), saved.jobs, saved.events, saved.slips, model)


def test_bytes_of_a_saved_run_are_read_or_refused(saved: SavedRun, tmp_path: Path) -> None:
    whole, path, draw = saved.pack(), tmp_path / "run.live", random.Random(0)
    for _ in range(60):
        content = bytearray(whole[: draw.choice((len(whole), draw.randrange(len(whole))))])
        for _ in range(draw.randint(0, 4)):
            if content:
                content[draw.randrange(len(content))] = draw.randrange(256)
        path.write_bytes(content)
        try:
            of_file(path)
        except UserError as error:
            assert str(path) in str(error)  # noqa: PT017 - a changed digit may leave a valid run
