"""Tests of paired differences that need no normal distribution."""

import numpy as np
import pytest
from scipy import stats

from fl_core.streams import stream
from reports.statistical_inference import (
    FEWEST,
    PairedMedian,
    agreed,
    draw_above,
    paired_effect,
    sign_flip,
    sign_test,
    skewed,
    spread_ratio,
    straightened,
)


def test_sign_flips_of_many_seeds_are_nearly_normal() -> None:
    values = stream(2, "flips").normal(0.25, 1, 64)
    normal = stats.norm.sf((values.sum() - 0.1) / np.sqrt((values**2).sum()))
    assert sign_flip(values) == pytest.approx(normal, rel=0.1)


def test_signs_alone_are_binomial() -> None:
    values = np.array([0.3, 0.1, -0.2, 0.0, 0.5, np.inf])
    assert sign_test(values) == pytest.approx(stats.binom.sf(3, 5, 0.5))
    assert sign_test(-values) == pytest.approx(stats.binom.sf(0, 5, 0.5))
    assert sign_test(np.zeros(3)) == 1


def test_one_more_draw_is_the_largest_of_all_as_often_as_any_other() -> None:
    draws = stream(3, "draws").exponential(size=(4000, 20))
    p = np.array([draw_above(one[0], one[1:]) for one in draws])
    assert set(np.unique(p)) == {k / 20 for k in range(1, 21)}
    assert (p <= 0.1).mean() == pytest.approx(0.1, abs=0.02)


def test_fewer_than_six_seeds_show_nothing() -> None:
    sure = np.array([1.0, 1.01, 0.99, 1.0, 1.01, 0.99])
    assert paired_effect(sure[: FEWEST - 1]).p_above(0) < 1e-6
    assert agreed(sure[: FEWEST - 1]) > 0.025 > agreed(sure)
    assert agreed(np.ones(6)) == 2.0**-6  # without a spread, signs are all there is


def test_skewness_is_held_against_the_finding() -> None:
    """A transformation that rises, and shrinks; a tail below that was seen weighs more than one above."""
    sizes = np.linspace(-2, 12, 200)
    shrunk = np.array([straightened(size) for size in sizes])
    assert (np.diff(shrunk) > 0).all() and (shrunk <= sizes + 1e-12)[sizes > 0].all()
    tail = np.array([0.1, 0.9, 1.0, 1.1, 1.1, 1.2, 1.3, 1.3])
    above = 2 * tail.mean() - tail  # mean and spread are the same
    assert (
        skewed(tail)
        > skewed(above)
        > paired_effect(above).p_above(0)
        == pytest.approx(paired_effect(tail).p_above(0))
    )


def test_the_interval_of_a_median_is_of_order_statistics() -> None:
    """Of ten values, from the second to the ninth: binomial 0.0107 outside on each side."""
    values = stream(4, "median").permutation(10.0 ** np.arange(10))
    found = PairedMedian(values)
    assert (found.low, found.high) == (10.0, 1e8) and found.mean == pytest.approx(5.5e4 * 10 / 10, rel=1e-9)
    assert PairedMedian(values[:5]).low == -np.inf
    lost = PairedMedian(np.array([np.nan, np.inf, np.inf, 1.0]))
    assert (lost.n, lost.mean) == (3, np.inf)


def test_spreads_are_distances_from_the_median() -> None:
    rng = stream(5, "spread")
    wide, narrow = rng.normal(0, 3, 24), rng.normal(7, 1, 24)
    found = spread_ratio(wide, narrow)
    distances = [np.abs(side - np.median(side)) for side in (wide, narrow)]
    assert found.mean == pytest.approx(distances[0].mean() / distances[1].mean())
    t, p = stats.ttest_rel(*distances)
    assert found.p_above(1) >= p / 2 and t > 0
    with pytest.raises(ValueError, match="no spread"):
        spread_ratio(wide, np.ones(24))
