"""Time and energy to an accuracy: by hand, finite differences, brute force, and the bound behind them."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize, minimize_scalar

from fl_core.theory.cost import Cost
from fl_core.theory.optimum import optimise, optimise_jointly
from fl_core.theory.routing import G, H, QueueingNetwork, balanced, uniform
from tests.papers.asyncsgd import step_limit

POSITIVE = st.floats(0.1, 10)


@st.composite
def networks(draw):
    """A network whose server takes time, or no time."""
    n = draw(st.integers(2, 6))
    parts, speeds = (draw(st.lists(POSITIVE, min_size=n, max_size=n)) for _ in range(2))
    server = draw(st.sampled_from([np.inf, 0.3, 2.0, 20.0]))
    return QueueingNetwork(np.array(parts) / sum(parts), np.array(speeds), draw(st.integers(1, 9)), server)


def cost(n, accuracy=10.0, weight=0.0):
    """Clients that draw 1, 2, … watts at work, and a tenth of 3 without a task."""
    return Cost(accuracy, 15, 209, np.arange(1.0, n + 1), np.full(n, 0.3), smoothness=0.7, weight=weight)


def test_one_client_by_hand():
    """T = 4 A L B / (ε/8)², no task is ever old; a client of speed 2 that draws 5 W."""
    network = QueueingNetwork(np.ones(1), np.array([2.0]), 1)
    one = Cost(accuracy=8, gap=3, noise=4, computation=np.array([5.0]), idle=np.array([1.0]))
    assert one.rounds(network) == pytest.approx(48)
    assert one.step(network) == pytest.approx(1 / 8)
    assert one.time(network) == pytest.approx(24)
    assert one.energy(network) == pytest.approx(120)
    served = replace(network, server=1.0)  # 1.5 s an update, of which the client works .5
    assert one.time(served) == pytest.approx(72)
    assert one.energy(served) == pytest.approx(48 * (0.5 * 5 + 1))


@given(networks(), st.floats(0.1, 600))
def test_the_step_size_is_the_best_and_within_the_limit_of_the_bound(network, accuracy):
    """8G with that step size and number of rounds is the accuracy; other step sizes take more."""
    target = cost(len(network.p), accuracy)
    step, rounds = target.step(network), target.rounds(network)
    bound = G(step, target.gap, target.noise, 0, target.smoothness)
    floor = bound.value(network) - target.gap / step
    assert 8 * (target.gap / (step * rounds) + floor) == pytest.approx(accuracy)
    assert step * target.smoothness <= step_limit(network) * (1 + 1e-12)
    for other in (0.99 * step, 1.01 * step):
        slack = accuracy / 8 - (replace(bound, lr=other).value(network) - target.gap / other)
        assert slack <= 0 or target.gap / (other * slack) > rounds


@given(networks())
def test_energy_is_that_of_busy_and_idle_clients(network):
    target = cost(len(network.p))
    busy = network.present.tail[: len(network.p), 0]
    watts = np.sum(target.idle + (target.computation - target.idle) * busy)
    assert target.energy(network) / target.time(network) == pytest.approx(watts, rel=1e-9)


@given(networks())
def test_tasks_in_flight_add_up(network):
    assert network.relative_delay.sum() == pytest.approx(network.tasks - 1)
    assert network.p @ network.staleness == pytest.approx(network.tasks - 1)
    assert network.throughput * (network.p @ network.sojourn) == pytest.approx(network.tasks)


@pytest.mark.parametrize("kind", ["G", "H", 0.0, 0.4, 1.0])
@given(network=networks())
def test_gradient_against_finite_differences(kind, network):
    n = len(network.p)
    bounds = {"G": G(0.01, 15, 209, 3000), "H": H(0.01, 15, 209)}
    objective = bounds[kind] if kind in bounds else cost(n, weight=kind)
    slope = objective.gradient(network)
    for j in range(n):
        away = np.zeros(n)
        away[j] = 1e-5 * network.p[j]
        ends = [objective.value(replace(network, p=network.p + sign * away)) for sign in (1, -1)]
        numeric = (ends[0] - ends[1]) / (2 * away[j])
        scale = np.abs(slope).max() + objective.value(network)  # slopes may cancel
        assert slope[j] == pytest.approx(numeric, rel=1e-5, abs=1e-6 * scale)


@pytest.mark.parametrize(
    ("weight", "server"),
    [
        (0.0, 1.5),
        *(
            pytest.param(weight, server, marks=pytest.mark.slow)
            for weight, server in ((0.0, np.inf), (0.5, np.inf), (0.5, 1.5), (1.0, np.inf), (1.0, 1.5))
        ),
    ],
)
def test_joint_choice_against_brute_force(weight, server):
    """Two clients: every number of tasks up to 12, and for each the best p by bisection."""
    speeds, target = np.array([0.5, 2.0]), cost(2, accuracy=100.0, weight=weight)

    def least(tasks):
        def value(share):
            return target.value(QueueingNetwork(np.array([share, 1 - share]), speeds, tasks, server))

        return minimize_scalar(value, bounds=(0.001, 0.999), method="bounded", options={"xatol": 1e-10}).fun

    values = {tasks: least(tasks) for tasks in range(1, 13)}
    found = optimise_jointly(target, speeds, 12, server=server)
    assert found.tasks == min(values, key=values.__getitem__)
    assert found.value == pytest.approx(min(values.values()), rel=1e-8)


def test_tied_routing_against_another_optimiser():
    speeds, target = np.repeat([0.1, 1.0, 3.0], 4), cost(12, weight=0.3)
    target = replace(target, computation=np.repeat([1.0, 2.0, 5.0], 4))
    end = optimise(target, speeds, 9, tied=True, server=4.0, restarts=False)[0]

    def value(theta):
        shares = np.repeat(np.exp(theta), 4)
        return target.value(QueueingNetwork(shares / shares.sum(), speeds, 9, 4.0))

    assert end.value == pytest.approx(minimize(value, np.zeros(3), method="Nelder-Mead").fun, rel=1e-6)
    assert end.value < min(
        target.value(QueueingNetwork(p, speeds, 9, 4.0)) for p in (uniform(12), balanced(speeds))
    )


def test_more_weight_on_energy_costs_time():
    speeds = np.repeat([0.2, 1.0], 3)
    target = replace(cost(6), computation=np.repeat([0.5, 6.0], 3), idle=np.full(6, 0.1))
    ends = [optimise_jointly(replace(target, weight=weight), speeds, 3, groups=speeds) for weight in (0, 1)]
    networks = [QueueingNetwork(end.p, speeds, end.tasks) for end in ends]
    assert np.all(np.diff([target.time(network) for network in networks]) > 0)
    assert np.all(np.diff([target.energy(network) for network in networks]) < 0)


@pytest.mark.parametrize("accuracy", [0.0, 628.0])
def test_accuracies_for_which_the_bound_does_not_hold(accuracy):
    with pytest.raises(ValueError, match="noise"):
        cost(3, accuracy)
