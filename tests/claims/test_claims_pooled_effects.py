"""Pooled effects: by hand, by simulation, and by what they must not depend on."""

from dataclasses import replace
from math import sqrt

import numpy as np
import pytest
from scipy import stats

from benchmarks.claims.claim import Sample
from benchmarks.claims.files import Paper
from benchmarks.claims.kinds import KINDS
from reports.claims.main_results import Outcome
from reports.claims.pooled_effects import pooled, random_effects, standard_error
from reports.claims.readings import Reading
from reports.claims.verdicts import Verdict

# Effects and variances of 13 trials of the BCG vaccine (log relative risks; Colditz et al., JAMA 271, 1994).
BCG = [
    *((-0.8893, 0.3256), (-1.5854, 0.1946), (-1.3481, 0.4154), (-1.4416, 0.0200), (-0.2175, 0.0512)),
    *((-0.7861, 0.0069), (-1.6209, 0.2230), (0.0120, 0.0040), (-0.4694, 0.0564), (-1.3713, 0.0730)),
    *((-0.3394, 0.0124), (0.4459, 0.5325), (-0.0173, 0.0714)),
]


def test_random_effects_by_hand() -> None:
    """Effects 1, 2 and 4 with standard errors of 1: τ² = s² − 1 = 4/3, weights 3/7, ratio 1."""
    found = random_effects([1.0, 2.0, 4.0], [1.0, 1.0, 1.0])
    assert found.mean == pytest.approx(7 / 3)
    assert found.between == pytest.approx(sqrt(4 / 3))
    assert found.high - found.mean == pytest.approx(4.302653 * sqrt(7 / 9), rel=1e-6)
    assert found.predicted == pytest.approx([7 / 3 - 18.46183, 7 / 3 + 18.46183], rel=1e-5)


def test_the_variance_between_trials_of_a_vaccine_is_the_published_one() -> None:
    """0.318 by Paule and Mandel (0.309 by DerSimonian and Laird); the weighted squares add up to 12."""
    effects, variances = zip(*BCG, strict=True)
    found = random_effects(effects, [sqrt(variance) for variance in variances])
    assert found.between**2 == pytest.approx(0.3181, abs=5e-4)
    weights = [1 / (variance + found.between**2) for variance in variances]
    squares = [weight * (effect - found.mean) ** 2 for weight, effect in zip(weights, effects, strict=True)]
    assert sum(squares) == pytest.approx(12)


def test_equal_effects_have_no_variance_between_them() -> None:
    """The correction never narrows the interval, which is then that of the common effect."""
    found = random_effects([2.0] * 4, [0.5, 1.0, 1.0, 2.0])
    assert found.between == 0 and found.mean == pytest.approx(2)
    error = 1 / sqrt(4 + 1 + 1 + 0.25)
    assert found.high - 2 == pytest.approx(stats.t.ppf(0.975, 3) * error)


def test_few_clusters_are_not_pooled() -> None:
    for effects in ([], [1.0], [1.0, 3.0]):
        with pytest.raises(ValueError, match="three finite effects"):
            random_effects(effects, [0.5] * len(effects))
    with pytest.raises(ValueError, match="positive standard errors"):
        random_effects([1.0, 2.0, 3.0], [0.0, 1.0, 1.0])


def reading(id_: str, scenario: str, found: float, half: float, *, method: str = "ace") -> Reading:
    """A comparison with this effect and 95 % interval."""
    sides = {
        side: Sample(scenario=scenario, metric="test/accuracy", strategy={"name": method}) for side in "ab"
    }
    claim = KINDS["better"].model_construct(
        id=id_, kind="better", scenario=scenario, metric="test/accuracy", arrangement="paper", **sides
    )
    verdict = Verdict("undecided", found, found - half, found + half, 8, 0.95)
    return Reading(Paper("toy", "Toy"), claim, "small", verdict)


def test_a_cluster_counts_once_however_many_readings_it_has() -> None:
    few = [reading(f"T/{name}", name, effect, 0.1) for name, effect in (("a", 0.2), ("b", 0.0), ("c", 0.1))]
    more = [*few, *(reading(f"T/a{at}", "a", 0.2, 0.1) for at in range(9))]
    (first,), (second,) = pooled(few), pooled(more)
    assert second.effect == first.effect and (first.readings, second.readings) == (3, 12)
    assert first.effect is not None and first.effect.mean == pytest.approx(0.1)


def test_two_clusters_have_means_and_no_interval() -> None:
    (part,) = pooled([reading("T/a", "one", 0.2, 0.1), reading("T/b", "two", 0.0, 0.1)])
    assert part.means == (0.2, 0.0) and part.effect is None


def test_methods_that_are_to_lead_are_pooled_apart() -> None:
    readings = [reading(f"T/{at}", "one", at / 10, 0.1, method=f"method-{at % 2}") for at in range(4)]
    assert [part.means for part in pooled(readings)] == [(pytest.approx(0.1),), (pytest.approx(0.2),)]


def test_times_to_a_target_are_pooled_as_logarithms_of_ratios() -> None:
    """B takes twice as long as A under every seed but for noise, whatever the unit of time."""
    rng = np.random.default_rng(3)
    noise = rng.normal(0, 0.1, 8)
    estimates = []
    for unit in (1.0, 1000.0):
        a = dict.fromkeys(range(8), unit * 5.0)
        b = {seed: unit * 10 * float(np.exp(noise[seed])) for seed in range(8)}
        one = reading("T/a", "one", unit * 5, unit)
        sides = {side: Sample(scenario="one", metric="test/accuracy", reach=0.7) for side in "ab"}
        claim = KINDS["better"].model_construct(
            id="T/a", kind="better", clock="time", higher=False, metric="test/accuracy", **sides
        )
        one = replace(one, claim=claim, values={"a": a, "b": b})
        (part,) = pooled([one])
        assert part.log
        estimates.append(part.means[0])
    assert estimates[0] == pytest.approx(np.log(2) + noise.mean()) == pytest.approx(estimates[1])


def test_clusters_lie_in_the_prediction_intervals_of_their_results(main_results: list[Outcome]) -> None:
    """19 in 20 of all clusters of the shipped results at least; the intervals are of 95 % for one more."""
    parts = [part for outcome in main_results for part in outcome.pooled]
    inside = [
        part.effect.predicted[0] <= mean <= part.effect.predicted[1]
        for part in parts
        if part.effect is not None
        for mean in part.means
    ]
    assert len(inside) > 100 and np.mean(inside) >= 0.95


def test_a_standard_error_is_that_of_the_interval() -> None:
    assert standard_error(reading("T/a", "one", 0.2, 0.1)) == pytest.approx(0.1 / stats.t.ppf(0.975, 7))
    assert standard_error(reading("T/a", "one", 0.2, np.inf)) == np.inf
    assert pooled([reading("T/a", "one", 0.2, np.inf)]) == ()
