"""`asyncfl speed runs`, `growth`, `peers`, `versions`: the scripts are right, and all of it is measured."""

from __future__ import annotations

import csv
import math
import os
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from click.testing import CliRunner
from torch import nn
from torch.nn.functional import cross_entropy

from benchmarks.commands import speed
from benchmarks.errors import UserError
from benchmarks.speed.growth import axes, measurement
from benchmarks.speed.growth.axes import AXES, Axis
from benchmarks.speed.growth.fit import power_law
from benchmarks.speed.peers import measurement as peers
from benchmarks.speed.whole import measurement as whole
from benchmarks.speed.whole import plain, spent, table, versions
from benchmarks.speed.whole.case import CASES
from benchmarks.speed.whole.spent import PARTS, Spent
from benchmarks.tracking.provenance import ROOT


def test_a_part_within_another_counts_as_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """A clock worked by hand: 2 s of the start, 1 + 3 s of a part around 4 s of another, 5 s of the rest."""
    ticks = iter([2.0, 3.0, 7.0, 10.0, 15.0])
    monkeypatch.setattr(spent, "process_time", lambda: next(ticks))
    found = Spent("start")
    inner = found.timed("inner", lambda value: value + 1)
    with found.on("outer"):
        assert inner(1) == 2
    assert found.seconds() == {"start": 7.0, "outer": 4.0, "inner": 4.0}


def test_processes_that_outlive_a_command_are_counted() -> None:
    """A command that ends at once, and leaves a child behind that computes for half a second."""
    child = "from time import process_time\nwhile process_time() < 0.5: pass"
    code = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {child!r}])"
    found = whole._alone(spent.of_command, [sys.executable, "-c", code], dict(os.environ))
    assert 0.5 < found < 5


def test_a_command_that_fails_says_what_it_printed() -> None:
    with pytest.raises(RuntimeError, match=r"exit code 3\n.*no data"):
        whole._alone(
            spent.of_command,
            [sys.executable, "-c", "print('no data'); raise SystemExit(3)"],
            dict(os.environ),
        )


def test_the_script_of_one_client_is_stochastic_gradient_descent() -> None:
    """Six updates of two steps each: twelve steps of SGD written down, evaluated at each third."""
    random = torch.Generator().manual_seed(3)
    train = plain.Split(torch.rand(40, 6, generator=random), torch.arange(40) % 4)
    network = nn.Linear(6, 4)
    weight, bias = (p.detach().clone().requires_grad_() for p in network.parameters())
    seen: list[torch.Tensor] = []

    def evaluate() -> None:
        seen.append(network.weight.detach().clone())

    plain.simulate(
        network, cross_entropy, train, [np.arange(40)], evaluate, updates=6, steps=2, batch=5, marks=3
    )
    draws = np.random.default_rng(0)
    draws.exponential()
    wanted = [weight.detach().clone()]
    for update in range(1, 7):
        for _ in range(2):
            chosen = torch.from_numpy(draws.choice(np.arange(40), 5))
            loss = cross_entropy(train.inputs[chosen] @ weight.T + bias, train.targets[chosen])
            by_weight, by_bias = torch.autograd.grad(loss, (weight, bias))
            with torch.no_grad():
                weight -= plain.RATE * by_weight
                bias -= plain.RATE * by_bias
        draws.exponential()
        if update % 2 == 0:
            wanted.append(weight.detach().clone())
    torch.testing.assert_close(seen, wanted)


def test_the_script_judges_all_data_once() -> None:
    """2,500 points in passes of 1,000: loss and accuracy of all; clients' losses in the last row alone."""
    random = torch.Generator().manual_seed(3)
    data = plain.Split(torch.rand(2500, 3, generator=random), torch.arange(2500) % 2)
    network = nn.Linear(3, 2)
    clients = [data.at(slice(0, 1000)), data.at(slice(1000, 2500))]
    curve = plain.Curve(network, cross_entropy, data, clients, tests=2, trainings=1)
    curve()
    curve()
    outputs = network(data.inputs)
    loss, right = cross_entropy(outputs, data.targets), (outputs.argmax(1) == data.targets).float().mean()
    means = [cross_entropy(network(own.inputs), own.targets).item() for own in clients]
    assert curve.rows[1] == pytest.approx((float(loss), float(right), sum(means) / 2), rel=1e-5)
    assert curve.rows[0][:2] == curve.rows[1][:2] and math.isnan(curve.rows[0][2])


def test_the_script_of_quadratics_has_their_gradient() -> None:
    """‖θ − c‖²/2 at θ = 0: the mean of −c."""
    centres = torch.tensor([[4.0, 0.0], [-1.0, 2.0]], dtype=torch.float64)
    network = plain.Distance(2)
    plain.half_square(network(centres), torch.zeros(2)).backward()  # type: ignore[no-untyped-call]
    assert network.model.grad is not None and network.model.grad.tolist() == [-1.5, -1.0]


def test_a_power_law_is_found() -> None:
    found = power_law((10, 100, 1000, 10_000), [3 * size**0.5 for size in (10, 100, 1000, 10_000)])
    assert (found.exponent, found.factor, found.last) == pytest.approx((0.5, 3, 0.5))
    assert found.high - found.low < 1e-9


def test_the_interval_of_an_exponent() -> None:
    """Logarithms (0, 0), (1, 1), (2, 1): slope ½, s² = 1/6, so ±t₁(.975) · √(1/12) = 12.706 · 0.28868."""
    found = power_law([1, math.e, math.e**2], [1, math.e, math.e])
    assert found.exponent == pytest.approx(0.5)
    assert (found.low, found.high) == pytest.approx((0.5 - 3.6679, 0.5 + 3.6679), abs=1e-3)
    assert found.last == pytest.approx(0, abs=1e-12)
    with pytest.raises(ValueError, match="three sizes, not 2"):
        power_law([1, 2], [1, 2])


