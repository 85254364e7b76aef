"""A disk that fills while files are written anew: the old ones stay, and one line names the file."""

import resource
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from benchmarks.commands.options import LEADERBOARD
from benchmarks.errors import UserError
from benchmarks.leaderboard.entry import write
from benchmarks.suite.suite import load
from reports.gate import baseline
from reports.leaderboard.tables import Tables


@contextmanager
def room(size: int) -> Iterator[None]:
    """Let no file become larger: EFBIG stands in for ENOSPC."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_the_old_baseline_stays(tmp_path: Path) -> None:
    path = tmp_path / "ci.json"
    shutil.copy(baseline.shipped("ci"), path)
    old, before = baseline.read(path), files(tmp_path)
    with pytest.raises(UserError, match=r"ci\.json cannot be written: "), room(4096):
        baseline.write(old, path)
    assert files(tmp_path) == before


def test_kept_tables_stay(tmp_path: Path) -> None:
    folder = shutil.copytree(LEADERBOARD, tmp_path / "entry")
    before = files(folder)
    with pytest.raises(UserError, match=r"text-design\.csv cannot be written: "), room(4096):
        Tables.load(folder).on("newsgroups").save(folder, "text")
    assert files(folder) == before


def test_the_strategies_of_kept_tables_stay(tmp_path: Path) -> None:
    folder = shutil.copytree(LEADERBOARD, tmp_path / "entry")
    before = files(folder)
    tables = Tables.load(folder).on()  # without a run
    with pytest.raises(UserError, match=r"strategies\.yaml cannot be written: "), room(1024):
        write(tables, folder, load("leaderboard", scale="text", tuned=False))
    assert files(folder)["strategies.yaml"] == before["strategies.yaml"]
