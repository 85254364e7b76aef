"""`execution: auto` never keeps what was measured to be slower; fake timings, no real clock."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from worlds import scenario

from fl_core.execution.auto import (
    ENOUGH_SECONDS,
    MAX_LOST_COMPARISONS,
    MAX_TIMED_CALLS,
    MIN_GAIN,
    MIN_TIMED_CALLS,
    WIDTHS,
    Auto,
    Choice,
)
from fl_core.execution.execution import ComputeRequest
from fl_core.experiment import Experiment
from fl_core.loop.simulation import Simulation, simulate


def measured(seconds: Callable[[int], float]) -> tuple[Choice, list[int]]:
    """A choice after its duels, where a job takes `seconds(width)`, and the widths that it tried."""
    choice, tried = Choice(), []
    while choice.measuring:
        tried.append(choice.width)
        choice.saw(choice.width, choice.width, choice.width * seconds(choice.width))
    return choice, list(dict.fromkeys(tried))


@given(st.lists(st.floats(1e-6, 10), min_size=len(WIDTHS), max_size=len(WIDTHS)))
def test_nothing_that_was_tried_is_much_faster(costs: list[float]) -> None:
    """Whatever the timings: one by one is tried, and no width that was beats the chosen one by over 3 %."""
    by_width = dict(zip(WIDTHS, costs, strict=True))
    choice, tried = measured(by_width.__getitem__)
    assert tried[0] == 1
    assert by_width[choice.width] * (1 - MIN_GAIN) <= min(by_width[width] for width in tried) * (1 + 1e-9)
    assert by_width[choice.width] <= by_width[1]


@pytest.mark.parametrize("best", WIDTHS)
def test_the_bottom_of_a_valley_is_found(best: int) -> None:
    """Costs that fall to one width and rise behind it, as where a stack outgrows the cache."""
    choice, tried = measured(lambda width: 1 + abs(WIDTHS.index(width) - WIDTHS.index(best)))
    assert not choice.measuring
    assert choice.width == best
    assert tried == list(WIDTHS[: WIDTHS.index(best) + 1 + MAX_LOST_COMPARISONS])


def test_a_tie_is_won_by_the_narrower() -> None:
    """Nothing is stacked where stacking gains next to nothing."""
    choice, _ = measured(lambda width: 1.0 - MIN_GAIN / 2 * (width > 1))
    assert choice.width == 1


def test_a_machine_that_slows_down_meanwhile_decides_nothing() -> None:
    """Calls alternate: wide stacks are tried later, when all takes ten times as long, and still win."""
    choice, calls = Choice(), 0
    while choice.measuring:
        width = choice.width
        choice.saw(width, width, (1 + calls / 10) * width * (1.0 if width == 1 else 0.8))
        calls += 1
    assert choice.width == 2


def test_the_first_call_of_a_width_and_delays_do_not_count() -> None:
    """The first pays for what is built once; and one call of four is held up by something else."""
    choice, calls = Choice([1, 8]), {1: 0, 8: 0}
    while choice.measuring:
        width = choice.width
        true = width * {1: 1e-4, 8: 0.5e-4}[width]
        first, held_up = calls[width] == 0, calls[width] % 4 == 1
        choice.saw(width, width, true * 50 if first else true * (30 if held_up else 1))
        calls[width] += 1
    assert calls == {1: 1 + MAX_TIMED_CALLS, 8: 1 + MAX_TIMED_CALLS}
    assert choice.width == 8


def test_long_calls_are_not_repeated_for_long() -> None:
    """A large network is tried a few times only, since trials of a slower width cost something."""
    choice, jobs = Choice(), 0
    while choice.measuring:
        jobs += choice.width
        choice.saw(
            choice.width, choice.width, choice.width * ENOUGH_SECONDS * (1 if choice.width == 1 else 1.3)
        )
    assert choice.width == 1
    assert jobs == (1 + MIN_TIMED_CALLS) * (1 + 2 + 1 + 4)


def test_two_runs_that_share_a_choice_do_not_disturb_its_duels() -> None:
    """A call may return when the duel that it was meant for is over."""
    choice = Choice([1, 2, 4])
    while choice.measuring:
        mine, theirs = choice.width, choice.width
        for width in (mine, theirs):
            choice.saw(width, width, width * (1.0 if width == 1 else 0.5))
    assert choice.width == 2


def test_what_is_computed_for_nothing_counts_as_lost() -> None:
    """A stack twice as fast, of which three quarters are dismissed, loses against one by one."""
    choice, _ = measured(lambda width: 1.0 if width == 1 else 0.5 + width / 100)
    assert choice.width == 2
    for _ in range(200):
        width = choice.width
        choice.saw(width, jobs=4, seconds=2.0, wasted=3 if width > 1 else 0)
    assert choice.width == 1


def test_a_run_measures_on_its_own_jobs_and_remembers(monkeypatch: pytest.MonkeyPatch) -> None:
    """A clock on which stacks take no longer than one job: the second run begins with the widest stack."""
    monkeypatch.setattr(Auto, "known", {})
    described = Experiment.model_validate(
        {"scenario": scenario(times=[1] * 20, updates=1000), "strategy": {"name": "asgd", "local_lr": 0.01}}
    )
    ticks = iter(range(10**6))
    first, second = Auto(lambda: next(ticks)), Auto(lambda: next(ticks))
    assert first.label == "auto"
    plain = list(simulate(Simulation(described)))
    assert list(simulate(Simulation(described), first)) == plain
    assert first.label == "auto: up to 32 together"
    request = next(Simulation(described).events())
    assert isinstance(request, ComputeRequest)
    assert second.execute([request]) == [20]
    assert len(Auto.known) == 1


@pytest.mark.parametrize(("model", "widest"), [("logistic", 64), ("cnn", 16)])
def test_what_a_gradient_keeps_of_the_way_forward_bounds_the_width(
    model: str, widest: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """64 jobs of a CNN at once would take gigabytes; of logistic regression they take two megabytes."""
    monkeypatch.setattr(Auto, "known", {})
    described = Experiment.model_validate(
        {
            "scenario": {
                "problem": {"name": "digits", "clients": 100, "model": model},
                "budget": {"updates": 100},
            },
            "strategy": {"name": "asgd", "local": {"name": "sgd", "batch": 512}},
        }
    )
    request = next(Simulation(described).events())
    assert isinstance(request, ComputeRequest)
    Auto(iter(range(10**6)).__next__).execute([request])
    (choice,) = Auto.known.values()
    while choice.measuring:
        choice.saw(choice.width, choice.width, 1.0)
    assert choice.width == widest


def test_memory_knows_steps_but_no_rates(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is keyed by what a call costs."""
    monkeypatch.setattr(Auto, "known", {})
    for lr, steps in ((0.1, 1), (0.2, 1), (0.1, 2)):
        strategy = {"name": "asgd", "local_lr": lr, "local": {"name": "sgd", "steps": steps}}
        described = Experiment.model_validate({"scenario": scenario(), "strategy": strategy})
        list(simulate(Simulation(described), Auto()))
    assert len(Auto.known) == 2
