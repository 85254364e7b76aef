"""Shared by tests of problems: a place for data files."""

from pathlib import Path

import pytest

from fl_core.problems.data import files


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty data folder, an empty cache, no network."""

    def no_network(name: str, folder: str, root: Path) -> None:
        raise RuntimeError("Error downloading:\n<urlopen error no network in tests>")

    monkeypatch.setattr(files, "download", no_network)
    monkeypatch.setenv("ASYNCFL_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "data").mkdir()
    return tmp_path / "data"
