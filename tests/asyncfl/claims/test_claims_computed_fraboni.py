"""Fraboni's computed claims: schedules and models against the simulator, and checks that can fail."""

from dataclasses import replace
from fractions import Fraction
from itertools import islice
from types import SimpleNamespace

import numpy as np
import pytest

from asyncfl.claims.computed import fraboni as claims
from asyncfl.claims.computed import fraboni_quadratics as quadratics
from asyncfl.claims.computed import fraboni_schedules as schedules
from asyncfl.claims.computed import fraboni_theorems as theorems
from asyncfl.claims.computed.slack import slack
from asyncfl.claims.theory import fraboni
from fl_core.experiment import Experiment
from fl_core.loop.simulation import Simulation, simulate
from fl_core.scenario import Budget, Scenario
from fl_core.schema import Status

TIMES = schedules.hardware(4, 80)
SCHEDULES = {
    "async_fedavg": lambda: schedules.one_by_one(TIMES),
    "fedfix": lambda: schedules.ticks(TIMES, Fraction(1, 2)),
    "fedbuff_c": lambda: schedules.buffers(TIMES, 2),
    "fedavg": lambda: schedules.synchronous(TIMES),
}


def simulation(name: str, updates: int, **more: object) -> Simulation:
    scenario = Scenario(
        problem={
            "name": "quadratic",
            "centres": [[centre] for centre in quadratics.CENTRES],
            "curvature": tuple(theorems.CURVATURE),
            "start": (theorems.FIRST,),
        },
        timing={"durations": {"name": "fx", "spread": 80}},
        budget=Budget(updates=updates),
    )
    return Simulation(Experiment(scenario=scenario, strategy={"name": name, **more}))


@pytest.mark.parametrize(
    ("name", "options"), [(name, {"buffer": 2} if name == "fedbuff_c" else {}) for name in SCHEDULES]
)
def test_schedules_are_those_of_the_simulator(name, options):
    seen = [
        (event.client, event.staleness)
        for event in simulate(simulation(name, 300, **options))
        if event.staleness is not None
    ]
    played = [
        (client, n - version)
        for n, here in enumerate(islice(SCHEDULES[name](), 400))
        for client, version in sorted(here.items())
    ]
    for client in range(4):
        mine = [age for who, age in seen if who == client]
        assert mine == [age for who, age in played if who == client][: len(mine)]
        assert len(mine) > 20


@pytest.mark.parametrize("name", ["async_fedavg", "fedfix"])
def test_models_are_those_of_the_simulator(name):
    running = simulation(name, 240, local_lr=0.1)
    found = [running.server.model.item() for event in simulate(running) if event.stepped]
    scheme = {"async_fedavg": "asynchronous"}.get(name, name)
    column, schedule = schedules.scheme_of(scheme, TIMES)
    models = theorems.virtual_models(
        list(islice(schedule, len(found))),
        np.array(column.weights, float),
        lr=0.1,
        steps=1,
        noise=0.0,
        seeds=1,
    )
    assert len(found) > 50
    np.testing.assert_allclose(found[:-1], models[0, 1:, 0], atol=1e-12)


def test_a_bound_that_is_too_low_is_seen(monkeypatch):
    honest = fraboni.theorem_1
    assert theorems.theorem_1_slack(scheme="fedfix", steps=1, rounds=100) >= 1
    monkeypatch.setattr(fraboni, "theorem_1", lambda *given: replace(honest(*given), start=0.0, joint=0.0))
    assert theorems.theorem_1_slack(scheme="fedfix", steps=1, rounds=100) < 1


def test_windows_that_are_too_short_are_not_fair(monkeypatch):
    assert claims.window_is_fair(scheme="asynchronous", clients=4, spread=80)

    def shorter(*given: object) -> object:
        scheme, schedule = schedules.scheme_of(*given)
        return replace(scheme, window=scheme.window - 1), schedule

    monkeypatch.setattr(claims, "scheme_of", shorter)
    assert not claims.window_is_fair(scheme="asynchronous", clients=4, spread=80)


def test_a_wrong_mean_is_not_passed_through():
    assert not quadratics.passes_through(scheme="fedfix", phi=0.1, printed=0.625)


