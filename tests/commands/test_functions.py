"""The public functions: what they return is what MLflow holds, as tidy tables."""

import contextlib
import io
import os
import subprocess
import sys
from math import inf
from pathlib import Path
from statistics import mean
from typing import Any

import matplotlib as mpl
import pandas as pd
import pytest
import torch
import yaml
from mlflow import MlflowClient
from recorded import tables, write_campaign, write_suite
from scipy import stats

import asyncfl
from asyncfl import Experiment, Server, Update, UserError
from benchmarks.mlflow_store.store import Store
from fl_core.recording.recorder import run as record_run
from fl_core.strategies.asgd import ASGD

# Without a guard around it, as one would write it in a notebook.
SCRIPT = """
import asyncfl
runs = asyncfl.run("small.yaml", "seeds=3", store="here")
again = asyncfl.run("small.yaml", "seeds=3", store="here")
figures = asyncfl.figures("small", store="here")
print(runs.equals(again), len(figures))
print(next(iter(figures.values()))._repr_svg_()[:38])
runs.to_parquet("runs.parquet")
asyncfl.curves("small", store="here").to_parquet("curves.parquet")
"""


OUTPUT = ["True 3", '<?xml version="1.0" encoding="utf-8" s']


def write_start(folder: Path) -> None:
    """Write the suite of the script."""
    suite = write_suite(folder, "{name: fedbuff, buffer: 5}, asgd")
    suite.write_text(suite.read_text().replace("noise: 0.1", "noise: 0.1, start: [5.0]"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, fork_server: None) -> Path:
    """A folder in which the script has run, in the process of the test."""
    folder, output = tmp_path_factory.mktemp("notebook"), io.StringIO()
    write_start(folder)
    with contextlib.chdir(folder), contextlib.redirect_stdout(output):
        exec(SCRIPT, {})
    assert output.getvalue().splitlines() == OUTPUT
    return folder


@pytest.mark.slow
def test_a_script_needs_no_guard(tmp_path: Path) -> None:
    """Worker processes do not run it again."""
    write_start(tmp_path)
    (tmp_path / "script.py").write_text(SCRIPT)
    done = subprocess.run(
        [sys.executable, "script.py"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == OUTPUT


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
    with pytest.raises(UserError, match="'smal'"):
        asyncfl.results("smal", store=folder / "here")
    client = MlflowClient(Store(folder / "here").tracking_uri)
    begun = client.create_experiment("begun")
    with pytest.raises(UserError, match=r"'begun' .*here"):
        asyncfl.results("begun", store=folder / "here")  # a suite whose first run is not done
    client.delete_experiment(begun)
    with pytest.raises(UserError, match="there"):
        asyncfl.results("small", store=folder / "there")
    with pytest.raises(UserError, match="'quickstar'"):
        asyncfl.run("quickstar", store=folder / "here")


def test_two_strategies_are_compared_by_the_paired_t_test(folder: Path) -> None:
    found = asyncfl.compare("fedbuff", "asgd", "small", store=folder / "here").loc[0]
    ends = pd.read_parquet(folder / "runs.parquet").pivot_table("distance", "seed", "strategy")
    first, second = (ends[name] for name in ("FedBuff (buffer 5)", "ASGD"))
    by_scipy = stats.ttest_rel(second, first)  # of a distance less is better
    interval = by_scipy.confidence_interval(0.95)
    assert found["metric"] == "distance" and found["seeds"] == 3
    assert (found["FedBuff (buffer 5)"], found["ASGD"]) == pytest.approx((first.mean(), second.mean()))
    assert found["ahead"] == pytest.approx((second - first).mean())
    assert (found["low"], found["high"], found["p"]) == pytest.approx((*interval, by_scipy.pvalue))
    assert "FedBuff (buffer 5)" in found["answer"]


def test_a_time_to_a_target_is_compared_by_medians(folder: Path) -> None:
    asked = {"metric": "updates_to_target", "store": folder / "here"}
    (found,) = asyncfl.compare("asgd", "fedbuff", **asked).to_dict("records")  # the only suite recorded
    runs = pd.read_parquet(folder / "runs.parquet")
    medians = runs.groupby("strategy")["updates_to_target"].median()
    assert [found[name] for name in medians.index] == medians.tolist()
    with pytest.raises(UserError, match="strategy 'fedbuf' is not recorded"):
        asyncfl.compare("fedbuf", "asgd", store=folder / "here")


@pytest.mark.usefixtures("undrawn")
def test_the_page_and_the_files_for_a_paper(folder: Path, tmp_path: Path) -> None:
    page = asyncfl.report("small", files=tmp_path / "paper", store=folder / "here")
    assert page == folder / "here" / "reports" / "small.html" and "FedBuff" in page.read_text()
    assert {file.suffix for file in (tmp_path / "paper").iterdir()} == {".csv", ".tex", ".svg", ".pdf"}


@pytest.mark.slow
def test_the_best_rate_is_found_and_run(tmp_path: Path) -> None:
    suite, store = write_campaign(tmp_path, "asgd", updates=20), tmp_path / "here"
    (row,) = asyncfl.tune(str(suite), store=store).to_dict("records")

    described = yaml.safe_load(suite.read_text())
    keys = ("problem", "timing", "budget", "evaluations")
    scenario = {key: described[key] for key in keys}

    def end(rate: float, seed: int) -> float:
        strategy = {"name": "asgd", "local_lr": rate}
        one = asyncfl.simulate({"scenario": scenario, "strategy": strategy, "seed": seed})
        return float(one.frame()["distance"].iloc[-1])

    rates = described["tuning"]["space"]["local_lr"]
    values = {rate: mean([end(rate, 1001), end(rate, 1002)]) for rate in rates}
    assert row["local_lr"] == min(rates, key=values.__getitem__)
    assert row["value"] == pytest.approx(values[row["local_lr"]])

    runs = asyncfl.run(str(suite), tuned=True, store=store)
    assert set(runs["suite"]) == {"small-tuned"}
    assert runs["distance"].tolist() == [end(row["local_lr"], seed) for seed in (0, 1)]
    changed = ("budget.updates=12", "tuning.sampler=random", "tuning.trials=2")
    asyncfl.tune(str(suite), *changed, store=store, storage=str(tmp_path / "other.journal"))
    again = asyncfl.run(str(suite), "budget.updates=12", tuned=store / "tuned-small.yaml", store=store)
    assert set(again["updates"]) == {12}


EXPERIMENT: dict[str, Any] = {
    "scenario": {"problem": {"name": "quadratic", "noise": 0.1}, "budget": {"updates": 30}},
    "strategy": {"name": "fedbuff", "buffer": 3},
    "seed": 4,
}


def test_one_run_as_a_table_a_figure_and_a_cell() -> None:
    mpl.use("Agg")
    one = asyncfl.simulate(EXPERIMENT)
    expected = record_run(Experiment.model_validate(EXPERIMENT)).curve
    assert one.frame().to_dict("records") == expected
    axes = one.plot(clock="updates")
    (line,) = axes.get_lines()
    assert line.get_xydata().tolist() == [[row["updates"], row["distance"]] for row in expected]
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("client updates", "Distance to the optimum")
    asyncfl.simulate({**EXPERIMENT, "strategy": "asgd"}).plot("fp/loss", ax=axes)
    assert len(axes.get_lines()) == 2
    assert repr(one) == "FedBuff (buffer 3), seed 4: done (budget of client updates)"
    cell = one._repr_html_()
    assert cell.startswith("<p>FedBuff (buffer 3), seed 4: done (budget of client updates)</p><table")
    assert cell.count("<tr") == 2  # the header, and the last evaluation


def test_a_mistake_in_an_experiment_is_one_line_as_in_suites() -> None:
    with pytest.raises(UserError) as caught:
        asyncfl.simulate({**EXPERIMENT, "strategy": {"name": "asgd", "bufer": 3}, "sed": 1})
    of_strategy, of_experiment = caught.value.lines
    assert of_strategy.startswith("experiment: strategy.bufer: ")
    assert of_experiment.startswith("experiment: sed: ")
    with pytest.raises(UserError, match=r"^experiment: scenario: "):
        asyncfl.simulate({"strategy": "asgd"})
    with pytest.raises(UserError, match=r"strategy: .*ASGD\(\)"):
        asyncfl.simulate({**EXPERIMENT, "strategy": ASGD})


def test_a_problem_that_cannot_be_built_is_the_users_mistake() -> None:
    parts = {"name": "class_dirichlet", "alpha": 0.1}
    scenario = {"problem": {"name": "digits", "clients": 3000, "partition": parts}, "budget": {"updates": 2}}
    with pytest.raises(UserError, match="3000 clients"):
        asyncfl.simulate({"scenario": scenario, "strategy": "asgd"})


def test_a_run_is_computed_with_one_thread_and_leaves_as_many_as_there_were() -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    seen = []

    class Counting(ASGD):
        def receive(self, server: Server, update: Update) -> None:
            seen.append(torch.get_num_threads())
            super().receive(server, update)

    try:
        asyncfl.simulate({**EXPERIMENT, "strategy": Counting()})
        assert set(seen) == {1} and torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize(
    ("given", "known"), [({"clock": "update"}, "updates"), ({"metric": "loss"}, "distance")]
)
def test_a_figure_of_something_unknown_says_what_there_is(given: dict[str, str], known: str) -> None:
    with pytest.raises(UserError, match=known):
        asyncfl.simulate(EXPERIMENT).plot(**given)
