"""Strategies that keep a table of clients against plain re-implementations of their papers (plain_tables.py).

Five clients of unequal importance, curvature, speed and number of local steps; models agree to 1e-10.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import plain_tables as plain
import pytest

from fl_core.experiment import Experiment
from fl_core.loop.events import EventKind
from fl_core.loop.simulation import Simulation, simulate

CENTRES = np.array([[1.0, 0.0], [-2.0, 1.0], [3.0, 3.0], [0.5, -1.0], [-1.0, 4.0]])
CURVATURE = [1.0, 0.5, 2.0, 1.5, 0.7]
STEPS = [2, 3, 2, 4, 5]
TIMES = [Fraction(1), Fraction(3, 2), Fraction(7, 3), Fraction(5), Fraction(9, 7)]
FIRST = [0.3, -0.7]
UPDATES = 90
CLIENTS = plain.Clients(CENTRES, CURVATURE, STEPS)


def simulated(
    strategy: dict[str, Any],
    *,
    availability: Any = "always",
    arrangement: Any = None,
    times: Sequence[Fraction] = TIMES,
    updates: int = UPDATES,
) -> tuple[Simulation, list[tuple[Fraction, int, int]], np.ndarray]:
    """The simulation, its arrivals (time, client, version of its model) and all its models."""
    experiment = Experiment.model_validate(
        {
            "scenario": {
                "problem": {
                    "name": "quadratic",
                    "centres": CENTRES.tolist(),
                    "curvature": CURVATURE,
                    "start": FIRST,
                    "importance": [0.1, 0.4, 0.2, 0.25, 0.05],
                },
                "timing": {
                    "durations": {"name": "fixed", "times": [str(time) for time in times]},
                    "availability": availability,
                },
                "arrangement": arrangement,
                "budget": {"updates": updates},
            },
            "strategy": {
                "local_lr": 0.05,
                "server_lr": 0.7,
                "local": {"name": "sgd", "steps": STEPS},
                **strategy,
            },
            "seed": 4,
        }
    )
    simulation = Simulation(experiment)
    arrivals, models, unit = [], [simulation.server.model.numpy()], simulation.lengths.clock.unit
    for event in simulate(simulation):
        if event.kind is EventKind.ARRIVAL:
            assert event.client is not None and event.staleness is not None
            version = event.version - event.stepped - event.staleness
            arrivals.append((event.time * unit, event.client, version))
        if event.stepped:
            models.append(simulation.server.model.numpy())
    return simulation, arrivals, np.array(models)


def oracle(kind: type[plain.Algorithm], **fields: Any) -> plain.Algorithm:
    """The plain algorithm with the rates of `simulated`."""
    return kind(len(CLIENTS), np.array(FIRST), 0.7, 0.05, **fields)


def agree(found: np.ndarray, expected: list[np.ndarray], least: int) -> None:
    """Whole trajectories, of `least` steps at least."""
    assert len(found) == len(expected) > least
    np.testing.assert_allclose(found, np.array(expected), rtol=0, atol=1e-10)


ACE = {"name": "ace"}
PAIRS: list[tuple[dict[str, Any], type[plain.Algorithm], dict[str, Any]]] = [
    ({**ACE, "form": "direct"}, plain.ACEDirect, {}),
    ({**ACE, "form": "incremental"}, plain.ACEIncremental, {}),
    ({**ACE, "form": "direct", "start": "when_all_heard"}, plain.IA2SGD, {}),
    ({**ACE, "form": "incremental", "start": "when_all_heard"}, plain.IA2SGD, {}),
    *(
        ({"name": "aced", "max_age": age, "stamp": stamp, "start": start}, plain.ACED, fields)
        for age, stamp, start in (
            (1, "arrival", "first_pass"),
            (3, "model", "first_pass"),
            (3, "arrival", "when_all_heard"),
            (8, "model", "when_all_heard"),
        )
        for by_arrival, as_ia2sgd in [(stamp == "arrival", start == "when_all_heard")]
        for fields in [{"max_age": age, "by_arrival": by_arrival, "as_ia2sgd": as_ia2sgd}]
    ),
    ({"name": "afa_cs", "buffer": 3}, plain.AFACS, {"m": 3}),
    ({"name": "afa_cs", "buffer": 3, "start": "first_pass"}, plain.AFACS, {"m": 3, "first_pass": True}),
    ({"name": "ca2fl", "buffer": 3}, plain.CA2FL, {"m": 3}),
    ({"name": "ringleader"}, plain.Ringleader, {}),
]
IDS = [" ".join(map(str, strategy.values())) for strategy, _, _ in PAIRS]


@pytest.mark.parametrize(("strategy", "kind", "fields"), PAIRS, ids=IDS)
def test_with_a_schedule_of_its_own(
    strategy: dict[str, Any], kind: type[plain.Algorithm], fields: dict[str, Any]
) -> None:
    """Clients always busy: the plain loop makes the same arrivals, at the same times, and the same models."""
    _, arrivals, models = simulated(strategy)
    expected = oracle(kind, **fields)
    assert plain.play(expected, CLIENTS, TIMES, UPDATES) == arrivals
    agree(models, expected.models, 25)


# Time, worker and x after each step of the code of arXiv 2509.22860, γ = 0.1.
PUBLISHED = [
    (8.0, 0, 1.9, -2.65),
    (8.4, 1, 1.8, -2.3),
    (9.0, 0, 1.7025, -1.95875),
    (10.0, 0, 1.6099375, -1.63478125),
    (10.5, 1, 1.522375, -1.3283125),
    (11.0, 0, 1.4371265625, -1.02994296875),
    (11.1, 2, 1.351878125, -0.7315734375),
    (12.0, 0, 1.2709499609375, -0.44832486328125),
]


@pytest.mark.parametrize("form", ["direct", "incremental"])
def test_ia2sgd_as_published(form: str) -> None:
    """The worker that fills the table at 7.9 makes no step, the next arrival does."""
    experiment = Experiment.model_validate(
        {
            "scenario": {
                "problem": {
                    "name": "quadratic",
                    "centres": [[1, 0], [0, 2], [-1, -1], [4, 1]],
                    "start": [2, -3],
                },
                "timing": {"durations": {"name": "fixed", "times": [1, "2.1", "3.7", "7.9"]}},
                "budget": {"iterations": len(PUBLISHED), "updates": 99},
            },
            "strategy": {**ACE, "form": form, "start": "when_all_heard", "local_lr": 0.1},
        }
    )
    simulation = Simulation(experiment)
    steps = [
        (simulation.time, event.client, *simulation.server.model.tolist())
        for event in simulate(simulation)
        if event.stepped
    ]
    np.testing.assert_allclose(np.array(steps, float), PUBLISHED, rtol=0, atol=1e-12)


ARRANGEMENTS: dict[str, Any] = {
    "iteration delay": {"name": "iteration_delay", "mean": 3},
    "rounds": {"name": "rounds", "workers": 2, "history": 4},
    "rounds of one": {"name": "rounds", "workers": 1, "history": 6, "arrivals": [0.5, 0.2, 0.1, 0.1, 0.1]},
    "concurrency": None,
}


# All but those whose clients work whenever they are free, whatever the concurrency. Where the schedule is its
# own, ACED is tested with all of its ages.
DRAWN = [
    pytest.param(*pair, how, id=f"{name}-{how}")
    for pair, name in zip(PAIRS, IDS, strict=True)
    for how in ARRANGEMENTS
    if how != "concurrency" or pair[0]["name"] not in ("afa_cs", "ringleader")
    if pair[0].get("max_age", 3) == 3
]


@pytest.mark.parametrize(("strategy", "kind", "fields", "how"), DRAWN)
def test_with_drawn_clients(
    strategy: dict[str, Any], kind: type[plain.Algorithm], fields: dict[str, Any], how: str
) -> None:
    """Clients and base models are drawn: told who arrived with which, the plain algorithm agrees."""
    concurrency = {"concurrency": 3} if how == "concurrency" else {}
    _, arrivals, models = simulated({**strategy, **concurrency}, arrangement=ARRANGEMENTS[how])
    expected = oracle(kind, **fields)
    staleness = plain.follow(expected, CLIENTS, [(client, version) for _, client, version in arrivals])
    assert staleness > 1
    agree(models, expected.models, 10)
    heard = [client for _, client, _ in arrivals]
    if strategy.get("start", "first_pass") == "first_pass" and strategy["name"] in ("ace", "aced"):
        assert sorted(heard[:5]) == list(range(5))


@pytest.mark.parametrize("max_age", [1, 2, 8])
def test_aced_once_in_n_arrivals(max_age: int) -> None:
    """As the authors' code has it: models are sent at once, a step is made at every fifth arrival."""
    _, arrivals, models = simulated(
        {"name": "aced", "max_age": max_age, "trigger": "n_arrivals"}, updates=150
    )
    expected = oracle(plain.ACED, max_age=max_age, step_after=5)
    assert plain.play(expected, CLIENTS, TIMES, 150) == arrivals
    agree(models, expected.models, 30)


