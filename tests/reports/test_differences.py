"""Who is behind the best, and by more than chance: on runs whose truth is known."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from scipy import stats
from synthetic import Fake, curve, diverged, records

from reports.comparisons import Gap, differences
from reports.comparisons import behind as differences_to_the_best
from reports.numbers import rough
from reports.page import render
from reports.sections import ranking
from reports.sections.overview import remarks
from reports.sections.section import Results

NOISE = [0.004, -0.002, 0.001, -0.005, 0.003, 0.0]  # of the seeds, shared by all strategies


def fakes(finals: dict[str, list[float]]) -> list[Fake]:
    return [
        Fake(strategy=strategy, seed=seed, curve=curve([0.1, final], [0, 10]))
        for strategy, of in finals.items()
        for seed, final in enumerate(of)
    ]


def compared(made: list[Fake]) -> dict[str, Gap]:
    (scenario,) = records(*made).scenarios()
    return differences(scenario)


def test_a_steady_gap_is_shown_and_one_that_changes_sides_is_not() -> None:
    rng = np.random.default_rng(0)
    best = [0.9 + noise for noise in NOISE]
    steady = [value - 0.02 + rng.normal(0, 0.001) for value in best]
    wavering = [value + gap for value, gap in zip(best, (0.03, -0.04, 0.02, -0.03, 0.01, -0.02), strict=True)]
    found = compared(fakes({"best": best, "steady": steady, "wavering": wavering}))
    assert list(found) == ["wavering", "steady"]  # the nearest first, and not the best itself
    assert found["steady"].worse and not found["wavering"].worse
    values = np.array(best) - np.array(steady)
    effect = found["steady"].effect
    assert effect.mean == pytest.approx(values.mean()) and effect.n == 6
    p = stats.ttest_rel(best, steady).pvalue
    assert effect.p == pytest.approx(p)
    pairs = combinations((best, steady, wavering), 2)
    others = sorted(stats.ttest_rel(one, other).pvalue for one, other in pairs)
    assert others[0] == pytest.approx(p)
    assert found["steady"].p == pytest.approx(3 * p)  # Holm: the smallest of all three pairs
    by_holm = [max(3 * others[0], 2 * others[1]), max(2 * others[1], others[2])]
    assert min(abs(found["wavering"].p - min(1, one)) for one in by_holm) < 1e-9


def test_seeds_are_paired_by_their_number_and_lost_ones_left_out() -> None:
    made = fakes({"best": [0.9, 0.8, 0.7], "other": [0.89, 0.78, 0.67]})
    made = [one for one in made if (one.strategy, one.seed) != ("best", 1)]
    found = compared(made)
    assert found["other"].values == pytest.approx((0.01, 0.03))


def test_less_is_better_turns_the_sign() -> None:
    made = [
        replace(
            one, metric="distance", higher=False, curve={**curve([0, 0], [0, 10]), "distance": [1.0, last]}
        )
        for one, last in zip(
            fakes({"best": [0.1] * 3, "other": [0.3] * 3}), [1, 2, 3, 2, 4, 6.5], strict=True
        )
    ]
    assert compared(made)["other"].values == pytest.approx((1, 2, 3.5))


@pytest.mark.usefixtures("undrawn")
def test_one_seed_shows_nothing() -> None:
    made = fakes({"best": [0.9], "other": [0.1]})
    assert compared(made) == {}
    assert 'id="behind"' not in render(records(*made))
    assert remarks(records(*made))[0].startswith("One seed only")


@pytest.mark.usefixtures("undrawn")
def test_who_diverged_is_not_compared() -> None:
    made = fakes({"best": [0.9, 0.8], "other": [0.7, 0.6], "lost": [0.95, 0.94]})
    made = [diverged(one, 2) if one.strategy == "lost" else one for one in made]
    found = compared(made)
    assert "lost" not in found
    assert 'id="behind"' in render(records(*made))


@pytest.mark.slow
def test_false_alarms_are_as_rare_as_promised() -> None:
    """Five equal strategies: the one that chance puts first beats another in 5 % of scenarios at most."""
    rng, alarms, repeats = np.random.default_rng(1), 0, 100
    for _ in range(repeats):
        shared = rng.normal(0, 0.02, 5)
        finals = {name: list(0.8 + shared + rng.normal(0, 0.01, 5)) for name in "abcde"}
        alarms += any(gap.worse for gap in compared(fakes(finals)).values())
    assert alarms / repeats < 0.05 + 3 * (0.05 * 0.95 / repeats) ** 0.5


@pytest.mark.parametrize(
    ("strategies", "seeds"),
    [(3, 3), (10, 5), *(pytest.param(k, 10, marks=pytest.mark.slow) for k in (5, 10))],
)
@pytest.mark.parametrize("scenarios", [1, 4])
def test_equal_strategies_are_seldom_separated_from_the_one_that_leads(
    strategies: int, seeds: int, scenarios: int
) -> None:
    """By final value, or by mean rank; adjusted for the leader's pairs alone it was 6 to 13 % of suites."""
    rng, suites = np.random.default_rng(100 * strategies + seeds), 200
    wrong = 0
    for _ in range(suites):
        values = rng.normal(size=(scenarios, strategies, seeds))
        losses = stats.rankdata(values, axis=1).mean(0) if scenarios > 1 else values[0]
        order = np.argsort(losses.mean(1), kind="stable")
        gaps = differences_to_the_best({str(at): dict(enumerate(losses[at])) for at in order})
        wrong += any(gap.worse for gap in gaps.values())
    assert wrong / suites <= 0.05 + 3 * (0.05 * 0.95 / suites) ** 0.5


