"""`asyncfl speed`: the yardstick is the loop it claims to be, and what is measured is all there and right."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from click.testing import CliRunner
from torch import nn
from torch.nn.functional import cross_entropy

from benchmarks.commands import speed
from benchmarks.pool.fork_server import cores
from benchmarks.speed import measurement, memory, yardstick
from benchmarks.speed.arms import Case, Counted, alone, going_on
from benchmarks.speed.noise import Babble, Noise
from benchmarks.speed.shares import shares
from fl_core.execution.auto import Auto
from fl_core.execution.execution import Need
from fl_core.execution.one_by_one import OneByOne
from fl_core.execution.stacked import AllInFlight

ARMS = [
    "yardstick",
    "tight loop",
    "tight, by hand",
    "one by one",
    "all in flight",
    "auto",
    "16 at once",
    "floor",
]


def test_the_yardstick_of_one_client_is_stochastic_gradient_descent() -> None:
    """One client, always up to date: the same as SGD written down without clients, heap or optimiser."""
    random = torch.Generator().manual_seed(3)
    images, labels = torch.rand(40, 6, generator=random), torch.arange(40) % 4
    network = nn.Linear(6, 4)
    weight, bias = (p.detach().clone().requires_grad_() for p in network.parameters())
    found = yardstick.simulate(network, images, labels, [np.arange(40)], updates=12, batch=5, lr=0.3)
    draws = np.random.default_rng(0)
    draws.exponential()
    for _ in range(12):
        chosen = torch.from_numpy(draws.choice(np.arange(40), 5))
        draws.exponential()
        loss = cross_entropy(images[chosen] @ weight.T + bias, labels[chosen])
        by_weight, by_bias = torch.autograd.grad(loss, (weight, bias))
        with torch.no_grad():
            weight -= 0.3 * by_weight
            bias -= 0.3 * by_bias
    torch.testing.assert_close(found, [weight.detach(), bias.detach()])


def test_the_yardstick_keeps_the_model_that_was_sent() -> None:
    """Two updates of two clients: both are made from the first model, and both are added to the server's."""
    images, labels = torch.eye(20), torch.arange(20) % 3
    network = nn.Linear(20, 3)
    first = [p.detach().clone() for p in network.parameters()]
    draws = np.random.default_rng(0)
    arrivals = draws.exponential(size=20)
    draws.choice(1, 1)
    earliest, second = np.argsort(arrivals)[:2]
    assert arrivals[earliest] + draws.exponential() > arrivals[second]  # so it is not the same client again
    parts = [np.array([client]) for client in range(20)]
    found = yardstick.simulate(network, images, labels, parts, updates=2, batch=1, lr=0.1)
    weight, bias = (p.clone().requires_grad_() for p in first)
    heard = [int(earliest), int(second)]
    loss = cross_entropy(images[heard] @ weight.T + bias, labels[heard], reduction="sum")
    steps = torch.autograd.grad(loss, (weight, bias))
    torch.testing.assert_close(found, [p - 0.1 * g for p, g in zip(first, steps, strict=True)])


@pytest.mark.parametrize("hand", [False, True])
def test_the_tight_loop_computes_the_same(hand: bool) -> None:
    """Twenty clients, 60 updates: stale gradients, the same draws, the same model to rounding."""
    random = torch.Generator().manual_seed(4)
    inputs, labels = torch.rand(40, 6, generator=random), torch.arange(40) % 4
    network, about = nn.Linear(6, 4), {"updates": 60, "batch": 5}
    first = tuple(p.detach().clone() for p in network.parameters())
    parts = np.array_split(np.arange(40), 20)
    wanted = yardstick.simulate(network, inputs, labels, parts, **about, lr=0.3)
    gradient = yardstick.by_hand if hand else yardstick.by_autograd(network)
    found = yardstick.simulate_tightly(gradient, first, inputs, labels, parts, **about, lr=0.3)
    torch.testing.assert_close(list(found), wanted)
    assert all(not torch.equal(p, before) for p, before in zip(found, first, strict=True))


def test_a_run_in_its_stride_counts_what_it_computes() -> None:
    """At least as many as asked for, and no more than a stack beyond."""
    go_on = alone(Case("logistic", in_flight=10, updates=40), AllInFlight(8))
    for _ in range(3):
        assert 40 <= go_on() < 48