def test_drawn_clients_of_aced_once_in_n_arrivals() -> None:
    """Told who arrived with which model, where three work at a time."""
    strategy = {"name": "aced", "max_age": 2, "trigger": "n_arrivals", "concurrency": 3}
    _, arrivals, models = simulated(strategy, updates=150)
    expected = oracle(plain.ACED, max_age=2, step_after=5)
    plain.follow(expected, CLIENTS, [(client, version) for _, client, version in arrivals])
    agree(models, expected.models, 30)


@pytest.mark.parametrize("batch", [1, 5, 7, 12])
def test_malenia(batch: int) -> None:
    """Steps at the newest model only; what is unfinished is abandoned."""
    _, arrivals, models = simulated({"name": "malenia", "batch": batch}, updates=150)
    expected = oracle(plain.Malenia, batch=batch)
    assert plain.play(expected, CLIENTS, TIMES, 150) == arrivals
    agree(models, expected.models, 7)


def test_malenia_goes_on_gathering_at_equality() -> None:
    """Equal speeds, S = n: when each was heard once, (1/n) Σ 1/B_i = 1 = n/S is not yet enough."""
    equal = [Fraction(1)] * 5
    _, arrivals, models = simulated({"name": "malenia", "batch": 5}, times=equal)
    expected = oracle(plain.Malenia, batch=5)
    assert plain.play(expected, CLIENTS, equal, UPDATES) == arrivals
    assert arrivals[5] == (2, 0, 0)
    agree(models, expected.models, 7)


