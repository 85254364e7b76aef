"""How often each client takes part: closed forms against counted arrivals, and nothing where there is none.

Every strategy with its defaults, as every own one, is counted by the conformance suite (slow). Here are other
values of fields, the formula for drawn clients against the chain itself, and when no formula is given.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from fl_core.execution.schedule_only import ScheduleOnly
from fl_core.experiment import Experiment
from fl_core.loop.events import EventKind
from fl_core.loop.simulation import Simulation, simulate
from fl_core.metrics import SURROGATE, TRAINING
from fl_core.recording.evaluation import surrogate_weights
from fl_core.recording.recorder import run
from fl_core.strategies.strategy import Strategy
from fl_core.theory.arrival_shares import drawn

TIMES = [1, 1, 1, 1, 2, 2, 5, 10]
N = len(TIMES)
FIXED, EXPONENTIAL = ({"name": name, "times": TIMES} for name in ("fixed", "exponential"))
SETTLED, COUNTED = 500, 2500  # arrivals before shares are counted, and arrivals counted
PARTS = 25  # consecutive parts of the arrivals counted


def experiment(strategy: Any, durations: Any = EXPONENTIAL, **scenario: Any) -> Experiment:
    """A strategy on eight clients of unequal importance and speed."""
    timing = {"durations": durations, **scenario.pop("timing", {})}
    where = {
        "problem": {
            "name": "quadratic",
            "centres": [[float(client)] for client in range(N)],
            "importance": [1, 2, 3, 4, 5, 6, 7, 8],
        },
        "timing": timing,
        "budget": {"updates": SETTLED + COUNTED},
        **scenario,
    }
    return Experiment.model_validate({"scenario": where, "strategy": strategy, "seed": 1})


def sampled(name: str, **fields: Any) -> dict[str, Any]:
    return {"name": "fedavg", "sampling": {"name": name, "sample": 3, **fields}}


def pure(buffer: int) -> dict[str, Any]:
    return {"name": "asgrad", "assignment": "pure", "buffer": buffer}


def routed(routing: Any, **fields: Any) -> dict[str, Any]:
    return {"name": "generalized_asyncsgd", "concurrency": 12, "routing": routing, **fields}


FREE = ("afa_cd", "afa_cs", "ringleader")  # all idle clients work, or as many as a concurrency says
ALIKE = ("asgrad", "fedast", "favas", "fedavg", "fedstale", "mifa", "quafl")
INTERRUPTED = ("malenia", "rennala")
CHOSEN = (*FREE, *ALIKE, *INTERRUPTED, "mindflayer", "ringmaster", "generalized_asyncsgd")
DRAWN = [name for name in Strategy.members() if name not in CHOSEN]

# The first of each sends its clients out as the others do, for whom nothing need be counted.
LIKE = {"aced": "ace", "afa_cs": "afa_cd", "ringleader": "afa_cd", "quafl": "favas"}
LIKE |= {"fedstale": "fedavg", "mifa": "fedavg"}
LIKE |= {name: "asgd" for name in DRAWN if name not in ("ace", "aced", "asgd")}


def leaders(*names: str, **fields: Any) -> list[dict[str, Any]]:
    return [{"name": name, **fields} for name in names if name not in LIKE]


# With exponential times.
COUNTABLE = [
    *leaders(*DRAWN, *FREE, concurrency=3),
    *leaders(*FREE, *ALIKE, *INTERRUPTED),
    *(routed(routing) for routing in ("uniform", "balanced", "G", [8, 1, 1, 1, 1, 1, 1, 1])),
    routed("balanced", opening="stationary"),
    *(pure(buffer) for buffer in (1, 8, 9)),
    {"name": "asgrad", "assignment": "random", "buffer": 11},
    {"name": "fedbuff", "concurrency": None, "buffer": 1},
    {"name": "fedbuff_c", "concurrency": 8},
    {"name": "fedfix", "period": 2},
    {"name": "malenia", "batch": 20},
    {"name": "mindflayer", "trials": 11, "allotted": "1/2"},
    {"name": "ace", "start": "when_all_heard", "concurrency": 3},
    *({"name": "mifa", "start": start} for start in ("next_round", "zeros")),
    {"name": "ringmaster", "max_delay": 3},
    *(sampled(name) for name in ("uniform", "md", "fastest")),
    sampled("fastest", unbiased_every=3),
]
# With constant times.
COUNTABLE_IF_CONSTANT = [
    *leaders(*FREE, *ALIKE),
    routed([8, 1, 1, 1, 1, 1, 1, 1]),
    *(pure(buffer) for buffer in (1, 8)),
    {"name": "mindflayer", "trials": 11},
    *({"name": "fedbuff_c", "buffer": buffer} for buffer in (1, 3, 8)),
    {"name": "fedfix", "period": 2},
    {"name": "fedfix", "period": 2, "weights": "exponential"},
    sampled("md"),
    sampled("fastest", unbiased_every=3),
]
WITHOUT = [
    {"name": "ringmaster", "late": "ignore"},
    *({"name": name, "concurrency": 3} for name in ("ringmaster", *INTERRUPTED)),
    *({"name": name, "concurrency": None} for name in ("fedbuff", "ca2fl", "fadas")),
    pure(2),
    pure(7),
    {"name": "fedfix", "growth": "1/100"},
    sampled("fastest", window=8),
    sampled("highest_loss"),
    *({"name": "fedavg", **fields} for fields in ({"take": 5}, {"deadline": 3})),
]


def said_and_heard(strategy: Any, durations: Any, arrivals: int) -> tuple[list[float], list[int | None]]:
    """Shares by the formula, and the clients that are heard one after the other."""
    simulation = Simulation(experiment(strategy, durations, budget={"updates": arrivals}))
    said = surrogate_weights(simulation)
    assert said is not None
    happened = simulate(simulation, ScheduleOnly())
    return said.tolist(), [event.client for event in happened if event.kind is EventKind.ARRIVAL]


# A strategy for each kind of formula.
QUICK = ("asgd", "asgrad", "fedavg", "fedbuff_c", "fedfix", "generalized_asyncsgd", "malenia", "mindflayer")


def first_forms(forms: list[dict[str, Any]], durations: Any) -> list[Any]:
    """Each with the durations; all are slow but the first form of a quick strategy."""
    names = [form["name"] for form in forms]
    quick = {at for at, name in enumerate(names) if name in QUICK and name not in names[:at]}
    return [
        pytest.param(form, durations, marks=() if at in quick else pytest.mark.slow)
        for at, form in enumerate(forms)
    ]


@pytest.mark.parametrize(
    ("strategy", "durations"),
    [
        *first_forms(COUNTABLE, EXPONENTIAL),
        *first_forms(COUNTABLE_IF_CONSTANT, FIXED),
        ({"name": "asgd"}, {"name": "iterations", "mean": 3}),
        ({"name": "async_fedavg", "concurrency": 3}, {**EXPONENTIAL, "per_step": True}),
    ],
    ids=str,
)
def test_shares_are_those_counted(strategy: Any, durations: Any) -> None:
    """Each client's, within six standard errors of the mean of 25 parts, and two arrivals at the ends."""
    said, heard = said_and_heard(strategy, durations, SETTLED + COUNTED)
    assert sum(said) == pytest.approx(1)
    parts = np.split(np.array(heard[SETTLED:]), PARTS)
    shares = np.array([np.bincount(part, minlength=N) for part in parts]) / len(parts[0])
    error = shares.std(0, ddof=1) / PARTS**0.5
    assert (abs(shares.mean(0) - said) <= 6 * error + 2 / COUNTED).all()


