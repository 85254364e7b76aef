"""A disk that fills while files are written anew: the old ones stay, and one line names the file."""

import resource
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from benchmarks.commands.options import LEADERBOARD
from benchmarks.errors import UserError
from reports.gate import baseline
from reports.leaderboard.board_tables import BoardTables


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


def test_tables_of_the_leaderboard_stay(tmp_path: Path) -> None:
    folder = shutil.copytree(LEADERBOARD, tmp_path / "board")
    before = files(folder)
    with pytest.raises(UserError, match=r"features10-\w+-\w+\.csv cannot be written: "), room(4096):
        BoardTables.load(folder).save(folder)
    assert files(folder) == before
