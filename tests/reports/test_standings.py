"""Who leads a suite: mean ranks and their intervals, against scipy and numbers worked by hand."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from scipy import stats
from synthetic import Fake, curve, diverged, records

from reports.ranking_table import Standings
from reports.records.records import RecordedSuite
from reports.sections.overview import leaders, who_leads
from reports.sections.section import Results

NAMES = ("ACE", "FedAvg", "FedBuff", "FedFix")


def suite(finals: np.ndarray, **more: object) -> RecordedSuite:
    """Final values [scenarios, strategies, seeds]."""
    fakes = [
        Fake(f"scenario {at}", NAMES[who], seed, curve=curve([0.1, float(finals[at, who, seed])], [0, 10]))
        for at, who, seed in np.ndindex(*finals.shape)
    ]
    return records(*(replace(one, **more) for one in fakes))  # type: ignore[arg-type]


def standing(of: RecordedSuite) -> Standings:
    found = Results.of(of).standings
    assert found is not None
    return found


def test_mean_ranks_worked_by_hand() -> None:
    """Two scenarios, two seeds: ranks of ACE 1 1 | 2 1, of FedAvg 2 3 | 3 2.5, of FedBuff 3 2 | 1 2.5."""
    finals = np.array(
        [[[0.9, 0.9], [0.8, 0.7], [0.7, 0.8]], [[0.8, 0.9], [0.7, 0.5], [0.9, 0.5]]]
    )  # [scenario, strategy, seed]
    found = standing(suite(finals))
    assert found.by_rank and (found.scenarios, found.seeds) == (2, 2)
    assert found.order == ["ACE", "FedBuff", "FedAvg"]
    assert [one.score.mean for one in found.lines] == pytest.approx([1.25, 2.125, 2.625])
    ace = [1.5, 1.0]  # by seed, over scenarios
    half = stats.t.ppf(0.975, 1) * np.std(ace, ddof=1) / 2**0.5
    assert found.leader.score.low == pytest.approx(1.25 - half)


def test_ranks_and_tests_agree_with_scipy() -> None:
    rng = np.random.default_rng(3)
    finals = 0.8 + np.array([0.03, 0.0, 0.028, -0.02])[None, :, None] + rng.normal(0, 0.008, (3, 4, 6))
    found = standing(suite(finals))
    ranks = stats.rankdata(-finals, axis=1).mean(0)  # [strategies, seeds]
    order = np.argsort(ranks.mean(1))
    assert found.order == [NAMES[at] for at in order]
    first = ranks[order[0]]
    pairs = list(combinations(order, 2))  # all six, since any strategy might have led
    p = [stats.ttest_rel(ranks[other], ranks[one]).pvalue for one, other in pairs]
    step = np.argsort(p)
    holm = np.minimum(1, np.maximum.accumulate(np.array(p)[step] * (6 - np.arange(6))))
    edge = stats.t.ppf(1 - 0.05 / 6 / 2, 5)
    for at, one in zip(order[1:], found.lines[1:], strict=True):
        place = pairs.index((order[0], at))
        gap = ranks[at] - first
        assert one.gap is not None
        assert one.gap.p == pytest.approx(holm[list(step).index(place)])
        assert one.gap.effect.high == pytest.approx(gap.mean() + edge * gap.std(ddof=1) / 6**0.5)
        assert one.gap.worse == (one.gap.p <= 0.05)
        assert one.open != one.gap.worse
    assert any(one.open for one in found.lines) and any(one.gap.worse for one in found.lines if one.gap)


def test_diverged_runs_share_the_last_ranks() -> None:
    finals = np.full((2, 3, 2), 0.5) + 0.1 * np.arange(3)[None, :, None]
    runs = [
        diverged(one, 1) if one.strategy == "FedBuff" and one.scenario == "scenario 0" else one
        for one in [
            Fake(
                f"scenario {at}", NAMES[who], seed, curve=curve([0.1, float(finals[at, who, seed])], [0, 10])
            )
            for at, who, seed in np.ndindex(*finals.shape)
        ]
    ]
    found = standing(records(*runs))
    assert {one.strategy: one.score.mean for one in found.lines} == {"FedAvg": 1.5, "FedBuff": 2, "ACE": 2.5}


def test_only_what_all_have_is_ranked() -> None:
    """A seed that one strategy lacks, and a strategy that one scenario lacks, are left out."""
    finals = 0.5 + np.random.default_rng(0).random((2, 4, 3)) / 3
    full = suite(finals)
    runs = [
        run
        for run in full.runs
        if (run.strategy, run.seed) != ("ACE", 2) and (run.strategy, run.scenario) != ("FedFix", "scenario 1")
    ]
    cut = replace(full, runs=tuple(runs))
    found = standing(cut)
    assert found.seeds == 2 and set(found.order) == {"ACE", "FedAvg", "FedBuff"}
    assert [one.score.mean for one in found.lines] == pytest.approx(
        sorted(stats.rankdata(-finals[:, :3, :2], axis=1).mean((0, 2)))
    )
    assert Results.of(cut).order[-1] == "FedFix"


def test_one_scenario_is_led_by_its_best_mean() -> None:
    finals = np.array([[[0.9, 0.7, 0.8], [0.7, 0.6, 0.65]]])
    of = Results.of(suite(finals))
    assert of.standings is not None and not of.standings.by_rank
    assert who_leads(of).startswith("Highest mean test accuracy: ACE (80.0 %)")
    shown = leaders(of)
    assert shown is not None
    about = shown.figures[0][1].description
    assert about.startswith("Final test accuracy: ACE 80.0 [")


def test_a_tie_names_both_leaders_and_neither_as_behind() -> None:
    finals = np.array([[[0.9, 0.7, 0.8], [0.9, 0.7, 0.8]]])
    assert who_leads(Results.of(suite(finals))) == "Highest mean test accuracy: ACE, FedAvg (80.0 %)."


@pytest.mark.parametrize(
    ("budget", "clock"),
    [
        ({"budget.time": "30"}, "virtual time"),
        ({"budget.iterations": "500"}, "server iterations"),
        ({"budget.updates": "100", "budget.time": "30"}, "client updates"),
    ],
)
def test_the_curves_beside_run_along_the_budget(budget: dict[str, str], clock: str) -> None:
    finals = np.array([[[0.9, 0.8], [0.7, 0.6]]])
    shown = leaders(Results.of(suite(finals, params={"strategy.name": "ace", **budget})))
    assert shown is not None
    assert f"against {clock}" in shown.figures[1][1].description


def test_nothing_is_compared_where_there_is_one_strategy() -> None:
    assert Results.of(suite(np.full((2, 1, 2), 0.5))).standings is None
    assert leaders(Results.of(suite(np.full((2, 1, 2), 0.5)))) is None
