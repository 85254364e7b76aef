"""Every shipped suite expands, at every scale, to valid runs that nothing confuses."""

import functools

import pytest

from benchmarks.commands.show import strategies_table
from benchmarks.suite.shipped import recorded_name, shipped
from benchmarks.suite.suite import PlannedRun, Suite, load
from benchmarks.yaml_io import read
from fl_core.metrics import TRAINING
from tuning.plan import plan


@functools.cache
def scales(name: str) -> list[str | None]:
    """The scales of a suite; None if it has none."""
    return list(read(shipped()[name]).get("scales") or [None])


def small_suites() -> list[str]:
    """Suites with a small scale."""
    return [name for name in shipped() if "small" in scales(name)]


@functools.cache
def suite(name: str) -> Suite:
    """A suite at its default scale."""
    return load(name)


@functools.cache
def runs(name: str, scale: str | None) -> list[PlannedRun]:
    return (suite(name) if scale == default(name) else load(name, (), scale)).runs()


@pytest.mark.parametrize("name", shipped())
def test_runs_and_their_labels_are_unique_and_a_whole_product(name: str) -> None:
    for scale in scales(name):
        found = runs(name, scale)
        assert {run.suite for run in found} == {recorded_name(name, scale)}
        assert {run.scale for run in found} == {scale}
        assert len({run.key for run in found}) == len(found) > 0
        assert len({(run.scenario, run.strategy, run.experiment.seed) for run in found}) == len(found)
        scenarios, strategies, seeds = (
            {run.scenario for run in found},
            {run.strategy for run in found},
            {run.experiment.seed for run in found},
        )
        assert len(found) == len(scenarios) * len(strategies) * len(seeds)


@pytest.mark.parametrize("name", shipped())
def test_every_strategy_can_be_tuned_in_every_scenario(name: str) -> None:
    campaign = plan(suite(name))
    searched = {(one.scenario, one.strategy) for one in campaign.studies}
    reused = {(run.scenario, run.strategy) for run, _ in campaign.reused}
    assert searched | reused == {(run.scenario, run.strategy) for run in runs(name, default(name))}


def default(name: str) -> str | None:
    return "features10-alike" if name == "populations" else "small" if "small" in scales(name) else None


def test_the_default_scale_is_the_small_one() -> None:
    assert {name: suite(name).scale for name in shipped()} == {name: default(name) for name in shipped()}


def test_suites_evaluate_what_they_show() -> None:
    sampled = {
        "fraboni": "sample of 6000",
        "fraboni_shakespeare": "sample of 1000",
        "fraboni_weights_cnn": "sample of 1000",
    }
    for name in shipped():
        wanted = "clients" if TRAINING & {*suite(name).spec.show} or name == "ci" else "test"
        assert {str(run.evaluate) for run in runs(name, default(name))} == {sampled.get(name, wanted)}, name


def test_a_small_scale_has_the_strategies_of_the_others_and_no_more_updates() -> None:
    for name in small_suites():
        small = runs(name, "small")
        for large in (runs(name, scale) for scale in scales(name)):
            assert [type(one) for one in _strategies(small)] == [type(one) for one in _strategies(large)]
            assert len(small) <= len(large)
            assert _size(small[0]) <= _size(large[0])


def _strategies(found: list[PlannedRun]) -> list[object]:
    first = found[0]
    return [
        run.experiment.strategy
        for run in found
        if (run.scenario, run.experiment.seed) == (first.scenario, first.experiment.seed)
    ]


def _size(run: PlannedRun) -> float:
    budget = run.experiment.scenario.budget
    return float(budget.updates or budget.time or 0)


def test_local_batches_and_batches_of_gradients_are_told_apart() -> None:
    """Rennala's S gradients a step are no mini-batch."""
    shared, strategies = strategies_table(runs("standard", "small"))
    (rennala,) = (of for label, of in strategies if label == "Rennala SGD")
    assert "local batch 32" in shared and ", batch 5" in rennala
