"""What a campaign consists of: equal shares, seeds of its own, known values first; a mistake is a line."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from small import QUADRATIC, Make, Write

from benchmarks.errors import UserError
from benchmarks.suite.fields import SuiteFile
from benchmarks.suite.suite import load
from tuning.plan import plan, tuning_seeds

GRID = [1.0e-4, 2.0e-4, 5.0e-4, 1.0e-3, 2.0e-3, 5.0e-3, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5]  # Fraboni et al.


@given(st.lists(st.integers(0, 10_000), min_size=1, unique=True), st.integers(1, 50))
def test_tuning_seeds_are_never_those_of_the_suite(own: list[int], count: int) -> None:
    document = {"name": "s", "seeds": own, "problem": "quadratic", "budget": {"updates": 1}}
    spec = SuiteFile.model_validate({**document, "strategies": ["asgd"], "tuning": {"seeds": count}})
    seeds = tuning_seeds(spec)
    assert len(set(seeds)) == count and not set(seeds) & set(own)


def test_quickstart_gives_every_strategy_the_same() -> None:
    campaign = plan(load("quickstart"))
    assert len(campaign.studies) == 2 * 7 and campaign.simulations == 14 * 9 * 3
    shares = {(one.trials, one.seeds, one.tried_on.budget, one.objective) for one in campaign.studies}
    assert len(shares) == 1
    assert {one.judged_on for one in campaign.studies} == {"validation data"}
    assert len({one.name for one in campaign.studies}) == 14


def test_the_suites_values_and_then_the_papers_come_first(make: Make) -> None:
    (study,) = make(tuning={}).studies
    assert study.first == (
        ("paper", {"local_lr": 0.01, "server_lr": 1.0}),
        ("paper", {"local_lr": 0.1, "server_lr": 1.0}),
    )


def test_a_paper_s_grid_exactly_tuned_on_one_and_reused_for_the_other() -> None:
    campaign = plan(load("mnist_weights"))
    assert {one.strategy for one in campaign.studies} == {"Async FedAvg (weights identical)"}
    assert [run.strategy for run, _ in campaign.reused] == ["Async FedAvg (weights time_based)"] * 2
    for study in campaign.studies:
        assert [values["local_lr"] for _, values in study.first] == GRID
        assert study.trials == len(GRID) and {origin for origin, _ in study.first} == {"grid"}


def test_a_problem_without_data_is_judged_as_it_is(make: Make) -> None:
    (study,) = make().studies
    assert study.judged_on == "the problem itself, which has no test data"
    assert study.objective.direction == "minimize"


@pytest.mark.parametrize(
    ("tuning", "key"),
    [
        ({"seeds": [0, 9]}, "seeds"),
        ({"seeds": [9, 9]}, "seeds"),
        ({"space": {"asdg.local_lr": [1]}}, "space: asdg.local_lr"),
        ({"space": {"local.steps": [0, 1]}}, "space"),
        ({"metric": "fp/los"}, "metric"),
        ({"metric": "test/loss"}, "metric"),  # quadratics have none
        ({"objective": "time_to_target"}, "objective"),
        ({"objective": "auc", "budget": {"updates": 9, "target": 0.5}}, "objective"),
        ({"pruner": "wilcoxon"}, "pruner"),
        ({"reuse": {"FedAvg": "ACE"}}, "reuse"),
        ({"trials": 0}, "trials"),
        ({"space": {"local_lr": {"low": 1, "high": 0.1}}}, "space.local_lr.high"),
        ({"space": {"local_lr": []}}, "space.local_lr"),
        ({"sampler": "annealing"}, "sampler"),
        ({"trails": 3}, "trails"),
    ],
)
def test_one_mistake_is_one_line_that_names_the_key(write: Write, tuning: dict[str, Any], key: str) -> None:
    with pytest.raises(UserError) as caught:
        plan(load(str(write(tuning=tuning))))
    (line,) = caught.value.lines
    assert f"tuning.{key}: " in line


def test_a_metric_that_is_not_recorded_judges_no_trial(make: Make) -> None:
    """FedAvg has a loss on the surrogate problem, Rennala none under constant times."""
    assert make(tuning={"metric": "sp/loss"}, strategies=["fedavg"]).studies
    with pytest.raises(UserError, match=r"tuning\.metric: Rennala SGD: "):
        make(tuning={"metric": "sp/loss"}, strategies=["rennala"])


def test_a_target_needs_the_budget_of_its_clock(make: Make) -> None:
    with pytest.raises(UserError, match=r"time_to_target needs budget\.time"):
        make(problem={**QUADRATIC, "target": 0.1}, tuning={"objective": "time_to_target"})
