"""Who is behind the best, and by more than chance: on runs whose truth is known."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from scipy import stats
from synthetic import Fake, curve, diverged, records

from reports.comparisons import Gap, differences
from reports.sections import gaps_to_best
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


def test_who_diverged_is_not_compared() -> None:
    made = fakes({"best": [0.9, 0.8], "other": [0.7, 0.6], "lost": [0.95, 0.94]})
    made = [diverged(one, 2) if one.strategy == "lost" else one for one in made]
    assert "lost" not in compared(made)


def test_intervals_behind_the_best_hold_together() -> None:
    """Of three pairs: each at 1 − 0.05/3, by Student's t."""
    best = [0.9 + noise for noise in NOISE]
    made = fakes(
        {
            "best": best,
            "worse": [value - 0.05 - 0.001 * at for at, value in enumerate(best)],
            "close": [value - 0.001 * (-1) ** at - 0.0005 for at, value in enumerate(best)],
        }
    )
    section = gaps_to_best.behind_the_best(Results.of(records(*made)))
    assert section is not None
    numbers = section.tables[0].numbers.set_index("strategy")
    assert bool(numbers.worse["worse"]) and not bool(numbers.worse["close"])
    assert numbers.low["worse"] < numbers.behind["worse"] < numbers.high["worse"]
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
