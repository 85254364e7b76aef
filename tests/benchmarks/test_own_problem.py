"""The page on problems of one's own is true: its files, as they stand there, make a comparison."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from shell import asyncfl

from reports.numbers import measure_of
from reports.records.store import load

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "how-to" / "own-problem.md"

pytestmark = pytest.mark.slow  # a suite with baselines of the pooled data

Typed = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of the page, and the runs of its suite."""
    folder = tmp_path_factory.mktemp("own")
    text = PAGE.read_text()
    for name in ("mine.py", "mine.yaml"):
        found = re.search(rf"```\w+\n# {re.escape(name)}\n(.*?)```", text, re.DOTALL)
        assert found is not None
        (folder / name).write_text(found[1])
    done = asyncfl(folder, "run", "mine.yaml", "--quiet")
    assert done.returncode == 0, done.stderr
    return folder


def test_it_takes_no_more_than_thirty_lines(folder: Path) -> None:
    lines = (folder / "mine.py").read_text() + (folder / "mine.yaml").read_text()
    assert sum(bool(line.strip()) for line in lines.splitlines()) <= 30


def test_the_runs_carry_the_declaration_and_learn(folder: Path) -> None:
    store = next(folder.rglob("mlflow.db"))
    suite = load(f"sqlite:///{store}", "mine")
    assert len(suite.runs) == 9
    for run in suite.runs:
        metric = measure_of(run, run.metric)
        assert (metric.heading, metric.higher) == ("Mean absolute error (minutes)", False)
        curve = run.files.curve
        assert curve["test/mae"][-1] < curve["test/mae"][0]
        assert curve["worst_client/mae"][-1] == run.files.clients["mae"].max()
    (scenario,) = suite.scenarios()
    assert [one.name for one in scenario.columns] == ["test/mae", "worst_client/mae"]
    assert scenario.pooled["test/mae"]


def test_compare_says_who_is_ahead_in_it(folder: Path, typed: Typed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    done = typed("compare", "FedBuff", "ASGD", "--suite", "mine")
    assert done.returncode == 0, done.stderr
    assert "FedBuff and ASGD, mean absolute error at the end" in done.stdout


def test_the_page_shows_it(folder: Path, typed: Typed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    done = typed("report", "mine")
    assert done.returncode == 0, done.stderr
    page = next(folder.rglob("*.html")).read_text()
    assert "Mean absolute error (minutes)" in page
    assert "Worst client’s mean absolute error (minutes)" in page


def test_tuning_searches_by_it(folder: Path) -> None:
    done = asyncfl(folder, "tune", "mine.yaml", "--dry-run", "--trials", "3")
    assert done.returncode == 0, done.stderr
    assert "test/mae, minimize" in done.stdout


def test_a_module_with_batch_norm_is_refused_by_show(
    folder: Path, typed: Typed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    text = (folder / "mine.py").read_text().replace("nn.Linear(5, 1)", "nn.BatchNorm1d(5)", 1)
    (folder / "normed.py").write_text(text)
    done = typed("show", "mine.yaml", "--set", "problem.module=normed:Arrival")
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert "problem.module: the network's layer line (BatchNorm1d) keeps running statistics" in line
