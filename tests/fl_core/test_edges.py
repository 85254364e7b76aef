"""Strategies at the edges of what they take: concurrency, arrangements, importance 0, clients that left."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError
from worlds import play, recorded, scenario

from fl_core.diagnostics.staleness import predicted
from fl_core.experiment import Experiment
from fl_core.loop.simulation import Simulation, simulate
from fl_core.recorded_names import Status
from fl_core.recording.recorder import Recorder, run
from fl_core.scenario import Scenario
from fl_core.strategies.strategy import Strategy
from fl_core.testing.strategy_checks import resumed

PULLS = ("afa_cd", "afa_cs", "malenia", "rennala", "ringleader")
WITHOUT_CONCURRENCY = ("asgrad", "favas", "fedavg", "fedstale", "mifa", "mindflayer", "quafl")
TIMES = (1, 2, 3, 4)


def strategy(name: str, **fields: Any) -> Strategy:
    return Strategy.model_validate({"name": name, **fields})


def changed(where: Scenario, **fields: Any) -> Scenario:
    """The scenario with other fields, in `problem` or `timing` by dotted keys."""
    plain = where.model_dump()
    for key, value in fields.items():
        outer, _, inner = key.partition("__")
        if inner:
            plain[outer][inner] = value
        else:
            plain[outer] = value
    return Scenario.model_validate(plain)


@pytest.mark.parametrize("name", PULLS)
def test_of_those_that_pull_as_many_work_as_the_concurrency_says(name: str) -> None:
    """All at once without one."""
    for concurrency in (2, None):
        simulation = Simulation(
            Experiment(scenario=scenario(TIMES), strategy=strategy(name, concurrency=concurrency))
        )
        most = max(simulation.server.in_flight for _ in simulate(simulation))
        assert most <= 2 if concurrency else most >= 3  # an arrival is no longer in flight


@pytest.mark.parametrize("name", WITHOUT_CONCURRENCY)
def test_a_strategy_that_says_itself_who_works_takes_no_concurrency(name: str) -> None:
    with pytest.raises(ValidationError, match="concurrency"):
        strategy(name, concurrency=2)


@pytest.mark.parametrize(
    ("name", "fields"),
    [
        ("asyncfeded", {}),
        ("favas", {}),
        ("generalized_asyncsgd", {}),
        ("mindflayer", {}),
        ("quafl", {}),
        ("fedavg", {"take": 1}),
        ("fedavg", {"deadline": 3}),
    ],
)
def test_no_arrangement_where_sends_are_the_strategys_core(name: str, fields: dict[str, Any]) -> None:
    where = scenario(TIMES, arrangement={"name": "rounds", "workers": 2})
    with pytest.raises(ValidationError, match="arrangement"):
        Experiment(scenario=where, strategy=strategy(name, **fields))


def test_no_arrangement_beside_dylu() -> None:
    per_step = {"name": "fixed", "times": list(TIMES), "per_step": True}
    where = changed(scenario(TIMES, arrangement={"name": "rounds", "workers": 2}), timing__durations=per_step)
    Experiment(scenario=where, strategy=strategy("delayed_nesterov"))
    with pytest.raises(ValidationError, match="dylu"):
        Experiment(scenario=where, strategy=strategy("delayed_nesterov", dylu=True))


@pytest.mark.parametrize(
    "fields", [{"name": "fedavg", "take": 1}, {"name": "fedavg"}, {"name": "fedstale", "take": 1}], ids=str
)
def test_answers_of_importance_0_weigh_nothing(fields: dict[str, Any]) -> None:
    """A round in which all that answered have importance 0 is no division by 0: the run comes to its end."""
    away = {"name": "bernoulli", "probability": 0.4, "period": 5}
    where = changed(scenario(TIMES, updates=60), problem__importance=[0, 1, 0, 1], timing__availability=away)
    assert recorded(strategy(**fields), where).finish().status is Status.DONE


def test_malenia_stalls_once_its_harmonic_mean_is_bounded() -> None:
    """n = 2, S = 5: with one gradient of the client that is gone it stays below 2, and must exceed 5/2."""
    away = {"name": "dropouts", "share": 0.5, "at": "1/2"}
    where = changed(scenario((1, 1), updates=300), timing__availability=away)
    simulation, _ = play(strategy("malenia", batch=5), where, seed=1)
    assert (simulation.status, simulation.server.version) == (Status.STALLED, 0)
    assert simulation.server.updates < 10
    simulation, _ = play(strategy("malenia", batch=3), where, seed=1)  # nearly 2 exceeds 3/2
    assert (simulation.status, simulation.server.version) == (Status.STALLED, 1)


def test_fedbuff_c_with_a_concurrency_waits_until_its_buffer_is_full() -> None:
    """Four updates a step, also where one job is at work at a time."""
    simulation, _ = play(strategy("fedbuff_c", buffer=4, concurrency=1), scenario(TIMES, updates=100))
    assert (simulation.server.updates, simulation.server.version) == (100, 25)


def test_no_more_workers_are_active_than_there_are() -> None:
    """Delay-adaptive ASGD with 20 jobs on 4 clients steps as with 4."""
    many, all_of_them = (
        play(strategy("delay_adaptive", concurrency=jobs), scenario((1, 1, 1, 20), updates=60))[0]
        for jobs in (20, 4)
    )
    assert many.server.model.tolist() == all_of_them.server.model.tolist()


@pytest.mark.parametrize(
    ("fields", "per_step"),
    [
        ({"name": "ringmaster", "max_delay": 4}, False),
        ({"name": "rennala", "batch": 1}, False),
        ({"name": "delayed_nesterov", "dylu": True, "local": {"name": "sgd", "steps": 8}}, True),
    ],
    ids=str,
)
def test_no_staleness_is_predicted_where_jobs_are_dismissed_or_shorter(
    fields: dict[str, Any], per_step: bool
) -> None:
    durations = {"name": "fixed", "times": [1, 1, 1, 10], "per_step": per_step}
    where = changed(scenario((1, 1, 1, 10), updates=200), timing__durations=durations)
    simulation, _ = play(strategy(**fields), where)
    assert predicted(simulation) is None
    simulation, _ = play(strategy("asgd"), where)
    assert predicted(simulation) is not None


def test_rounds_without_a_step_draw_anew() -> None:
    """Three rounds of four make a step of twelve; versions and steps are drawn for each of them."""
    rounds = {"name": "rounds", "workers": 4, "history": 5, "most_steps": 10}
    where = scenario(TIMES, arrangement=rounds, updates=240)
    simulation = Simulation(Experiment(scenario=where, strategy=strategy("afa_cd", buffer=12)))
    steps = [simulation.arrived.steps for event in simulate(simulation) if event.client is not None]
    of_rounds = [tuple(sorted(steps[at : at + 4])) for at in range(0, len(steps), 4)]
    assert len(set(of_rounds)) > len(of_rounds) / 2  # a third, were they the same within a step


@pytest.mark.parametrize("arrivals", [[0.5, 0.5], [0.1] * 6])
def test_arrivals_are_counted_before_anything_runs(arrivals: list[float]) -> None:
    with pytest.raises(ValidationError, match="arrivals"):
        scenario(TIMES, arrangement={"name": "rounds", "workers": 2, "arrivals": arrivals})


@pytest.mark.parametrize("routing", [[0, 0, 0, 0], [-1, 2, 1, 1], [1, 0, 1, 1]], ids=str)
def test_every_client_has_to_be_routed_to(routing: list[float]) -> None:
    with pytest.raises(ValidationError):
        strategy("generalized_asyncsgd", routing=routing)


def test_a_deadline_is_held_against_the_fastest_of_many_seeds() -> None:
    """Speeds are drawn: what is too early for one seed is not for another."""
    law = {"name": "fx", "reading": "uniform", "spread": 90}
    where = changed(scenario((1, 1)), timing__durations=law)
    fastest = [float(min(where.timing.durations.means(2, seed))) for seed in range(20)]
    deadline = (min(fastest) + fastest[0]) / 2
    assert min(fastest) < deadline < fastest[0]
    Experiment(scenario=where, strategy=strategy("fedavg", deadline=deadline))
    with pytest.raises(ValidationError, match="deadline"):
        Experiment(scenario=where, strategy=strategy("fedavg", deadline=min(fastest) / 2))


def test_a_run_with_a_budget_of_bytes_resumes_at_its_marks() -> None:
    """The curve is that of the run that was not interrupted."""
    experiment = Experiment(scenario=scenario(updates=60, bytes=480), strategy=strategy("asgd"))
    recorders = [Recorder(Simulation(experiment)) for _ in range(2)]
    assert resumed(recorders, [20]).curve == run(experiment).curve
