"""`asyncfl evidence` on a strategy in a file of its own: each part is off indeed, and a failure is said."""

from __future__ import annotations

import json
from importlib import import_module
from math import exp, log
from pathlib import Path
from statistics import fmean

import pandas as pd
import pytest
import yaml
from shell import Done, asyncfl

from asyncfl import simulate
from benchmarks.leaderboard.entry import chosen
from benchmarks.suite.suite import load
from fl_core.strategies.hyperparameters import with_parameters
from reports.leaderboard import appendix
from reports.leaderboard.printed import times
from reports.leaderboard.tables import TUNED, Tables
from reports.leaderboard.workloads import place

pytestmark = pytest.mark.slow

CODE = '''
from typing import Annotated, ClassVar

from pydantic import model_validator

from asyncfl import Server, Share, Strategy, Tune, Update


class Damped(Strategy):
    """Every arrival is a step, damped by its staleness, beside a share of the last one."""

    title: ClassVar[str] = "Damped"

    momentum: Annotated[Share, Tune(0.1, 0.5, log=False)] = 0.3
    damp: bool = True  # not tuned
    bounded: bool = True  # without effect

    @model_validator(mode="after")
    def _goes_together(self):
        if not self.bounded and self.momentum != 0.3:
            raise ValueError("no bound is for the default alone")
        return self

    def begin(self, server: Server) -> None:
        server.memory.last = server.zeros()

    def receive(self, server: Server, update: Update) -> None:
        if self.momentum == 0 and len(set(server.mean_time)) > 1:
            raise ValueError("no momentum")
        step = update.delta / (1 + update.staleness if self.damp else 1)
        server.memory.last = self.momentum * server.memory.last + step
        server.step(self.server_lr * server.memory.last)
'''
TARGET, TIME = 0.7, 12.0
SUITE = {
    "name": "two",
    "seeds": 2,
    "problem": {"name": "digits", "clients": 6, "target": 0.6},
    "budget": {"time": TIME, "target": TARGET},
    "evaluations": 60,
    "local": {"steps": 2, "batch": 16},
    "strategies": [{"name": "fedavg", "label": "FedAvg"}],
    "grid": {"timing.durations": ["exponential", {"name": "two_speed", "jobs": "exponential"}]},
    "tuning": {
        "trials": 4,
        "seeds": 1,
        "again": {"share": 0.25, "seeds": 1},
        "sampler": "sobol",
        "objective": "time_to_target",
        "declared": True,
        "space": {"local.steps": [1, 4]},
    },
}


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Done]:
    """A folder with evidence, and what the command said."""
    folder = tmp_path_factory.mktemp("evidence")
    (folder / "damped.py").write_text(CODE)
    (folder / "two.yaml").write_text(yaml.safe_dump(SUITE))
    words = ("--suite", "two.yaml", "--store", "store", "--workers", "1", "--out", "out")
    return folder, asyncfl(folder, "evidence", "damped:Damped", *words)


def test_a_field_that_is_not_tuned_is_turned_off(
    done: tuple[Path, Done], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The factor is that of plain runs with and without it, at the tuned points."""
    folder, _ = done
    monkeypatch.syspath_prepend(str(folder))
    strategy = import_module("damped").Damped(local={"name": "sgd", "batch": 16})
    tables, suite = Tables.load(folder / "out"), load(str(folder / "two.yaml"), tuned=False)
    values = {
        row["point"]: json.loads(row["values"])
        for row in tables.points.to_dict("records")
        if row["strategy"] == "Damped"
    }
    assert all("damp" not in own for own in values.values())
    points = chosen(tables)
    logs = []
    for run in suite.runs():  # of the reference, in every scenario and under every seed
        scenario, seed = run.experiment.scenario, run.experiment.seed
        own = values[points[place(run), "Damped"][TUNED]]
        ends = []
        for damp in (True, False):
            parameters = with_parameters(strategy, {**own, "damp": damp}, scenario)
            curve = simulate({"scenario": scenario, "strategy": parameters, "seed": seed}).record.curve
            met = [row["time"] for row in curve if row["test/accuracy"] >= TARGET]
            ends.append(log(min([*met, TIME])))
        logs.append(ends[1] - ends[0])
    table = pd.read_csv(folder / "out" / appendix.FIGURES / "ablation-ablation.csv", index_col=0)
    assert table["Takes"]["damp"] == times(exp(fmean(logs))) != times(1)


def test_parts_without_which_it_fails_are_open(done: tuple[Path, Done]) -> None:
    """Without momentum it fails in one scenario of two; without bounds it is refused at the tuned points."""
    folder, said = done
    why = "without momentum it fails in digits · i.i.d. · two-speed"
    assert said.returncode == 1
    last = said.stderr.splitlines()[-1]
    assert last.startswith(f"Warning: the ablation is incomplete: {why}")
    assert "ValueError: no momentum (damped.py:" in last and "; without bounded it fails in digits" in last
    page = (folder / "out" / appendix.PAGE).read_text()
    assert "| momentum | fails | – |" in page and "| bounded | fails | – |" in page
    assert f"- [ ] Ablation: momentum, damp and bounded: {why}" in page
    assert "bounded False: no bound is for the default alone" in page
    open_ = json.loads((folder / "out" / appendix.MANIFEST).read_text())["open"]
    assert any(why in point for point in open_)
