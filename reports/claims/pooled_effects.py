"""Effects of a main result pooled over clusters: random effects, with a prediction interval.

The outcome of a main result (`main_results`) has one for each leading method. A cluster is an arrangement, a
delay or routing, a workload and a scale: the readings of one scenario at one scale, on one data set. Effect
and standard error of a cluster are the means over its readings, which share seeds and runs. Twins, which
repeat a comparison on shared runs, do not enter. Comparisons with different claimed leaders are pooled
separately. Times, energies and counts of iterations or updates are pooled as logarithms of ratios.

The variance between clusters is estimated as by Paule and Mandel (Journal of Research of the National Bureau
of Standards 87, 1982), the interval of the mean as by Hartung and Knapp (Statistics in Medicine 20, 2001),
never narrower than without their correction. The prediction interval, where the effect in one more cluster
would be, is that of Higgins, Thompson and Spiegelhalter (Journal of the Royal Statistical Society A 172,
2009). Fewer than three clusters are not pooled: their means are shown.

Fixed: clusters and estimators, whose numbers are published.
"""

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from math import inf, isfinite, nan, sqrt

import numpy as np
from scipy.optimize import brentq

from benchmarks.claims.claim import Claim
from benchmarks.claims.kinds import Better, Contrast, Ratio, Value
from reports.claims.readings import Reading
from reports.claims.verdicts import paired
from reports.statistical_inference import t_quantile

MIN_CLUSTERS = 3  # to estimate the variance between clusters
Array = np.ndarray


@dataclass(frozen=True, slots=True)
class RandomEffects:
    """Mean effect over clusters, with an interval, and a prediction interval for a further cluster."""

    mean: float
    low: float
    high: float
    predicted: tuple[float, float]
    between: float  # standard deviation between clusters


@dataclass(frozen=True, slots=True)
class PooledEffect:
    """Mean effects of clusters of readings with equal measures, and the random-effects mean."""

    means: tuple[float, ...]  # of the clusters; logarithms where `log`
    effect: RandomEffects | None  # None for fewer than three clusters
    typical: Claim  # one of the pooled claims, for metric and unit
    readings: int  # number of pooled readings
    log: bool  # whether effects are logarithms of ratios


def random_effects(effects: Sequence[float], errors: Sequence[float]) -> RandomEffects:
    """Return the random-effects mean of effects; ValueError for fewer than three, or an error of 0."""
    y, variance = np.asarray(effects, float), np.asarray(errors, float) ** 2
    k = len(y)
    if k < MIN_CLUSTERS or not np.isfinite(y).all() or not (np.isfinite(variance) & (variance > 0)).all():
        raise ValueError("pooling needs three finite effects with positive standard errors")
    between = _between(y, variance)
    weights = 1 / (variance + between)
    mean = float(weights @ y / weights.sum())
    ratio = float(weights @ (y - mean) ** 2) / (k - 1)  # Hartung and Knapp: 1 if the weights are right
    error = sqrt(max(1.0, ratio) / weights.sum())
    half = t_quantile(k) * error
    away = t_quantile(k - 1) * sqrt(between + error**2)
    return RandomEffects(mean, mean - half, mean + half, (mean - away, mean + away), sqrt(between))


def _between(y: Array, variance: Array) -> float:
    """Return the variance between clusters with a weighted sum of squares of k − 1 (Paule and Mandel)."""

    def excess(between: float) -> float:
        weights = 1 / (variance + between)
        mean = weights @ y / weights.sum()
        return float(weights @ (y - mean) ** 2) - (len(y) - 1)

    if excess(0.0) <= 0:
        return 0.0
    # With the variance of the effects themselves the sum of squares is below k − 1.
    return float(brentq(excess, 0.0, float(y.var(ddof=1)), xtol=1e-15))


def pooled(readings: Iterable[Reading]) -> tuple[PooledEffect, ...]:
    """Return the pooled effects of readings of the commonest measure, by leading method and clock."""
    measured = [(reading, *estimate(reading)) for reading in readings]
    measured = [row for row in measured if isfinite(row[2])]
    measures = Counter(measure(reading.claim) for reading, _, _ in measured)
    if not measures:
        return ()
    ((usual_measure, _),) = measures.most_common(1)
    parts: dict[Hashable, dict[Hashable, list[tuple[Reading, float, float]]]] = {}
    for row in measured:
        reading = row[0]
        if measure(reading.claim) == usual_measure:
            part = parts.setdefault(
                (leader(reading.claim), reading.claim.clock if logs(reading.claim) else ""), {}
            )
            part.setdefault(cluster(reading), []).append(row)
    return tuple(_pooled(list(part.values())) for part in parts.values())


def _pooled(clusters: Sequence[Sequence[tuple[Reading, float, float]]]) -> PooledEffect:
    """Return the pooled effect of clusters of readings, each with effect and standard error."""
    means = [float(np.mean([effect for _, effect, _ in inside])) for inside in clusters]
    errors = [float(np.mean([error for _, _, error in inside])) for inside in clusters]
    effect = random_effects(means, errors) if len(means) >= MIN_CLUSTERS else None
    claim = clusters[0][0][0].claim
    return PooledEffect(tuple(means), effect, claim, sum(map(len, clusters)), logs(claim))


def leader(claim: Claim) -> str:
    """Return the name of the claimed leader of a comparison; empty for other claims."""
    if not isinstance(claim, Better):
        return ""
    return str((claim.samples["a"].strategy or {}).get("name", ""))


def logs(claim: Claim) -> bool:
    """Return whether effects are pooled as logarithms: clocks at a target, counts, log contrasts."""
    if isinstance(claim, Contrast):
        return claim.log
    clocks = bool(claim.samples) and all(sample.reach is not None for sample in claim.samples.values())
    return clocks or (isinstance(claim, Value) and claim.printed is not None and not claim.shares)


def estimate(reading: Reading) -> tuple[float, float]:
    """Return the effect of a reading and the standard error; ∞ for an unknown error."""
    claim, verdict = reading.claim, reading.verdict
    if not logs(claim) or isinstance(claim, Contrast):
        return found_effect(reading), standard_error(reading)
    table = paired(claim, reading.values)[1][:, : verdict.seeds]
    seeds = table.shape[1]
    if seeds < 2 or not np.isfinite(table).all() or (table <= 0).any():
        return nan, inf
    if isinstance(claim, Value):
        values = np.log(table[0] / float(claim.printed or nan))
    elif isinstance(claim, Better):
        values = claim.sign * np.log(table[0] / table[1])
    elif len(table) == 2:
        values = np.log(table[0] / table[1])
    else:
        return nan, inf
    error = float(values.std(ddof=1)) / sqrt(seeds)
    return float(values.mean()), error or inf


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


def found_effect(reading: Reading) -> float:
    """Return the effect found; for a printed number, the difference found − printed."""
    value = nan if reading.verdict.found is None else reading.verdict.found
    claim = reading.claim
    return value - float(claim.printed) if isinstance(claim, Value) and claim.printed is not None else value


def standard_error(reading: Reading) -> float:
    """Return the standard error of an effect from the interval; ∞ if unknown, and for ratios of spreads."""
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