@pytest.mark.parametrize(("q", "phi"), [((0.5, 0.5), 0.1), ((0.75, 0.25), 0.3)])
def test_attractor_is_where_example_2_ends(q, phi):
    """Two clients in turn, each from the model before the other's update."""
    exact = quadratics.example_2_attractor(q=[str(part) for part in q], phi=str(phi), optima=[1, -2])
    before = now = 0.0
    for n in range(40_000):
        before, now = now, now + q[n % 2] * phi * ((1, -2)[n % 2] - before)
    assert (before, now) == pytest.approx([float(x) for x in exact], abs=1e-12)


def test_exponential_participation_by_drawing():
    """A client whose remaining time is exponential joins a tick if it is at most Δt."""
    stream, rounds = np.random.default_rng(0), 200_000
    means = np.array([float(time) for time in schedules.hardware(10, 80)])
    joins = (stream.exponential(means, (rounds, 10)) <= 0.5).mean(0)
    drawn = np.ceil(means / 0.5) * joins
    found = claims.fedfix_under_exponential_times(clients=10, spread=80, period="1/2")
    np.testing.assert_allclose(found, drawn, atol=4 * 2 * 0.5 / np.sqrt(rounds))


def test_unusable_share_by_hand():
    def run(loss: float, status: Status = Status.DONE) -> SimpleNamespace:
        return SimpleNamespace(status=status, files=SimpleNamespace(curve={"fp/loss": np.array([9.0, loss])}))

    assert claims.unusable_share([run(1.0), run(2.0), run(2.1), run(0.9, Status.DIVERGED)]) == 0.5


@pytest.mark.parametrize(
    ("slack", "theorem", "change"),
    [
        (lambda: theorems.theorem_2_slack(scheme="asynchronous", steps=1, rounds=100), "theorem_2", 1e-3),
        (lambda: theorems.theorem_4_slack(scheme="fedfix", steps=1, windows=100), "theorem_4", 0.1),
    ],
)
def test_lower_bounds_of_the_other_theorems_are_seen(monkeypatch, slack, theorem, change):
    honest = getattr(fraboni, theorem)
    assert slack() >= 1
    monkeypatch.setattr(fraboni, theorem, lambda *given, **named: change * honest(*given, **named))
    assert slack() < 1


def test_a_wrong_alpha_is_seen_by_enumeration(monkeypatch):
    honest = theorems.sampled
    assert theorems.property_1_holds(sampling="uniform", clients=4, size=2)
    wrong = lambda *given: replace(honest(*given), alpha=Fraction(1))  # noqa: E731
    monkeypatch.setattr(theorems, "sampled", wrong)
    assert not theorems.property_1_holds(sampling="uniform", clients=4, size=2)


def test_enumerated_sampling_by_hand():
    """Two of three: α = 3·1/(2·2) = 3/4; two MD draws: α = 1/2, β = 1/2."""
    assert theorems.sampled("uniform", 2, 3).alpha == Fraction(3, 4)
    assert theorems.sampled("MD", 2, 3).alpha == theorems.sampled("MD", 2, 3).beta == Fraction(1, 2)


def test_biased_sampling_ends_at_the_optimum_of_those_it_takes():
    curvature, centres = theorems.CURVATURE, np.array(quadratics.CENTRES)
    fast = curvature[2:] @ centres[2:] / curvature[2:].sum()
    apart = np.abs(centres - theorems.OPTIMUM).mean()
    found = theorems.biased_sampling_ends(criterion="fastest", size=2)
    assert found == pytest.approx(abs(fast - theorems.OPTIMUM) / apart, rel=1e-6)
    assert theorems.biased_sampling_ends(criterion="fastest", size=4) < 1e-9  # all of them: no bias


def test_slack_is_that_of_the_tightest_place():
    """Means of the first values are 2, 4, 3."""
    assert slack({1: 4.0, 2: 6.0, 3: 9.0}.__getitem__, [2.0, 6.0, 1.0]) == 1.5
    assert slack({1: 1.0, 2: 6.0, 3: 9.0}.__getitem__, [2.0, 6.0, 1.0]) == 0.5  # a bound that does not hold
    assert slack({1: 1.0, 2: 6.0, 3: 9.0}.__getitem__, [2.0, 6.0, 1.0], every=2) == 1.5
    assert slack({1: 0.0, 2: 9.0}.__getitem__, [0.0, 6.0]) == 3  # nothing is measured at first
    assert slack({1: 0.0}.__getitem__, [0.0]) == np.inf
