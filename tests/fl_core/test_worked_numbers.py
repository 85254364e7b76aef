"""Numbers worked by hand or by another program: examples, quadratics, caches, exact weights."""

from __future__ import annotations

from fractions import Fraction
from math import ceil
from typing import Any

import numpy as np
import pytest
from worlds import Scripted, play, scenario

from fl_core.experiment import Experiment
from fl_core.local_work import SGD
from fl_core.loop.simulation import Simulation, simulate
from fl_core.scenario import Scenario
from fl_core.server.jobs import Send, Update
from fl_core.server.server import Server
from fl_core.strategies.aced import ACED
from fl_core.strategies.asgd import ASGD
from fl_core.strategies.async_fedavg import AsyncFedAvg
from fl_core.strategies.ca2fl import CA2FL
from fl_core.strategies.delayed_nesterov import DelayedNesterov
from fl_core.strategies.fedavg import FedAvg
from fl_core.strategies.fedfix import FedFix
from fl_core.strategies.strategy import Strategy


def trajectory(strategy: Strategy, where: Scenario) -> list[float]:
    """First coordinate of every version, the first model included."""
    simulation = Simulation(Experiment(scenario=where, strategy=strategy))
    first = simulation.server.model[0].item()
    return [first, *(simulation.server.model[0].item() for event in simulate(simulation) if event.stepped)]


class TwoByTwo(Scripted):
    """Example 1: clients 0, 2 at odd rounds, 1, 3 at even ones, models received two rounds ago."""

    local_lr: float = 0.1

    def begin(self, server: Server) -> None:
        server.memory.total = server.zeros()

    def receive(self, server: Server, update: Update) -> None:
        server.memory.total += update.delta / 2
        if update.client >= 2:
            server.step(server.memory.total)
            self.begin(server)

    def next(self, server: Server) -> list[Send]:
        return [Send(client, length=1 if server.now == 0 and client % 2 == 0 else 2) for client in server.due]


@pytest.mark.parametrize(
    ("phi", "expected"),
    [
        (0.25, [0, 0.25, 0.5, 0.6875, 0.8125, 0.890625, 0.9375, 0.96484375]),
        (0.5, [0, 0.5, 1, 1.25, 1.25, 1.125, 1, 0.9375]),
        (1.0, [0, 1, 2, 2, 1, 0, 0, 1]),  # never converges: period 6
    ],
)
def test_example_1_recursion(phi: float, expected: list[float]) -> None:
    """θ^{n+2} = θ^{n+1} + φ(θ* − θ^n), one local step so that φ = η_l (Fraboni et al., Example 1)."""
    where = scenario([1] * 4, centres=[[0.0], [0.0], [2.0], [2.0]], updates=14)
    assert trajectory(TwoByTwo(local_lr=phi), where) == pytest.approx(expected, abs=1e-12)


def test_example_1_with_five_local_steps_converges() -> None:
    """φ = 1 − (1 − η_l)^K = .40951 for η_l = .1, K = 5."""
    where = scenario([1] * 4, centres=[[0.0], [0.0], [2.0], [2.0]], updates=200)
    found = trajectory(TwoByTwo(local_lr=0.1, local=SGD(steps=5)), where)
    assert found[:6] == pytest.approx([0, 0.40951, 0.81902, 1.06083, 1.13494, 1.11003], abs=5e-6)
    assert found[-1] == pytest.approx(1, abs=1e-9)


@pytest.mark.parametrize(("q1", "q2", "phi"), [(0.5, 0.5, 0.1), (0.75, 0.25, 0.1), (0.75, 0.25, 0.01)])
def test_example_2_ends_in_the_exact_two_cycle(q1: float, q2: float, phi: float) -> None:
    """Two clients alternate. The paper's limit holds as φ → 0 only; the attractor is a 2-cycle."""
    a, b = 1.0, -2.0
    updates = round(60 / phi)  # (1 − q_1 φ)(1 − q_2 φ) < e^{−φ} in every two: e^{−30} of the start is left
    where = scenario([1, 1], centres=[[a], [b]], updates=updates)
    after_2, after_1 = reversed(trajectory(AsyncFedAvg(weights=(q1, q2), local_lr=phi), where)[-2:])
    d = q1 + q2 + q1 * q2 * phi
    assert after_1 == pytest.approx((q1 * a * (1 + q2 * phi) + q2 * b) / d, abs=1e-9)
    assert after_2 == pytest.approx((q2 * b * (1 + q1 * phi) + q1 * a) / d, abs=1e-9)
    if phi == 0.1:
        printed = {0.5: (-0.463415, -0.536585), 0.75: (0.263804, 0.208589)}[q1]
        assert (after_1, after_2) == pytest.approx(printed, abs=1e-6)
        assert abs(after_1 - (q1 * a + q2 * b) / (q1 + q2)) > 0.01  # the printed limit is not reached


