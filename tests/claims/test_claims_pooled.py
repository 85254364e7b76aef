"""Pooled effects: by hand, by simulation, and by what they must not depend on."""

from math import sqrt

import numpy as np
import pytest
from scipy import stats

from benchmarks.claims.claim import Sample
from benchmarks.claims.comparisons import KINDS
from benchmarks.claims.files import Paper
from reports.claims.pooled import pooled, random_effects, standard_error
from reports.claims.readings import Reading
from reports.claims.rules import Verdict


def test_random_effects_by_hand() -> None:
    """Effects 1, 2 and 4 with standard errors of 1: Q = 14/3, τ² = (14/3 − 2)/2, weights 3/7, ratio 1."""
    found = random_effects([1.0, 2.0, 4.0], [1.0, 1.0, 1.0])
    assert found.mean == pytest.approx(7 / 3)
    assert found.between == pytest.approx(sqrt(4 / 3))
    assert found.high - found.mean == pytest.approx(4.302653 * sqrt(7 / 9), rel=1e-6)
    assert found.predicted == pytest.approx([7 / 3 - 18.46183, 7 / 3 + 18.46183], rel=1e-5)


def test_equal_effects_have_no_variance_between_them() -> None:
    """The correction never narrows the interval, which is then that of the common effect."""
    found = random_effects([2.0] * 4, [0.5, 1.0, 1.0, 2.0])
    assert found.between == 0 and found.mean == pytest.approx(2)
    error = 1 / sqrt(4 + 1 + 1 + 0.25)
    assert found.high - 2 == pytest.approx(stats.t.ppf(0.975, 3) * error)


def test_few_clusters_predict_nothing() -> None:
    one, two = random_effects([1.0], [0.5]), random_effects([1.0, 3.0], [0.5, 0.5])
    assert (one.low, one.high) == pytest.approx((1 - 1.959964 * 0.5, 1 + 1.959964 * 0.5))
    assert one.predicted is None and two.predicted is None
    with pytest.raises(ValueError, match="one effect at least"):
        random_effects([], [])
    with pytest.raises(ValueError, match="positive standard errors"):
        random_effects([1.0, 2.0], [0.0, 1.0])


@pytest.mark.parametrize("between", [0.0, 1.0])
def test_intervals_cover_the_mean_and_the_next_effect(between: float) -> None:
    """In 95 % of simulated campaigns of six clusters, about or, without variance between them, at least."""
    rng = np.random.default_rng(5)
    errors = np.array([0.25, 0.4, 0.5, 0.6, 0.8, 1.0])
    covered = predicted = 0
    for _ in range(1000):
        truth = 1 + between * rng.standard_normal(7)
        found = random_effects(truth[:6] + errors * rng.standard_normal(6), errors)
        assert found.predicted is not None
        covered += found.low <= 1 <= found.high
        predicted += found.predicted[0] <= truth[6] <= found.predicted[1]
    assert covered >= 930 and predicted >= 910
    assert covered <= 985 or not between


def reading(id_: str, scenario: str, found: float, half: float, seeds: int = 8) -> Reading:
    """A comparison with this effect and 95 % interval."""
    sides = {side: Sample(scenario=scenario, metric="test/accuracy") for side in "ab"}
    claim = KINDS["better"].model_construct(
        id=id_, kind="better", scenario=scenario, metric="test/accuracy", arrangement="paper", **sides
    )
    verdict = Verdict("undecided", found, found - half, found + half, seeds, 0.95)
    return Reading(Paper("toy", "Toy"), claim, "small", verdict)


def test_a_cluster_counts_once_however_many_readings_it_has() -> None:
    few = [reading("T/a", "one", 0.2, 0.1), reading("T/b", "two", 0.0, 0.1)]
    many = [*few, *(reading(f"T/a{at}", "one", 0.2, 0.1) for at in range(9))]
    first, second = pooled(few), pooled(many)
    assert first is not None and second is not None
    assert second.effect == first.effect and (first.readings, second.readings) == (2, 11)
    assert first.effect.mean == pytest.approx(0.1) and first.effect.clusters == 2


def test_a_standard_error_is_that_of_the_interval() -> None:
    assert standard_error(reading("T/a", "one", 0.2, 0.1)) == pytest.approx(0.1 / stats.t.ppf(0.975, 7))
    assert standard_error(reading("T/a", "one", 0.2, np.inf)) == np.inf
    assert pooled([reading("T/a", "one", 0.2, np.inf)]) is None