@pytest.mark.parametrize(("name", "like"), LIKE.items())
def test_those_alike_hear_the_same_clients_and_have_the_same_shares(name: str, like: str) -> None:
    """A hundred arrivals."""
    three: dict[str, Any] = {"concurrency": 3}
    for durations, fields in ((EXPONENTIAL, three), (EXPONENTIAL, {}), (FIXED, {})):
        if name in ((*DRAWN, *FREE) if fields else (*FREE, *ALIKE)):
            both = ({"name": each, **fields} for each in (name, like))
            found, expected = (said_and_heard(each, durations, 100) for each in both)
            assert found == expected


@pytest.mark.parametrize("durations", [FIXED, EXPONENTIAL], ids=["fixed", "exponential"])
@pytest.mark.parametrize("strategy", WITHOUT, ids=str)
def test_no_formula(strategy: Any, durations: Any) -> None:
    """Updates that are ignored, clients that wait for some of the others, windows, choices by loss."""
    assert experiment(strategy, durations).participation is None


@pytest.mark.parametrize(
    "strategy",
    [
        *({"name": name, "concurrency": 3} for name in DRAWN),
        *({"name": name} for name in (*INTERRUPTED, "ringmaster")),
    ],
    ids=str,
)
def test_no_formula_for_times_that_have_a_memory(strategy: Any) -> None:
    """Drawn or interrupted clients have one for exponential times alone; windows and rounds do for others."""
    assert experiment(strategy).participation is not None
    for durations in (FIXED, "shifted_exponential", {"name": "scipy", "law": "gamma", "shape": [2]}):
        assert experiment(strategy, durations).participation is None