@pytest.mark.usefixtures("undrawn")
def test_the_page_says_it() -> None:
    best = [0.9 + noise for noise in NOISE]
    made = fakes(
        {
            "best": best,
            "worse": [value - 0.05 - 0.001 * at for at, value in enumerate(best)],
            "close": [value - 0.001 * (-1) ** at - 0.0005 for at, value in enumerate(best)],
        }
    )
    suite = records(*made)
    text = render(suite)
    assert text.count(">not separated") == 1 and "Separated from best: 1 of 2." in text
    assert "≈" not in text
    needed = differences(Results.of(suite).scenarios[0])["close"].needed
    assert needed is not None and f"To separate close: about {rough(needed)} seeds." in text
    section = ranking.behind_the_best(Results.of(suite))
    assert section is not None
    numbers = section.tables[0].numbers.set_index("strategy")
    assert bool(numbers.worse["worse"]) and not bool(numbers.worse["close"])
    assert numbers.low["worse"] < numbers.behind["worse"] < numbers.high["worse"]
    # Intervals of three pairs that hold together: each at 1 − 0.05/3, by Student's t.
    gaps = np.array([0.05 + 0.001 * at for at in range(6)])
    half = stats.t.ppf(1 - 0.05 / 3 / 2, 5) * gaps.std(ddof=1) / 6**0.5
    assert numbers.high["worse"] == pytest.approx(gaps.mean() + half)
    assert numbers.low["worse"] == pytest.approx(gaps.mean() - half)


def test_the_seeds_that_would_separate_have_the_power_promised() -> None:
    """The number is for 80 % at the level of one of all pairs, if the difference is as estimated."""
    best = [0.9 + noise for noise in NOISE]
    gaps = (0.01, -0.012, 0.02, 0.004, -0.008, 0.016)
    found = compared(
        fakes(
            {"best": best, "near": [one - gap for one, gap in zip(best, gaps, strict=True)], "far": [0.1] * 6}
        )
    )["near"]
    needed = found.needed
    assert not found.worse and needed is not None
    size = np.mean(gaps) / np.std(gaps, ddof=1)

    def power(n: int) -> float:
        edge = stats.t.ppf(1 - 0.05 / 3 / 2, n - 1)
        return float(stats.nct.sf(edge, n - 1, size * n**0.5))

    assert power(needed) >= 0.8 > power(needed - 1)
