"""Paired statistics: coverage under known truth, power as theory predicts it, Holm's correction by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from fl_core.streams import stream
from reports.statistics.paired import Effect, effect, holm, seeds_to_decide, student

REPEATS = 300


def missed(draw: str, n: int) -> float:
    """Share of intervals that leave out the true mean, 0."""
    rng = stream(7, "null", draw, n)
    laws = {
        "normal": lambda: rng.normal(size=n),
        "uniform": lambda: rng.uniform(-1, 1, n),
        "heavy tails": lambda: rng.standard_t(5, n),
    }
    found = [effect(laws[draw]().tolist()) for _ in range(REPEATS)]
    return float(np.mean([not one.low <= 0 <= one.high for one in found]))


@pytest.mark.parametrize(
    ("draw", "n"),
    [
        *(("normal", n) for n in (2, 3, 5, 8, 20)),
        *(pytest.param(d, n, marks=pytest.mark.slow) for d in ("uniform", "heavy tails") for n in (8, 20)),
    ],
)
def test_intervals_miss_the_truth_in_seven_per_cent_at_most(draw: str, n: int) -> None:
    assert missed(draw, n) <= 0.07


def power_of_t(size: float, n: int) -> float:
    """Of a two-sided test at 5 %, by the noncentral t."""
    return float(stats.nct.sf(stats.t.ppf(0.975, n - 1), n - 1, size * np.sqrt(n)))


def shown(size: float, n: int) -> float:
    """Share of effects of this size, in standard deviations, that are found."""
    rng = stream(1, "power", n)
    return float(np.mean([effect(rng.normal(size, 1, n).tolist()).low > 0 for _ in range(REPEATS)]))


@pytest.mark.parametrize(("size", "n"), [(1.3, 5), (2, 5), (1, 7)])
def test_below_eight_seeds_the_power_is_that_of_the_noncentral_t(size: float, n: int) -> None:
    found, power = shown(size, n), power_of_t(size, n)
    error = np.sqrt(power * (1 - power) / REPEATS)
    assert found == pytest.approx(power, abs=3 * error)


@pytest.mark.slow
@pytest.mark.parametrize(("size", "n"), [(1.5, 8), (1, 12), (0.65, 20)])
def test_the_bootstrap_costs_two_seeds_of_power_at_most(size: float, n: int) -> None:
    assert power_of_t(size, n - 2) < shown(size, n) < power_of_t(size, n) + 0.02


@pytest.mark.parametrize("size", [0.1, 0.5, 1.0, 3.0])
def test_as_many_seeds_as_are_said_to_decide_do_and_no_fewer_would(size: float) -> None:
    n = seeds_to_decide(Effect(size, 0, 0, 1, 1.0, 5))
    assert n is not None
    assert power_of_t(size, n) >= 0.8 > power_of_t(size, n - 1)


def test_more_tests_need_more_seeds_and_no_effect_has_no_number() -> None:
    found = Effect(0.5, 0, 0, 1, 1.0, 5)
    alone, among_fifty = seeds_to_decide(found), seeds_to_decide(found, level=1 - 0.05 / 50)
    assert alone is not None and among_fifty is not None and among_fifty > 2 * alone
    assert seeds_to_decide(Effect(-0.5, 0, 0, 1, 1.0, 5)) == alone
    assert seeds_to_decide(Effect(0.0, 0, 0, 1, 1.0, 5)) is None


def test_few_seeds_give_students_interval() -> None:
    values = [0.1, 0.3, 0.2, 0.5]
    found = effect(values)
    low, high = stats.t.interval(0.95, 3, np.mean(values), stats.sem(values))
    assert (found.low, found.high) == pytest.approx((low, high))
    assert found.p == pytest.approx(stats.ttest_1samp(values, 0).pvalue)
    assert found.p_above(0.1) == pytest.approx(stats.ttest_1samp(values, 0.1, alternative="greater").pvalue)
    assert found.p_below(0.4) == pytest.approx(stats.ttest_1samp(values, 0.4, alternative="less").pvalue)


def test_one_seed_shows_nothing_of_its_spread() -> None:
    found = effect([3.0])
    assert (found.low, found.high, found.p, found.p_above(0)) == (-np.inf, np.inf, 1.0, 1.0)
    assert seeds_to_decide(found) is None


def test_ties_do_not_break_the_bootstrap() -> None:
    found = effect([0.0] * 11 + [1.0])
    assert -1 < found.low < 0 < found.high < 1


@given(st.lists(st.floats(-1e3, 1e3), min_size=2, max_size=12), st.floats(0.1, 10), st.floats(-10, 10))
def test_intervals_move_and_stretch_with_the_values(values: list[float], scale: float, shift: float) -> None:
    if np.std(values) < 1e-3:
        return
    before, after = effect(values), effect([scale * value + shift for value in values])
    assert after.low == pytest.approx(scale * before.low + shift, rel=1e-6, abs=1e-6)
    assert after.high == pytest.approx(scale * before.high + shift, rel=1e-6, abs=1e-6)


def test_holm_by_hand() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.9, 0.6]) == [1.0, 1.0]
    assert holm([]) == []


def test_students_interval_at_another_level() -> None:
    values = [0.1, 0.3, 0.2, 0.5, 0.4, 0.2, 0.1, 0.6, 0.3]
    found = student(values, 0.99)
    low, high = stats.t.interval(0.99, 8, np.mean(values), stats.sem(values))
    assert (found.low, found.high) == pytest.approx((low, high))


@pytest.mark.parametrize("differences", [[], [float("nan")], [1.0, float("inf")]])
def test_nothing_to_measure(differences: list[float]) -> None:
    with pytest.raises(ValueError, match="finite difference"):
        effect(differences)


def test_equal_differences_show_no_more_than_their_signs() -> None:
    """Three of one sign happen by chance in a quarter of cases, of any size; rounding is no spread."""
    assert effect([-0.002] * 3).p == 0.25
    assert effect([0.3, 0.1 + 0.2]).std == 0
    assert effect([0.0, 0.0]).p == 1