def test_measuring_is_over_before_the_clock_starts() -> None:
    """An execution that says it is measuring is let run until it no longer does."""
    labels = iter(["auto, still measuring"] * 3 + ["auto: one by one"] * 100)

    class Slow:
        label = property(lambda self: next(labels))

        def fill(self, needs: Sequence[Need]) -> int:
            return len(needs)

    counted = Counted(Slow())

    def events() -> Iterator[None]:
        while True:
            counted.fill([SimpleNamespace()])  # type: ignore[list-item]
            yield

    go_on = going_on(events(), counted, updates=5)
    assert counted.computed == 4
    assert go_on() == 5


def test_shares_are_shares() -> None:
    """What is outside local work is outside the gradients, too."""
    for execution in (OneByOne(), AllInFlight(4)):
        found = shares(Case("logistic", in_flight=5, updates=30), execution)
        assert 0 < found["outside_local_work"] < found["outside_gradients"] < 1


@pytest.mark.slow
def test_the_command_leaves_numbers_and_a_figure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A small measurement from end to end: table, JSON, SVG."""
    monkeypatch.setattr(Auto, "known", {})
    plan = measurement.SpeedPlan(
        cases=(Case("logistic", in_flight=100, updates=50),), queues=(20,), repeats=2
    )
    monkeypatch.setattr(measurement, "QUICK", plan)
    monkeypatch.setattr(memory, "peak", lambda *_: 12.0)  # a process of its own each: see below
    arguments = ["--quick", "--store", str(tmp_path)]
    done = CliRunner().invoke(speed.command, arguments, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    found = json.loads((tmp_path / "speed.json").read_text())
    assert [row["arm"] for row in found["updates"]] == ARMS
    by_arm = {row["arm"]: row for row in found["updates"]}
    assert by_arm["yardstick"]["of_yardstick"] == by_arm["floor"]["of_floor"] == 1
    assert by_arm["tight loop"]["of_tight"] == by_arm["tight, by hand"]["of_tight_by_hand"] == 1
    for row in found["updates"]:
        assert row["updates_per_second"] == pytest.approx(1 / np.median(row["seconds"]))
        ratio = row["updates_per_second"] / by_arm["yardstick"]["updates_per_second"]
        assert row["of_yardstick"] == pytest.approx(ratio)
        assert row["arm"] in done.output
    assert by_arm["auto"]["chosen"].startswith("auto: ")
    assert {row["clients"] for row in found["schedule"]} == {20}
    assert all(row["events_per_second"] > 100 for row in found["schedule"])
    assert [(row["strategy"], row["mebibytes"]) for row in found["memory"]] == [
        ("fedbuff", 12),
        ("afa_cd", 12),
    ]
    (row,) = found["cores"]
    assert len(row["rates"]) == row["processes"] == cores()
    together = sum(np.median(rates) for _, rates in row["rates"])
    yardstick = np.mean([np.median(plain) for plain, _ in row["rates"]])
    assert row["of_yardstick"] == pytest.approx(together / yardstick)
    assert 0 < found["tracking"]["seconds"] == 60 * found["tracking"]["share_of_a_minute"] < 10
    assert (tmp_path / "speed.svg").read_text().count("<svg") == 1


@pytest.mark.slow
@pytest.mark.parametrize("strategy", ["fedbuff", "afa_cd"])
def test_a_hundred_thousand_clients_fit(strategy: str) -> None:
    """With 1,000 in flight: no more than 2 GiB beyond the data."""
    assert memory.peak(strategy, 100_000, 1_000) < 2048


def test_the_yardstick_of_the_lstm_has_the_same_function() -> None:
    """nn.LSTM with the weights of the network of the simulator: the same logits, gate by gate."""
    problem = Babble()
    ours, plain = problem.model.build(problem.shape, problem.classes), yardstick.CharLSTM(problem.classes)
    values = iter(ours.state_dict().values())
    plain.load_state_dict({name: next(values) for name in plain.state_dict()})
    inputs = problem.load().x_test[:5]
    torch.testing.assert_close(plain(inputs.long()), ours(inputs))


def test_the_images_have_the_shape_of_the_real_ones() -> None:
    """60,000 grey images of bytes, all ten classes."""
    data = Noise().load()
    assert data.x_train.shape == (60_000, 1, 28, 28)
    assert data.x_train.dtype == torch.uint8
    assert data.y_train.unique().tolist() == list(range(10))
    scaled = (data.x_train[:2000].float() - data.mean[0]) / data.std[0]
    assert abs(float(scaled.mean())) < 0.01
    assert float(scaled.std()) == pytest.approx(1, abs=0.01)
