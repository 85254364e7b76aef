"""The functions for notebooks: what they return is what MLflow holds, as tidy tables."""

import os
import subprocess
import sys
from math import inf
from pathlib import Path
from typing import Any

import matplotlib as mpl
import pandas as pd
import pytest
from recorded import tables, write_suite

from benchmarks import notebook
from benchmarks.errors import UserError
from benchmarks.tracking.store import Store
from fl_core.experiment import Experiment
from fl_core.recording.recorder import run as record_run

# Without a guard around it, as one would write it in a notebook.
SCRIPT = """
from benchmarks import notebook
runs = notebook.run("small.yaml", "seeds=3", store="here")
again = notebook.run("small.yaml", "seeds=3", store="here")
print(runs.equals(again), len(notebook.figures("small", store="here")))
print(next(iter(notebook.figures("small", store="here").values()))._repr_svg_()[:38])
runs.to_parquet("runs.parquet")
notebook.curves("small", store="here").to_parquet("curves.parquet")
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which the script has run."""
    folder = tmp_path_factory.mktemp("notebook")
    suite = write_suite(folder, "{name: fedbuff, buffer: 5}, asgd")
    suite.write_text(suite.read_text().replace("noise: 0.1", "noise: 0.1, start: [5.0]"))
    (folder / "script.py").write_text(SCRIPT)
    done = subprocess.run(
        [sys.executable, "script.py"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["True 3", '<?xml version="1.0" encoding="utf-8" s']
    return folder


def test_a_row_for_each_run(folder: Path) -> None:
    runs = pd.read_parquet(folder / "runs.parquet")
    assert runs[["strategy", "seed"]].to_numpy().tolist() == [
        [strategy, seed] for strategy in ("ASGD", "FedBuff (buffer 5)") for seed in (0, 1, 2)
    ]
    assert set(runs["status"]) == {"done"} and set(runs["suite"]) == {"small"}
    recorded = tables(Store(folder / "here"))
    for row in runs.to_dict("records"):
        _, curve, arrivals, _ = recorded[row["key"]]
        assert row["distance"] == curve["distance"][-1] and row["updates"] == 60
        assert row["staleness/mean"] == pytest.approx(sum(arrivals["staleness"]) / 60)
        met = [at for at, value in zip(curve["updates"], curve["distance"], strict=True) if value <= 0.3]
        assert row["updates_to_target"] == (met[0] if met else inf)
    assert runs["strategy.buffer"].isna().tolist() == [True] * 3 + [False] * 3
    assert runs["strategy.buffer"].tolist()[3:] == [5.0] * 3
    assert "problem.noise" not in runs  # the same in all


def test_a_row_for_each_evaluation(folder: Path) -> None:
    curves = pd.read_parquet(folder / "curves.parquet")
    runs = pd.read_parquet(folder / "runs.parquet")
    assert len(curves) == 6 * 5
    assert list(curves)[:6] == ["scenario", "strategy", "seed", "iteration", "updates", "time"]
    ends = curves.groupby(["scenario", "strategy", "seed"], as_index=False).last()
    assert ends["distance"].tolist() == runs["distance"].tolist()


def test_what_is_not_there_is_said(folder: Path) -> None:
    with pytest.raises(UserError, match="no run of a suite 'smal' is recorded in"):
        notebook.results("smal", store=folder / "here")
    with pytest.raises(UserError, match=r"it holds no mlflow.db"):
        notebook.results("small", store=folder / "there")
    with pytest.raises(UserError, match="no suite is called 'quickstar'; did you mean 'quickstart'"):
        notebook.run("quickstar", store=folder / "here")


EXPERIMENT: dict[str, Any] = {
    "scenario": {"problem": {"name": "quadratic", "noise": 0.1}, "budget": {"updates": 30}},
    "strategy": {"name": "fedbuff", "buffer": 3},
    "seed": 4,
}


def test_one_run_as_a_table_a_figure_and_a_cell() -> None:
    mpl.use("Agg")
    one = notebook.simulate(EXPERIMENT)
    expected = record_run(Experiment.model_validate(EXPERIMENT)).curve
    assert one.frame().to_dict("records") == expected
    axes = one.plot(clock="updates")
    (line,) = axes.get_lines()
    assert line.get_xydata().tolist() == [[row["updates"], row["distance"]] for row in expected]
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("client updates", "Distance to the optimum")
    notebook.simulate({**EXPERIMENT, "strategy": "asgd"}).plot("fp/loss", ax=axes)
    assert len(axes.get_lines()) == 2
    cell = one._repr_html_()
    assert cell.startswith("<p>FedBuff (buffer 3), seed 4: done (budget of client updates)</p><table")
    assert cell.count("<tr") == 2  # the header, and the last evaluation
