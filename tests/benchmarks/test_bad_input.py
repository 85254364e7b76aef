"""Files of a user's that never end, are none, or are too deep: refused in lines that name the file."""

import json
import os
import resource
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks.claims import files, stored_numbers
from benchmarks.claims.expansion import members
from benchmarks.errors import UserError, short_line, users_mistake
from benchmarks.suite import tuned
from benchmarks.suite.suite import load
from benchmarks.yaml_io import dump, parse
from reports.gate import baseline
from reports.leaderboard.board_tables import FINALS, BoardTables
from tuning.storage import open_storage

SHIPPED = Path(tuned.__file__).parents[1]
SUITE = {
    "name": "a",
    "seeds": 1,
    "problem": {"name": "digits", "clients": 2},
    "budget": {"updates": 5},
    "strategies": ["asgd"],
}

BASELINE = json.loads((SHIPPED / "baselines/ci.json").read_bytes())
JOURNAL = b'{"op_code": 0, "worker_id": "w", "study_name": "s", "directions": [1]}\n'
GB = 2**30


def suite_of(path: Path, **changed: Any) -> None:
    """Read a suite that names the file."""
    place = path.with_name("suite.yaml")
    place.write_text(dump({**SUITE, **changed}))
    load(str(place)).runs()


def with_trace(path: Path) -> None:
    suite_of(path, timing={"durations": {"name": "trace", "path": str(path)}})


def with_partition(path: Path) -> None:
    partition = {"name": "file", "path": str(path)}
    suite_of(path, problem={"name": "digits", "clients": 2, "partition": partition})


def with_table(path: Path) -> None:
    """Read the entries of claims from a table; the message then gets their file's name."""
    try:
        list(members({"table": {"file": path.name, "cells": {"column": {}}}}, path.parent))
    except ValueError as error:
        raise UserError(f"{path.parent}: {error}") from None


# How each file is read, a small one, and its name.
KINDS: dict[str, tuple[Callable[[Path], object], bytes, str]] = {
    "suite": (lambda path: load(str(path)).runs(), dump(SUITE).encode(), "f.yaml"),
    "claims": (lambda path: files.papers(path.parent), b"{paper: toy, title: Toy, claims: []}", "f.yaml"),
    "table": (with_table, b"column\n1\n", "f.csv"),
    "numbers": (stored_numbers.read, ",".join(stored_numbers.COLUMNS).encode(), "f.csv"),
    "tuned": (
        lambda path: tuned.load(path, "mnist_weights"),
        (SHIPPED / "tuned/mnist_weights.yaml").read_bytes(),
        "f.yaml",
    ),
    "baseline": (
        baseline.read,
        json.dumps(BASELINE | {"checksum": "", "runs": BASELINE["runs"][:8]}).encode(),
        "f.json",
    ),
    "trace": (with_trace, b"0,1\n1,2\n", "f.csv"),
    "partition": (with_partition, b"0,1\n1,2\n", "f.csv"),
    "lists": (with_partition, b"[[0], [1]]", "f.json"),
    "board": (lambda path: BoardTables.load(path.parent), ",".join(FINALS).encode(), "f-finals.csv"),
    "journal": (lambda path: open_storage(str(path)), JOURNAL, "f.journal"),
}


def pipe(path: Path, _: bytes) -> None:
    """Nobody writes to it."""
    os.mkfifo(path)


def endless(path: Path, _: bytes) -> None:
    path.symlink_to("/dev/zero")


def sparse(path: Path, _: bytes) -> None:
    """3 GB that take no room on the disk."""
    path.touch()
    os.truncate(path, 3 * GB)


def deep(path: Path, _: bytes) -> None:
    path.write_text("[" * 5_000 + "]" * 5_000 + " " * 130_000)  # too long for a cell, too


def wide(path: Path, _: bytes) -> None:
    """A cell that is longer than Python's reader of CSV takes."""
    path.write_text(f"client,length\n0,1\n1,{'1' * 200_000}\n")


def utf16(path: Path, text: bytes) -> None:
    path.write_text(text.decode(), encoding="utf-16")


def not_utf8(path: Path, text: bytes) -> None:
    path.write_bytes(text[:-1] + b"\xff\xfe\n")


@pytest.fixture
def little_memory() -> Iterator[None]:
    """No more than 2 GiB beyond what the process has by now."""
    status = Path("/proc/self/status").read_text().splitlines()
    (now,) = (int(line.split()[1]) * 1024 for line in status if line.startswith("VmData"))
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (now + 2 * GB, hard))
    yield
    resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


def refusal(check: Callable[[Path], object], path: Path) -> tuple[str, ...]:
    """The lines in which a file is refused; none if it is accepted."""
    try:
        check(path)
    except Exception as error:
        lines = users_mistake(error)
        if lines is None:
            raise
        return lines
    return ()


SLOW = ("claims", "tuned")  # read as suites are: `test_yaml_is_parsed_in_one_place`


@pytest.mark.timeout(120)
@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=pytest.mark.slow if kind in SLOW else ()) for kind in KINDS]
)
@pytest.mark.usefixtures("little_memory")
def test_it_is_read_or_refused_in_lines_that_name_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.chdir(tmp_path)  # a long path would take the room of what is said
    check, text, name = KINDS[kind]
    path = Path("own", name)
    path.parent.mkdir()
    path.write_bytes(text)
    assert refusal(check, path) == ()

    for damaged in (pipe, endless, sparse, deep, wide, utf16, not_utf8):
        path.unlink()
        damaged(path, text)
        lines = refusal(check, path)
        assert lines or damaged in (utf16, not_utf8, wide), damaged
        for line in lines:
            assert str(path.parent) in line and path.name in line, damaged
            assert line.isprintable() and len(line) < 300, damaged


def with_values(folder: Path, text: str, **values: Any) -> Path:
    """A shipped file of tuned values, the first of which are others."""
    document = parse(text)[0]
    document["tuned"][0]["parameters"] |= values
    path = folder / "tuned.yaml"
    path.write_text(dump(document))
    return path


@pytest.mark.parametrize(
    ("key", "value"),
    [("no.such", 1), ("local.x", 1), ("name", "fedbuff"), ("local", "prox"), ("local_lr", -1), ("c", "x")],
)
def test_tuned_parameters_that_a_strategy_refuses(tmp_path: Path, key: str, value: Any) -> None:
    path = with_values(tmp_path, (SHIPPED / "tuned/mnist_weights.yaml").read_text(), **{key: value})
    suite = load("mnist_weights", tuned=path)
    with pytest.raises(UserError) as caught:
        suite.runs()
    (line,) = caught.value.lines
    assert line.startswith(f"{path}: ") and f"{key}: " in line and "Async FedAvg (weights identical)" in line


def test_a_long_line_loses_its_middle() -> None:
    assert short_line("x" * 290) == "x" * 290
    line = short_line(f"f.yaml:3: {'x' * 1_000}: must be shorter")
    assert len(line) == 290
    assert line.startswith("f.yaml:3: xxx") and " … " in line and line.endswith("x: must be shorter")
    assert json.loads(f'"{line}"') == line
    words = [f"word{at}" for at in range(100)]
    assert set(short_line(" ".join(words)).split()) < {*words, "…"}
