"""A design of Sobol's points: the same everywhere, even in every parameter, the best under more seeds."""

from __future__ import annotations

from collections import Counter
from math import log, log10
from statistics import fmean
from typing import Any

import pytest
from small import QUADRATIC, SUITE, Make, tune

from benchmarks.errors import UserError
from benchmarks.mlflow_store.store import Store
from fl_core.parts import Tune
from fl_core.server.optimizers import Adam
from fl_core.strategies.fedasync import FedAsync
from fl_core.strategies.fedbuff import FedBuff
from fl_core.strategies.hyperparameters import Space, declared
from fl_core.testing.check_experiments import scenario
from tuning.optuna_space import space_of

DESIGN = {"trials": 8, "seeds": 1, "batch": 4, "sampler": "sobol", "again": {"share": 0.25, "seeds": 2}}
NOISY = {**QUADRATIC, "noise": 1.0}


def test_every_eighth_of_every_range_has_an_eighth_of_the_points() -> None:
    ranges = {"local_lr": Tune(0.001, 10), "buffer": Tune(1, 8, log=False), "local.steps": (1, 4, 16, 64)}
    space = Space(FedBuff(), ranges)
    points = space.sobol(32, 7)
    eighths = [int(8 * (log10(point["local_lr"]) + 3) / 4) for point in points]
    assert Counter(eighths) == dict.fromkeys(range(8), 4)
    assert Counter(point["buffer"] for point in points) == dict.fromkeys(range(1, 9), 4)
    assert Counter(point["local.steps"] for point in points) == dict.fromkeys((1, 4, 16, 64), 8)
    assert points == space.sobol(32, 7) != space.sobol(32, 8)
    assert points[:16] == space.sobol(16, 7)


def test_the_rate_is_in_the_range_that_a_suite_gives_the_optimizer() -> None:
    written = {
        "server.name": ("sgd", "adam"),
        "server_lr.sgd": (1.0,),
        "server_lr.adam": Tune(1e-3, 0.1),
    }
    points = space_of(FedBuff(), ["fedbuff"], written, declared_too=True).sobol(64, 7)
    rates = {name: [p["server_lr"] for p in points if p["server.name"] == name] for name in ("sgd", "adam")}
    assert {*rates["sgd"]} == {1.0}
    assert 1e-3 <= min(rates["adam"]) < 2e-3 and 0.05 < max(rates["adam"]) <= 0.1
    refusing = space_of(FedAsync(), ["fedasync"], written, declared_too=True)
    assert refusing.described()["server_lr"]["high"] == 1.0  # its own range
    with pytest.raises(ValueError, match="momentum"):
        space_of(FedBuff(), ["fedbuff"], {**written, "server.name": ("sgd", "adam", "momentum")})


def test_the_rate_is_in_the_range_of_the_points_optimizer() -> None:
    written = {"server.name": ("sgd", "momentum", "adam", "yogi"), "local.steps": (1, 4)}
    space = space_of(FedBuff(), ["fedbuff"], written, declared_too=True)
    ranges = {"sgd": Tune(0.1, 10), "momentum": Tune(0.01, 1), "adam": Tune(1e-3, 1), "yogi": Tune(1e-3, 1)}
    points = space.sobol(64, 7)
    assert Counter(point["server.name"] for point in points) == dict.fromkeys(ranges, 16)
    for name, rates in ranges.items():
        place = [
            log(p["server_lr"] / rates.low, rates.high / rates.low)
            for p in points
            if p["server.name"] == name
        ]
        assert 0 <= min(place) < 0.2 and 0.8 < max(place) <= 1
    assert space.described()["server_lr"] == {"low": 1e-3, "high": 10, "log": True}
    where = scenario()
    assert [space.apply(point, where).server.reference() for point in points] == [
        p["server.name"] for p in points
    ]
    assert declared(FedBuff(server=Adam())).described()["server_lr"] == {"low": 1e-3, "high": 1, "log": True}
    refusing = space_of(FedAsync(), ["fedasync"], written, declared_too=True)
    assert "server.name" not in refusing.candidates and "local.steps" in refusing.candidates


def test_a_strategy_has_the_same_points_in_every_scenario(make: Make) -> None:
    times = [{"durations": {"name": "fixed", "times": [1, slow]}} for slow in (1, 5)]
    one, other = make(tuning=DESIGN, grid={"timing": times}).studies
    assert one.first == other.first and one.scenario != other.scenario
    assert one.seeds_again == other.seeds_again and not {*one.seeds_again} & {*one.seeds, *range(2)}


def test_the_best_quarter_and_no_other_gets_more_seeds(make: Make, store: Store) -> None:
    driver = tune(make(tuning={**SUITE["tuning"], **DESIGN}, problem=NOISY), store)
    (study,) = driver.studies
    plan = study.plan
    assert len(study.trials) == 8 and study.whole
    first = {trial.number: trial.under(plan.seeds).value for trial in study.trials}
    best = sorted(first, key=lambda number: first[number])[:2]
    for trial in study.trials:
        seeds = plan.seeds + plan.seeds_again if trial.number in best else plan.seeds
        assert tuple(trial.by_seed) == seeds and trial.value == fmean(trial.by_seed.values())
        assert len(set(trial.by_seed.values())) == len(seeds)
    assert study.best is not None and study.best.number in best
    assert study.best.value == min(trial.value for trial in study.trials if trial.number in best)


def test_what_a_leaderboard_needs_is_kept_of_every_seed(make: Make, store: Store) -> None:
    design = {**SUITE["tuning"], **DESIGN, "objective": "time_to_target"}
    budget = {"time": 20, "target": 0.3}
    driver = tune(make(tuning=design, budget=budget, problem={**QUADRATIC, "target": 0.6}), store)
    runs = [run for trial in driver.studies[0].trials for run in trial.runs.values()]
    assert len(runs) == 8 + 2 * 2
    for run in runs:
        easy, hard = (run.metrics.get(f"objective/time_{target}") for target in ("easy", "hard"))
        updates, end = run.metrics["objective/updates"], run.metrics["objective/end"]
        assert run.status == "done" and updates > 0
        assert run.metrics["objective/uploads"] == 8 * updates  # a model of one double
        assert (hard is None) == (end > 0.3) and (easy is None) == (end > 0.6)
        assert hard is None or easy <= hard
        assert run.metrics["objective/reached"] == (hard is not None)


@pytest.mark.parametrize("changed", [{"sampler": "tpe"}, {"pruner": "median"}])
def test_more_seeds_come_after_all_trials_only(make: Make, changed: dict[str, Any]) -> None:
    with pytest.raises(UserError, match=r"tuning\.again: "):
        make(tuning={**SUITE["tuning"], **DESIGN, **changed})