@pytest.mark.parametrize("start", ["when_all_heard", "next_round", "zeros"])
@pytest.mark.parametrize(("at", "back"), [(0, "61/4"), ("21/4", "61/2")], ids=["at first", "later"])
def test_mifa(start: str, at: Any, back: Any) -> None:
    """Two of five clients are away for three rounds; their rows are zeros, missing or old."""
    away = {"name": "dropouts", "share": 0.4, "at": at, "back": back}
    simulation, arrivals, models = simulated({"name": "mifa", "start": start}, availability=away)
    lost = [client for client in range(5) if simulation.state.absences_read[client]]
    assert len(lost) == 2
    expected = oracle(plain.MIFA, zeros=start == "zeros", as_code=start == "next_round")
    seen = plain.play(expected, CLIENTS, TIMES, UPDATES, plain.Absence(lost, Fraction(at), Fraction(back)))
    assert seen == arrivals
    agree(models, expected.models, 12)


def test_mifa_of_the_drawn() -> None:
    """Rounds of three drawn clients, so that every step uses rows of other rounds."""
    arrangement = {"name": "rounds", "workers": 3, "history": 1}
    _, arrivals, models = simulated({"name": "mifa"}, arrangement=arrangement)
    expected = oracle(plain.MIFA)
    for number, (_, client, version) in enumerate(arrivals):
        lr = expected.rate()
        delta, gradient = CLIENTS.work(client, expected.models[version], lr)
        left = 2 - number % 3
        expected.receive(plain.Arrival(client, version, delta, gradient, lr, left))
    agree(models, expected.models, 20)