def test_costs_are_measured_at_every_size() -> None:
    """A cost that is proportional, up to a largest size."""

    def arm(size: int) -> Callable[[], float]:
        return lambda: 2e-6 * size

    (row,) = measurement.measure(lambda _: None, [Axis("jobs", "a call", (1, 10, 100, 1000), arm)], 2, 100)
    assert row["sizes"] == [1, 10, 100] and row["seconds"] == pytest.approx([2e-6, 2e-5, 2e-4])
    assert row["exponent"] == pytest.approx(1)


@pytest.mark.slow
@pytest.mark.parametrize("axis", AXES, ids=lambda axis: f"{axis.cost}, {axis.grows}")
def test_each_cost_can_be_measured(axis: Axis, monkeypatch: pytest.MonkeyPatch) -> None:
    """At its smallest size: less than a second."""
    monkeypatch.setattr(axes, "EVENTS", 200)
    monkeypatch.setattr(axes, "LOCAL", 20)
    measured = axis.arm(axis.sizes[0])
    measured()
    assert 0 < measured() < 1


def test_models_have_the_parameters_that_are_said() -> None:
    """Weights and biases of ten classes."""
    for parameters in axes.PARAMETERS:
        problem = axes.Wide(clients=10, side=math.isqrt(parameters // 10))
        assert 10 * (math.prod(problem.shape) + 1) == parameters


NEEDED = ("start", "database", "world", "local work", "evaluation", "tracking", "page")


def test_the_cases_are_runs_of_shipped_suites() -> None:
    runs = [case.planned() for case in CASES]
    models = [getattr(run.experiment.scenario.problem, "model", None) for run in runs]
    assert [model and model.name for model in models] == [
        *("logistic", "logistic", "fraboni_cnn", "lstm", "linear", None)
    ]


@pytest.mark.slow
def test_a_whole_run_is_split_into_its_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Quadratics: what is computed, its parts, and the files that are left."""
    monkeypatch.setattr(whole, "CASES", CASES[-1:])
    done = CliRunner().invoke(
        speed.command, ["runs", "--quick", "--store", str(tmp_path)], catch_exceptions=False
    )
    assert done.exit_code == 0, done.output
    with (tmp_path / "speed-runs.csv").open() as file:
        run, script = csv.DictReader(file)
    assert (run["suite"], run["updates"], run["tests"], run["trainings"]) == ("ci", "320", "17", "17")
    seconds = {part: float(run[part] or 0) for part in PARTS}
    assert all(seconds[part] > 0 for part in NEEDED)
    assert seconds["evaluation"] < 1 and float(run["second process"]) > 0
    assert float(script["evaluation"]) > 0 and script["tracking"] == ""
    assert (tmp_path / "speed-runs.svg").read_text().count("<svg") == 1


@pytest.mark.slow
def test_other_simulators_are_measured_where_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours always, theirs if they are installed; ratios are those of medians."""
    monkeypatch.setattr(peers, "STEPS", (1,))
    monkeypatch.setattr(peers, "UPDATES", 200)
    rows = peers.measure(lambda _: None, 1)
    assert len(rows) == 4 + len(peers.SCRIPTS) - len(peers.missing())
    rates = {(row["algorithm"], row["by"]): row["steps_per_second"] for row in rows}
    for row in rows:
        auto = rates[row["algorithm"], "auto"]
        assert row["of_auto"] == pytest.approx(row["steps_per_second"] / auto)


@pytest.mark.slow
def test_a_version_beside_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same run in the same sources twice."""
    (row,) = versions.measure(ROOT, lambda _: None, [("ci", "asgd")], 1)
    assert row["before"] > 0 and row["of_before"] == pytest.approx(row["now"] / row["before"])


def test_versions_need_a_checkout(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no checkout of this package"):
        versions.measure(tmp_path, lambda _: None)
    done = CliRunner().invoke(speed.command, ["versions", "--store", str(tmp_path)])
    assert done.exit_code == 2 and "versions needs --before DIR" in done.output


def test_rows_become_lines_and_bars(tmp_path: Path) -> None:
    """A row made by hand: a line for the run and one for its script, and the same numbers in the file."""
    row = {
        "what": "logistic",
        "suite": "ace",
        "strategy": "asgd",
        "updates": 5000,
        "tests": 26,
        "trainings": 1,
        "run": {"start": 2.0, "local work": 1.25},
        "script": {"start": 1.0},
        "seconds": 3.25,
        "script_seconds": 1.0,
        "evaluation": 0.125,
        "of_script": 0.3077,
        "learning_of_script": 1.5,
        "command_seconds": 7.04,
        "seeds_an_hour": 1234.5,
        "execution": "auto",
    }
    run, script = (dict(zip(table.IN_PARTS, line, strict=True)) for line in table.in_parts([row]))
    assert (run["as"], run["start"], run["local work"], run["page"]) == ("run", "2.00", "1.25", "")
    assert (script["as"], script["s"]) == ("script", "1.0")
    (line,) = table.compared([row])
    assert line == (
        *("logistic", "ace", "5,000", "26", "1", "12%", "0.31", "1.50", "7.0", "1,234"),
        "auto",
    )
    table.write_csv([row], tmp_path / "runs.csv")
    with (tmp_path / "runs.csv").open() as file:
        written = list(csv.DictReader(file))
    assert [(one["as"], one["start"], one["local work"]) for one in written] == [
        *(("run", "2.0", "1.25"), ("script", "1.0", ""))
    ]
    table.draw([row], tmp_path / "runs.svg")
    drawn = (tmp_path / "runs.svg").read_text()
    assert drawn.count("<svg") == 1
