"""Effects of a main result pooled over clusters: random effects, with a prediction interval.

A cluster is an arrangement and a workload: the readings of one scenario at one scale, on one data set. Its
effect is the mean of theirs; so is its standard error, since they share seeds and runs. Twins, which repeat a
comparison on runs that they share with another reading, do not enter.

The variance between clusters is estimated as by DerSimonian and Laird (Controlled Clinical Trials 7, 1986),
the interval of the mean as by Hartung and Knapp (Statistics in Medicine 20, 2001), never narrower than
without their correction. The prediction interval, where the effect in one more cluster would be, is that of
Higgins, Thompson and Spiegelhalter (Journal of the Royal Statistical Society A 172, 2009).
"""

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from math import inf, isfinite, nan, sqrt

import numpy as np
from scipy import special

from benchmarks.claims.claim import Claim
from benchmarks.claims.comparisons import Better, Contrast, Ratio, Value
from reports.claims.readings import Reading
from reports.inference import LEVEL, t_quantile

FEWEST_TO_PREDICT = 3  # clusters
Array = np.ndarray


@dataclass(frozen=True, slots=True)
class RandomEffects:
    """Mean effect over clusters, with an interval, and a prediction interval for a further cluster."""

    mean: float
    low: float  # −∞ for a single cluster without a standard error
    high: float
    predicted: tuple[float, float] | None  # None for fewer than three clusters
    between: float  # standard deviation between clusters
    clusters: int


@dataclass(frozen=True, slots=True)
class PooledEffect:
    """The pooled effect of readings with equal measures."""

    effect: RandomEffects
    typical: Claim  # one of the claims that it is pooled from: metric, unit, and what they claim
    readings: int  # that it is pooled from


def random_effects(effects: Sequence[float], errors: Sequence[float], level: float = LEVEL) -> RandomEffects:
    """Return the random-effects mean of effects with positive standard errors; ValueError without any."""
    y, variance = np.asarray(effects, float), np.asarray(errors, float) ** 2
    k = len(y)
    if not k or not np.isfinite(y).all() or not (np.isfinite(variance) & (variance > 0)).all():
        raise ValueError("pooling needs one effect at least, finite, with positive standard errors")
    if k == 1:
        half = float(special.ndtri((1 + level) / 2)) * sqrt(variance[0])
        return RandomEffects(float(y[0]), float(y[0] - half), float(y[0] + half), None, 0.0, 1)
    between = _between(y, variance)
    weights = 1 / (variance + between)
    mean = float(weights @ y / weights.sum())
    ratio = float(weights @ (y - mean) ** 2) / (k - 1)  # Hartung and Knapp: 1 where the weights are right
    error = sqrt(max(1.0, ratio) / weights.sum())
    half = t_quantile(k, level) * error
    predicted = None
    if k >= FEWEST_TO_PREDICT:
        away = t_quantile(k - 1, level) * sqrt(between + error**2)
        predicted = mean - away, mean + away
    return RandomEffects(mean, mean - half, mean + half, predicted, sqrt(between), k)


def _between(y: Array, variance: Array) -> float:
    """Return the variance between clusters (DerSimonian and Laird)."""
    weights = 1 / variance
    fixed = weights @ y / weights.sum()
    excess = weights @ (y - fixed) ** 2 - (len(y) - 1)
    return max(0.0, float(excess / (weights.sum() - weights @ weights / weights.sum())))


def pooled(readings: Iterable[Reading]) -> PooledEffect | None:
    """Return the pooled effect of readings of the commonest measure; None if no reading has an interval."""
    measured = [reading for reading in readings if isfinite(standard_error(reading))]
    measures = Counter(measure(reading.claim) for reading in measured)
    if not measures:
        return None
    ((usual_measure, _),) = measures.most_common(1)
    alike = [reading for reading in measured if measure(reading.claim) == usual_measure]
    clusters: dict[Hashable, list[Reading]] = {}
    for reading in alike:
        clusters.setdefault(cluster(reading), []).append(reading)
    effects = [float(np.mean([found(reading) for reading in inside])) for inside in clusters.values()]
    errors = [float(np.mean([standard_error(reading) for reading in inside])) for inside in clusters.values()]
    return PooledEffect(random_effects(effects, errors), alike[0].claim, len(alike))


def measure(claim: Claim) -> Hashable:
    """Return the measure of an effect; effects of equal measure can be averaged."""
    kind = "difference" if isinstance(claim, Better | Contrast) else claim.kind
    along = tuple({sample.along for sample in claim.samples.values()} - {"last", "mean"})
    metrics = tuple(dict.fromkeys(metric.name for metric in claim.metrics))
    return kind, metrics, along, getattr(claim, "log", False), getattr(claim, "of", "")


def cluster(reading: Reading) -> Hashable:
    """Return the cluster of a reading: arrangement, scale, scenarios and data set."""
    samples = reading.claim.samples.values()
    scenarios = tuple(dict.fromkeys(sample.scenario for sample in samples))
    data = tuple(dict.fromkeys(str(sample.where.get("problem.name", "")) for sample in samples))
    return reading.arrangement, reading.scale, scenarios, data


def found(reading: Reading) -> float:
    """Return the effect found; for a printed number, the difference found − printed."""
    value = nan if reading.verdict.found is None else reading.verdict.found
    claim = reading.claim
    return value - float(claim.printed) if isinstance(claim, Value) and claim.printed is not None else value


def standard_error(reading: Reading) -> float:
    """Return the standard error of an effect from the interval; ∞ without any, and for ratios of spreads."""
    claim, verdict = reading.claim, reading.verdict
    ends = verdict.low, verdict.high
    if not claim.needs_runs or verdict.level is None or verdict.seeds < 2 or None in ends:
        return inf
    if isinstance(claim, Ratio) and claim.of == "spread":
        return inf
    half = (ends[1] - ends[0]) / 2  # type: ignore[operator]
    if isinstance(claim, Value) and claim.printed is not None:
        half -= claim.rounding
    return half / t_quantile(verdict.seeds, verdict.level) if 0 < half < inf else inf
