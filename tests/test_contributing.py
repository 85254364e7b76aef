"""A stranger's exercises: the files that CONTRIBUTING.md shows, as they stand there, elsewhere."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
GUIDE = ROOT / "CONTRIBUTING.md"
BLOCK = re.compile(r"^```(?:python|yaml)\n# (\S+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
ASYNCFL = "from benchmarks.cli import main; main()"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder outside of the repository with the files of the guide, and nothing else."""
    folder = tmp_path_factory.mktemp("stranger")
    files = BLOCK.findall(GUIDE.read_text())
    modules = {f"mine/{name}.py" for name in ("strategies", "durations", "problem", "metric")}
    assert dict(files).keys() == modules | {"mine.yaml", "depots.yaml", "test_mine.py"}
    for name, text in files:
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text.lstrip("\n"))
    return folder


def python(folder: Path, *arguments: str) -> str:
    """What Python prints there, with this package installed; it has to succeed."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_a_suite_runs_the_strategy_under_the_duration_law(folder: Path) -> None:
    """Both are in the table, with their parameters."""
    said = python(folder, "-c", ASYNCFL, "run", "mine.yaml")
    assert re.search(r"Momentum ASGD \(momentum 0\.3\).*\d", said), said
    assert re.search(r"^.*\bASGD\b.*\d", said, re.MULTILINE)
    assert "riangular" in said


def test_a_suite_trains_a_lightning_module_and_shows_a_metric_of_a_strangers(folder: Path) -> None:
    """Both metrics head columns, the one ranks and the other is a share; `compare` knows it, too."""
    said = python(folder, "-c", ASYNCFL, "run", "depots.yaml")
    assert {"Mean", "absolute", "(minutes)", "Late", "arrivals", "(%)"} <= {*said.split()}, said
    compared = python(
        folder, "-c", ASYNCFL, "compare", "FedBuff", "ASGD", "--suite", "depots", "--metric", "test/late"
    )
    assert "points" in compared or "%" in compared, compared


def test_list_prints_the_fields_of_a_strangers_class(folder: Path) -> None:
    """By its import path."""
    said = python(folder, "-c", ASYNCFL, "list", "mine.strategies:MomentumASGD")
    assert "Paper: Author et al., Venue 2026, Algorithm 1" in said
    fields = [" ".join(line.split()) for line in said.splitlines()]
    assert "momentum number ≥ 0, ≤ 1 default 0.5 tuned 0.1 to 0.9" in fields


def test_the_conformance_suite_checks_both(folder: Path) -> None:
    """The test of the guide passes, and it is no empty one."""
    said = python(folder, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", os.devnull, "test_mine.py")
    passed = re.search(r"^(\d+) passed", said, re.MULTILINE)
    assert passed is not None, said
    assert int(passed[1]) == 15


def test_files_that_the_guide_names_exist() -> None:
    """Paths in the text, outside of the blocks; those of commands and links, too."""
    text = re.sub(r"^```.*?^```$", "", GUIDE.read_text(), flags=re.MULTILINE | re.DOTALL)
    named = re.findall(r"(?:fl_core|tests|docs|benchmarks)/[\w/.-]*\w", text)
    assert len(named) > 8
    missing = [path for path in named if not (ROOT / path).exists()]
    assert missing == []


def test_folders_of_strategies_that_the_guide_names_exist() -> None:
    """`every_arrival/` and its neighbours."""
    named = re.findall(r"`(\w+)/`", GUIDE.read_text())
    assert named
    assert [name for name in named if not (ROOT / "fl_core" / "strategies" / name).is_dir()] == []