CENTRES = [[1.0], [-2.0], [3.0], [0.5]]
F80 = [Fraction(15, 15), Fraction(11, 15), Fraction(7, 15), Fraction(3, 15)]


@pytest.mark.parametrize(
    ("strategy", "updates", "expected"),
    [
        (AsyncFedAvg(weights="identical", local_lr=0.1), 4000, 0.75752),
        pytest.param(
            AsyncFedAvg(weights="identical", local_lr=0.01), 10_000, 0.757514, marks=pytest.mark.slow
        ),
        (AsyncFedAvg(weights="time_based", local_lr=0.1), 4000, 0.64058),
        pytest.param(
            AsyncFedAvg(weights="time_based", local_lr=0.01), 10_000, 0.62670, marks=pytest.mark.slow
        ),
        (FedFix(local_lr=0.1), 10_000, 0.63924),
        pytest.param(FedFix(local_lr=0.01), 10_000, 0.62641, marks=pytest.mark.slow),
    ],
    ids=lambda value: f"{value.label()} {value.local_lr}" if isinstance(value, Strategy) else "",
)
def test_four_clients_f80(strategy: Strategy, updates: int, expected: float) -> None:
    """The authors' loop printed the mean of its last 2000 steps: ours passes through it in one cycle."""
    found = trajectory(strategy, scenario(F80, centres=CENTRES, updates=updates))
    sums = np.cumsum(found[-(2000 + 732) :])  # the schedule repeats every 732 steps
    means = (sums[2000:] - sums[:-2000]) / 2000
    assert means.min() - 5e-6 <= expected <= means.max() + 5e-6  # five decimals are printed
    assert np.ptp(means) < 2e-3  # narrow enough to say something


def test_exact_weights_of_four_clients() -> None:
    """d = (2.37662, 1.74286, 1.10909, .47532); FedFix-.5 (2,2,1,1)/4, FedFix-.2 (5,4,3,1)/4."""
    where = scenario(F80, centres=CENTRES, updates=1)

    def weights(strategy: Strategy) -> list[float]:
        return play(strategy, where)[0].server.memory.weights

    assert weights(AsyncFedAvg()) == pytest.approx([2.37662, 1.74286, 1.10909, 0.47532], abs=5e-6)
    for fix, expected in (
        (FedFix(), [0.5, 0.5, 0.25, 0.25]),
        (FedFix(period=Fraction(1, 5)), [1.25, 1.0, 0.75, 0.25]),
    ):
        server = play(fix, where)[0].server
        assert [fix.weight(server, client) for client in range(4)] == expected
    assert [ceil(time / Fraction(1, 5)) for time in F80] == [5, 4, 3, 1]


def test_ca2fl_by_hand_for_two_clients() -> None:
    """Buffer 2, rate 1/2 on ½‖θ − c‖², c = (0, 8), jobs of length 1 and 3; worked out on paper.

    t=1 Δ_0=0; t=2 Δ_0=0 again, calibrated 0−0: step 1 adds h + (0+0)/2 = 0; h = 0; θ=0.
    t=3 client 0 (sent at 2) Δ_0=0−0; client 1 (sent at 0 from θ=0) Δ_1=4, old h_1=0:
    step 2 adds (0+4)/2 = 2; h = 2; θ=2.
    t=4 Δ_0 = −1 from θ=2, calibrated −1; t=5 Δ_0 = −1 again, calibrated 0 (its cache is new):
    step 3 adds 2 − 1/2; θ=3.5.
    """
    where = scenario([1, 3], centres=[[0.0], [8.0]], updates=6)
    strategy = CA2FL(buffer=2, concurrency=2, local_lr=0.5)
    assert trajectory(strategy, where)[:4] == [0, 0, 2, 3.5]


