"""Paired statistics: intervals of SciPy, sign flips by enumeration, coverage of ties, Holm by hand."""

from collections.abc import Callable
from itertools import product
from math import inf

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from fl_core.streams import stream
from reports.statistical_inference import Effect, holm, paired_effect, seeds_to_decide, sign_flip, two_sided


def power_of_t(size: float, n: int) -> float:
    """Of a two-sided test at 5 %, by the noncentral t."""
    return float(stats.nct.sf(stats.t.ppf(0.975, n - 1), n - 1, size * np.sqrt(n)))


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


def test_the_interval_is_students_and_p_that_of_the_paired_t_test() -> None:
    values = [0.1, 0.3, 0.2, 0.5]
    found = paired_effect(values)
    low, high = stats.t.interval(0.95, 3, np.mean(values), stats.sem(values))
    assert (found.low, found.high) == pytest.approx((low, high))
    assert found.p == pytest.approx(stats.ttest_1samp(values, 0).pvalue)
    assert found.p_above(0.1) == pytest.approx(stats.ttest_1samp(values, 0.1, alternative="greater").pvalue)
    assert found.p_below(0.4) == pytest.approx(stats.ttest_1samp(values, 0.4, alternative="less").pvalue)


def test_one_seed_shows_nothing_of_its_spread() -> None:
    found = paired_effect([3.0])
    assert (found.low, found.high, found.p, found.p_above(0)) == (-np.inf, np.inf, 1.0, 1.0)
    assert seeds_to_decide(found) is None


@pytest.mark.parametrize(
    ("equal", "others", "given"),
    [(2, 1, False), (2, 2, True), (4, 3, False), (11, 1, False), (7, 6, False), (8, 7, True), (40, 6, False)],
)
def test_a_majority_of_equal_differences_and_six_others_at_most_have_no_interval(
    equal: int, others: int, given: bool
) -> None:
    values = [0.5] * equal + [1.0 + other for other in range(others)]
    found = paired_effect(values)
    assert np.isfinite([found.low, found.high]).all() == given
    assert np.isfinite(found.bounds).all() == given
    assert found.std > 0


def test_holm_by_hand() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.9, 0.6]) == [1.0, 1.0]
    assert holm([]) == []


@pytest.mark.parametrize("differences", [[], [float("nan")], [1.0, float("inf")]])
def test_nothing_to_measure(differences: list[float]) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - the only one that it raises
        paired_effect(differences)


def test_equal_differences_show_no_more_than_their_signs() -> None:
    """Three of one sign happen by chance in a quarter of cases, of any size; rounding is no spread."""
    assert paired_effect([-0.002] * 3).p == 0.25
    assert paired_effect([0.3, 0.1 + 0.2]).std == 0
    assert paired_effect([0.0, 0.0]).p == 1


@pytest.mark.parametrize("differences", [[5.0, 5.0], [5.0] * 9, [0.0] * 4, [5.0, 5.0, 5.0, 5.0001]])
def test_equal_differences_have_no_interval(differences: list[float]) -> None:
    found = paired_effect(differences)
    assert (found.low, found.high) == (-np.inf, np.inf)
    assert found.p >= 2.0 ** (1 - len(differences))
    assert paired_effect([5.0, 5.0]).p_above(0) == paired_effect([-5.0, -5.0]).p_below(0) == 0.25


@pytest.mark.parametrize("tests", [1, 3, 10])
@pytest.mark.parametrize("differences", [[5.0, 5.0], [-2.0] * 4, [5.0, 5.0, 5.0, 5.0001]])
def test_as_many_equal_differences_as_are_said_to_decide_do_and_no_fewer_would(
    differences: list[float], tests: int
) -> None:
    level = 1 - 0.05 / tests
    n = seeds_to_decide(paired_effect(differences), level=level)
    assert n is not None
    assert paired_effect([differences[0]] * n).p <= 1 - level < paired_effect([differences[0]] * (n - 1)).p
    assert tests > 1 or n == 6


def flipped(values: np.ndarray, mean: float) -> float:
    """Two-sided p-value for a mean: twice the share of all choices of signs with a sum as far out."""
    away = values - mean
    sums = np.array(list(product((-1, 1), repeat=len(values)))) @ away
    room = 1e-9 * np.abs(away).sum()
    return min(1.0, 2 * min((sums >= away.sum() - room).mean(), (sums <= away.sum() + room).mean()))


@pytest.mark.parametrize("n", [1, 5, 6, 9])
@pytest.mark.parametrize("level_pairs", [0.0, 0.7])
def test_sign_flips_are_those_of_all_choices_of_signs(n: int, level_pairs: float) -> None:
    rng = stream(3, "flips", n)
    values = np.where(rng.random(n) < level_pairs, 0, rng.normal(1, 1, n)).round(2)
    for mean in (0, 0.25, *values):
        assert two_sided(sign_flip, values - mean) == pytest.approx(flipped(values, mean))


@given(st.lists(st.integers(-3, 3), min_size=2, max_size=14))
def test_an_interval_without_0_has_a_small_p(values: list[int]) -> None:
    found = paired_effect([float(value) for value in values])
    assert found.low <= 0 <= found.high or found.p <= 0.05


SAMPLES = 2000


def time(rng: np.random.Generator, size: int, later: float, mark: float, end: float) -> np.ndarray:
    return np.minimum(np.ceil(10 * np.exp(rng.normal(later, 0.4, size)) / mark) * mark, end)


def times(mark: float, end: float) -> Callable[[np.random.Generator, int], np.ndarray]:
    return lambda rng, size: time(rng, size, 0.2, mark, end) - time(rng, size, 0, mark, end)


LAWS: dict[str, Callable[[np.random.Generator, int], np.ndarray]] = {
    "normal": lambda rng, size: rng.normal(size=size),
    "60 % level, the rest 1 ± 0.3": lambda rng, size: (rng.random(size) > 0.6) * rng.normal(1, 0.3, size),
    "60 % level, the rest 1 ± 1": lambda rng, size: (rng.random(size) > 0.6) * rng.normal(1, 1, size),
    "60 % level, the rest exponential": lambda rng, size: (rng.random(size) > 0.6) * rng.exponential(1, size),
    "80 % level, the rest 1 ± 1": lambda rng, size: (rng.random(size) > 0.8) * rng.normal(1, 1, size),
    "marks every 5": times(5, inf),
    "marks every 10": times(10, inf),
    "ends at 8": times(0.001, 8),
    "ends at 12, marks every 5": times(5, 12),
}


@pytest.mark.slow
@pytest.mark.parametrize("n", [3, 6, 12, 20])
@pytest.mark.parametrize("law", LAWS)
def test_intervals_of_tied_marked_and_censored_differences(law: str, n: int) -> None:
    """Misses within 5 % and three standard errors, where Student's intervals of equal pairs miss 29 %."""
    rng = stream(11, "ties", law, n)
    mean = 0.0 if law == "normal" else LAWS[law](rng, 1_000_000).mean()
    found = [paired_effect(LAWS[law](rng, n)) for _ in range(SAMPLES)]
    miss = np.mean([not one.low <= mean + 1e-9 or not mean - 1e-9 <= one.high for one in found])
    assert miss <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / SAMPLES)