def test_no_formula_for_the_waiting_under_other_laws() -> None:
    """FedFix and FedBuff-c wait for others: their formulas are for constant times, or exponential ones."""
    for name, allowed in (("fedfix", {"fx", "fx exponential"}), ("fedbuff_c", {"fx"})):
        laws: dict[str, Any] = {
            "fx": {"name": "fx"},
            "fx exponential": {"name": "fx", "jobs": "exponential"},
            "shifted": {"name": "shifted_exponential"},
        }
        known = {law for law, of in laws.items() if experiment({"name": name}, of).participation}
        assert known == allowed


@pytest.mark.parametrize(
    "scenario",
    [
        {"timing": {"availability": {"name": "dropouts", "share": 0.5, "at": 3}}},
        {"timing": {"availability": {"name": "spells", "mean_on": 9, "mean_off": 1}}},
        {"arrangement": {"name": "rounds", "workers": 2}},
        {"arrangement": "iteration_delay"},
        {"non_finite": "refuse"},
    ],
    ids=str,
)
def test_no_formula_where_others_decide_who_works(scenario: Any) -> None:
    """Clients that are away, arrangements, updates that may be refused."""
    assert experiment({"name": "asgd"}).participation is not None
    assert experiment({"name": "asgd"}, **scenario).participation is None


def test_no_formula_for_lengths_that_depend_on_the_number_of_steps() -> None:
    """K drawn for each job, or set by the strategy, where a law is per step."""
    for per_step in (False, True):
        durations = {**EXPONENTIAL, "per_step": per_step}
        for strategy in ({"name": "asgd", "local": {"name": "sgd", "dynamic": True}}, {"name": "asyncfeded"}):
            assert (experiment(strategy, durations).participation is None) == per_step


def test_what_has_no_formula_is_not_recorded() -> None:
    """No loss on the surrogate problem, and all others; with a formula, both."""
    for strategy, names in ((pure(1), TRAINING), (pure(2), TRAINING - SURROGATE)):
        record = run(experiment(strategy, budget={"updates": 40}))
        for row in record.curve:
            assert row.keys() & TRAINING == names


def test_a_metric_that_is_not_recorded_cannot_rank() -> None:
    """A sentence when the experiment is described, not a run without its number."""
    problem = {"name": "quadratic", "centres": [[float(client)] for client in range(N)], "metric": "sp/loss"}
    assert experiment(pure(1), problem=problem).lacks("sp/loss") is None
    with pytest.raises(ValueError, match="no 'sp/loss' is recorded, since no formula says how often each"):
        experiment(pure(2), problem=problem)
    assert experiment(pure(2)).lacks("fp/loss") is None


# -- drawn clients -------------------------------------------------------------------------------------


def stationary(times: list[float], jobs: int) -> np.ndarray:
    """Shares of arrivals [n] in the Markov chain of the busy clients, solved as a linear system."""
    n = len(times)
    states = list(combinations(range(n), jobs))
    place = {state: at for at, state in enumerate(states)}
    flow = np.zeros((len(states), len(states)))
    for state in states:
        for client in state:
            rest = set(state) - {client}
            for other in set(range(n)) - rest:
                after = tuple(sorted(rest | {other}))
                flow[place[state], place[after]] += 1 / (times[client] * (n - jobs + 1))
    flow -= np.diag(flow.sum(1))
    system = np.vstack([flow.T, np.ones(len(states))])
    law = np.linalg.lstsq(system, np.append(np.zeros(len(states)), 1.0), rcond=None)[0]
    rates = np.zeros(n)
    for state, chance in zip(states, law, strict=True):
        for client in state:
            rates[client] += chance / times[client]
    return rates / rates.sum()


@pytest.mark.parametrize("jobs", [1, 2, 3, 5, 6])
def test_drawn_clients_are_those_of_the_chain(jobs: int) -> None:
    """Six clients, two of them alike."""
    times = [Fraction(1), Fraction(3, 2), Fraction(1, 7), Fraction(9), Fraction(1), Fraction(4)]
    found = drawn(times, jobs)
    np.testing.assert_allclose(found, stationary([float(time) for time in times], jobs), rtol=1e-9)


def test_drawn_clients_with_one_job_or_all() -> None:
    """One job: all alike. As many as clients: ∝ 1/τ_i."""
    times = [Fraction(time) for time in TIMES]
    assert drawn(times, 1) == [1 / N] * N
    speeds = np.array([float(1 / time) for time in times])
    np.testing.assert_allclose(drawn(times, N), speeds / speeds.sum(), rtol=1e-15)
    assert sum(drawn([Fraction(k, 10**6) for k in range(1, 801)], 400)) == pytest.approx(1)
