"""What is said first: differences that hold among all that were tested, against scipy and by hand."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from scipy import stats
from synthetic import Fake, curve, diverged, records

from fl_core.recorded_names import Tag
from reports.comparisons import Question
from reports.records.records import RecordedSuite
from reports.sections.overview import headline, how_tested, what_is_open
from reports.sections.section import Results

NAMES = ("ACE", "FedAvg", "FedBuff")


def finals(values: np.ndarray, scenario: str = "digits · F80") -> list[Fake]:
    """Runs without a target whose final accuracies are [strategies, seeds]."""
    return [
        Fake(scenario, NAMES[who], seed, target=None, curve=curve([0.1, float(values[who, seed])], [0, 10]))
        for who, seed in np.ndindex(*values.shape)
    ]


def times(strategy: str, met: list[int | None], end: int = 100) -> list[Fake]:
    """Runs that meet 85 % at an update, or never; an update takes 1.5 units of virtual time."""
    return [
        Fake(strategy=strategy, seed=seed, curve=curve([0.1, 0.9 if at else 0.5, 0.9 if at else 0.5], marks))
        for seed, at in enumerate(met)
        for marks in [[0, at or 50, end]]
    ]


def results(*fakes: Fake) -> Results:
    return Results.of(records(*fakes))


def test_p_values_are_those_of_paired_t_tests_adjusted_for_all_pairs_of_all_scenarios() -> None:
    rng = np.random.default_rng(0)
    values = np.array([0.9, 0.8, 0.7])[None, :, None] + rng.normal(0, 0.02, (2, 3, 5))
    found = results(*finals(values[0], "a"), *finals(values[1], "b")).contrasts
    tests = {
        (scenario, NAMES[one], NAMES[other]): stats.ttest_rel(values[at, one], values[at, other]).pvalue
        for at, scenario in enumerate("ab")
        for one, other in combinations(range(3), 2)
    }
    ordered = sorted(tests, key=lambda name: tests[name])
    holm = np.minimum(1, np.maximum.accumulate([tests[name] * (6 - at) for at, name in enumerate(ordered)]))
    assert {(c.scenario.label, c.first.strategy, c.second.strategy): c.p for c in found} == pytest.approx(
        dict(zip(ordered, holm, strict=True))
    )
    assert [c.size for c in found] == sorted((c.size for c in found), reverse=True)
    assert all(c.holds == (c.p <= 0.05) for c in found)


def test_a_difference_that_holds_is_said_first() -> None:
    rng = np.random.default_rng(1)
    close = 0.9 + rng.normal(0, 0.01, (3, 5))
    apart = np.array([0.9, 0.5, 0.9])[:, None] + rng.normal(0, 0.01, (3, 5))
    found = results(*finals(close, "a"), *finals(apart, "b"))
    first, second = headline(found)
    assert first.endswith("FedAvg at 49.9 %, in b.") and second.startswith("Best mean rank")
    assert how_tested(found).startswith("Final value: 5 seeds, p < 0.001. ")
    assert " 2 of 6 " in how_tested(found) and what_is_open(found) == ""


def test_where_none_holds_the_page_says_so_and_how_many_seeds_would_do() -> None:
    rng = np.random.default_rng(2)
    found = results(*finals(0.9 + rng.normal(0, 0.02, (3, 3))))
    assert headline(found)[0] == "No difference between two strategies is shown."
    assert how_tested(found).startswith("0 of 3 ")
    assert re.search(r" in final value: about \d+ seeds\.$", what_is_open(found))
    same = results(*finals(np.full((2, 3), 0.9)))
    assert headline(same)[0] == "No difference between two strategies is shown."
    assert what_is_open(same) == ""


def test_never_in_any_seed_is_later_than_a_time_in_each() -> None:
    """Up to the end of the runs that never met the target: 150 − 1.5 × (10, 12, 11, 10)."""
    found = results(*times("FedBuff", [10, 12, 11, 10]), *times("FedAvg", [None] * 4))
    contrast = next(c for c in found.contrasts if c.question is Question.TARGET)
    assert (contrast.first.strategy, contrast.second.strategy) == ("FedBuff", "FedAvg")
    assert contrast.effect.mean == pytest.approx(150 - 1.5 * 10.75)
    said = (
        "FedBuff meets 85\N{NO-BREAK SPACE}% test accuracy after 15.8 units of time, FedAvg never within 150."
    )
    assert headline(found)[0] == said
    assert how_tested(found).startswith("Time to target: 4 seeds, p")


@pytest.mark.parametrize(("unit", "shown"), [("seconds", "15 seconds"), ("", "15 units of time")])
def test_times_are_in_the_unit_of_the_trace(unit: str, shown: str) -> None:
    suite = records(*times("FedBuff", [10] * 8), *times("FedAvg", [None] * 8))
    runs = tuple(replace(run, tags=run.tags | {Tag.TIME_UNIT: unit}) for run in suite.runs)
    assert f"after {shown}, FedAvg" in headline(Results.of(replace(suite, runs=runs)))[0]


def test_runs_are_compared_up_to_the_first_end_of_one_that_never_met_the_target() -> None:
    """A run that ended early without the target is not shown to be later than one that met it afterwards."""
    found = results(*times("FedBuff", [80, 82, 85]), *times("FedAvg", [None] * 3, end=60))
    contrast = next(c for c in found.contrasts if c.question is Question.TARGET)
    assert (contrast.effect.mean, contrast.p) == (0, 1)
    (nobody,) = results(*times("FedBuff", [None] * 3), *times("FedAvg", [None] * 3)).contrasts
    assert nobody.question is Question.FINAL


@pytest.mark.parametrize(("status", "reason"), [("stalled", ""), ("done", "no client is left")])
def test_a_run_at_a_standstill_never_meets_the_target(status: str, reason: str) -> None:
    """FedBuff meets it at 15 of 150; FedAvg stops at 0: up to the end of FedBuff it is 135 later."""
    still = [replace(fake, status=status, reason=reason) for fake in times("FedAvg", [None] * 8)]
    still = [replace(fake, curve=curve([0.1], [0])) for fake in still]
    found = results(*times("FedBuff", [10] * 8), *still)
    contrast = next(c for c in found.contrasts if c.question is Question.TARGET)
    assert contrast.effect.mean == 135
    assert "FedAvg never." in headline(found)[0]


def test_a_strategy_that_diverged_has_no_final_value_and_never_meets_the_target() -> None:
    lost = [diverged(fake, 2) for fake in times("FedAvg", [90, 91, 92])]
    found = results(*times("FedBuff", [10, 12, 11]), *lost)
    assert {c.question for c in found.contrasts} == {Question.TARGET}


@pytest.mark.parametrize("suite", [records(), records(*times("ACE", [3])), records(*times("ACE", [3, 4]))])
def test_nothing_is_said_where_nothing_was_tested(suite: RecordedSuite) -> None:
    assert headline(Results.of(suite)) == [] and how_tested(Results.of(suite)) == ""