def test_aced_once_in_n_by_hand_for_two_clients() -> None:
    """Rate 1/2 on ½‖θ − c‖², c = (1, −2), jobs of length 1 and 3; worked out on paper.

    t=1 Δ_0=1/2, which waits for the first pass; t=3 Δ_1=−1: step 1 adds −1/4; θ=−1/4.
    t=4 and t=5 Δ_0=5/8 from θ=−1/4, the second update of two: step 2 adds (5/8 − 1)/2; θ=−7/16.
    t=6 Δ_0=23/32 from θ=−7/16, Δ_1=−7/8 from θ=−1/4: step 3 adds (23/32 − 7/8)/2; θ=−33/64.
    """
    where = scenario([1, 3], centres=[[1.0], [-2.0]], updates=6)
    found = trajectory(ACED(trigger="n_arrivals", local_lr=0.5), where)
    assert found == [0, -1 / 4, -7 / 16, -33 / 64]


def nesterov(name: str) -> dict[str, Any]:
    return {"server": {"name": name, "beta": 0.5}, "server_lr": 1.0, "local_lr": 0.5}


@pytest.mark.parametrize(
    ("strategy", "expected"),
    [
        (FedAvg(**nesterov("nesterov")), [0, 3 / 2, 17 / 8, 71 / 32]),
        (ASGD(**nesterov("nesterov")), [0, 6, 17 / 2, 71 / 8, 99 / 16]),
        (ASGD(**nesterov("look_ahead")), [0, 5, 59 / 8, 525 / 64, 763 / 128]),
        (
            DelayedNesterov(buffer=2, momentum=0.5, server_lr=1.0, local_lr=0.5),
            [0, 2, 21 / 4, 95 / 16, 181 / 32],
        ),
    ],
    ids=["DiLoCo", "asynchronous DiLoCo", "look-ahead", "Delayed Nesterov"],
)
def test_outer_momentum_by_hand_for_two_clients(strategy: Strategy, expected: list[float]) -> None:
    """Rate 1/2 on ½‖θ − c‖², c = (8, −4), jobs of length 1 and 3, β = 1/2; worked out on paper.

    DiLoCo: mean Δ = (2 − θ)/2. Δ=1, v=1, θ=1+1/2; Δ=1/4, v=3/4, θ+=1/4+3/8; Δ=−1/16, v=5/16, θ+=−1/16+5/32.
    The others: t=1 Δ_0=4; t=2 and t=3 Δ_0=(8 − θ)/2; t=3 Δ_1=−2 from θ=0.
    Asynchronous: v=4, θ=4+2; Δ=1, v=3, θ+=1+3/2; Δ=−1/4, v=5/4, θ+=−1/4+5/8; v=−11/8, θ+=−2−11/16.
    Look-ahead, v ← (v + Δ)/2: v=2, θ=4+1; Δ=3/2, v=7/4, θ+=3/2+7/8; Δ=5/16, v=33/32, θ+=5/16+33/64;
    v=−31/64, θ+=−2−31/128.
    Delayed, N=2: θ=4/2; Δ=3, m=7/2, θ+=3/2+7/4; Δ=11/8, θ+=11/16; m=(7/2)/2−5/16, θ+=−1+23/32.
    """
    found = trajectory(strategy, scenario([1, 3], centres=[[8.0], [-4.0]], updates=6))
    assert found[: len(expected)] == expected


def test_mean_staleness_is_concurrency_minus_one() -> None:
    """One update a step, every client always busy: the mean staleness tends to C − 1 exactly."""
    for times, expected in (([Fraction(1), Fraction(1, 2)], 1), (F80, 3)):
        _, seen = play(AsyncFedAvg(), scenario(times, updates=732 * 3))
        staleness = [event.staleness for event in seen if event.staleness is not None]
        assert np.mean(staleness[732:]) == pytest.approx(expected, abs=0.01)
    assert max(staleness) == 10
