"""Rules for the verdict on a claim at a single look, by kind of claim.

`verdicts.py` calls `tested` for each look at the seeds, and decides over all looks and claims of a row.

Fixed: rules and thresholds. A change may change published verdicts.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from math import ceil, inf, isclose, isnan, log2, nan, sqrt
from typing import Any, Literal

import numpy as np

from benchmarks.claims.claim import Band, Claim
from benchmarks.claims.kinds import Better, Contrast, Rank, Ratio, Same, Theorem, Value, rounding
from reports.numbers import short
from reports.statistical_inference import (
    FEWEST,
    Array,
    PairedEstimate,
    PairedMean,
    PairedMedian,
    RankEstimate,
    RatioEstimate,
    backed,
    draw_above,
    paired_effect,
    seeds_to_decide,
    spread_ratio,
    straightened,
)

Values = Mapping[str, Mapping[int, float]]  # sample → seed → number; NaN where the run diverged
Word = Literal[
    "confirmed",
    "refuted",
    "equal",
    "no effect",
    "leans for",
    "leans against",
    "compatible",
    "undecided",
    "not run",
    "reported",
]
DECIDED: frozenset[Word] = frozenset({"confirmed", "refuted", "equal", "no effect"})
OPEN: tuple[Word, ...] = ("leans for", "leans against", "compatible", "undecided")
EQUAL = 1e-9  # relative
POWER = 0.8  # of a test with the seeds said to decide
POWER_AT_EACH_OF_TWO_EDGES = 0.9  # so that both tests reject with POWER
COLLAPSED_FRACTION = 0.5  # of the usual accuracy: runs below have collapsed
USUAL_QUANTILE = 0.75  # quantile over seeds that counts as the usual accuracy


@dataclass(frozen=True, slots=True)
class Verdict:
    """The finding on a claim."""

    word: Word
    found: float | None = None  # the effect, ratio, ρ or value; None if unknown
    low: float | None = None  # lower end of the interval at the level of the look; None without an interval
    high: float | None = None
    seeds: int = 0  # of the look with this verdict; 0 for a theorem
    level: float | None = None  # of the interval
    p: float | None = None  # two-sided, of the deciding test, for the whole plan of looks
    adjusted: float | None = None  # p after Holm
    unlike: float | None = None  # p of a printed number under the law that our seeds predict
    remarks: tuple[str, ...] = ()  # further texts for readers
    more: int | None = None  # seeds that would decide, at this effect and spread
    sides: tuple[float, ...] = ()  # means of A and B of a comparison; medians where runs collapse


def _never(level: float) -> int | None:
    """Return None: no number of seeds."""
    return None


@dataclass(frozen=True, slots=True)
class Look:
    """Result for a claim at a single look, before the other claims of the row are known."""

    shown: Verdict  # the verdict if no test decides
    # Name of a test, `side` or `equal` → two-sided p-value, and the word of the verdict if significant
    tests: Mapping[str, tuple[float, Word]] = field(default_factory=dict)
    question: bytes = b""  # numbers and rule; claims with equal bytes are one question in Holm's correction
    needed: Callable[[float], int | None] = _never  # level → seeds with which a test would decide
    lean: Word | None = None  # the word if all seeds are on one side and no test decides


def paired(claim: Claim, values: Values) -> tuple[list[int], Array]:
    """Return the seeds common to all samples of a claim, and the numbers [samples, seeds]."""
    seeds = sorted(set.intersection(*(set(values.get(name, ())) for name in claim.samples)))
    return seeds, np.array([[values[name][seed] for seed in seeds] for name in claim.samples])


def tested(claim: Claim, table: Array, level: float) -> Look:
    """Return the look at a claim from samples [samples, seeds], with intervals of the given level."""
    try:
        if isinstance(claim, Better):
            return _differ(claim, table, level)
        if lost := int((~np.isfinite(table)).any(0).sum()):
            raise ValueError(_lost(lost, table.shape[1]))
        return replace(_measured(claim, table, level), question=_question(claim, table))
    except ValueError as error:
        return Look(Verdict("undecided", seeds=table.shape[1], remarks=(str(error),)))


def _measured(claim: Claim, table: Array, level: float) -> Look:
    """Return the look at a claim with finite numbers only; ValueError where no estimate is possible."""
    if isinstance(claim, Contrast):
        return _signed(claim, _contrast(claim, table), collapses(claim, table), level)
    if isinstance(claim, Ratio):
        return _divided(claim, table, level)
    if isinstance(claim, Rank):
        return _ranked(claim, table, level)
    assert isinstance(claim, Value)
    if claim.band is None:
        return printed(claim, table[0], level)
    return _held(PairedMean(table[0], level), claim.band, level)


def _differ(claim: Better, table: Array, level: float) -> Look:
    """Return the look at A − B where more is better; a diverged run is worse than any other."""
    a, b = np.where(np.isnan(table), -inf, claim.sign * table)
    with np.errstate(invalid="ignore"):
        values = a - b  # NaN where both diverged
    collapsed = collapses(claim, table)
    look = _signed(claim, values, collapsed, level)
    sides = (np.median if collapsed.any() else np.mean)(table, axis=1)
    finite_sides = () if np.isnan(sides).any() else tuple(sides.tolist())
    return replace(look, shown=replace(look.shown, sides=finite_sides), question=_pair(claim, a, b))


def means_only(claim: Claim, table: Array) -> Verdict:
    """Return the means of a comparison with too few seeds for a look, without a verdict."""
    verdict = Verdict("not run", seeds=table.shape[1])
    if not isinstance(claim, Better) or not np.isfinite(table).all():
        return verdict
    a, b = table.mean(1).tolist()
    return replace(verdict, found=claim.sign * (a - b), sides=(a, b))


def collapses(claim: Claim, table: Array) -> Array:
    """Return a mask of collapsed seeds: run diverged, target missed, or below half of a usual accuracy.

    The usual accuracy is reached by a quarter of the sample's seeds; the median will not do, since most seeds
    may collapse. An accuracy is any metric that is a share with more being better.
    """
    collapsed = ~np.isfinite(table).all(0)
    for sample, metric, row in zip(claim.samples.values(), claim.metrics, table, strict=True):
        if metric.share and metric.higher and sample.along == "last" and sample.reach is None:
            collapsed |= row < COLLAPSED_FRACTION * np.quantile(np.nan_to_num(row), USUAL_QUANTILE)
    return np.asarray(collapsed)


def _lost(lost: int, seeds: int) -> str:
    """Return the remark on seeds without a number."""
    return f"{lost} of {seeds} seeds diverged or never got there"


def _signed(claim: Better | Contrast, values: Array, collapsed: Array, level: float) -> Look:
    """Return the look at values over seeds: ahead (confirmed), behind (refuted), equal, or no effect.

    Where runs collapse, the sign test decides.
    """
    estimate: PairedEstimate = PairedMedian(values, level) if collapsed.any() else PairedMean(values, level)
    look = _held(estimate, claim.holds, level)
    if not isinstance(claim, Same):
        if not values.any():
            return Look(replace(look.shown, word="no effect", remarks=("exactly 0 in every seed",)))
        if (margin := claim.margin) is not None:
            equal = estimate.p_within(margin)
            ways = ((0.0,), (-margin, margin)) if abs(estimate.mean) < margin else ((0.0,),)
            needed = partial(_to_decide, estimate, ways)
            look = replace(look, tests={**look.tests, "equal": (equal, "equal")}, needed=needed)
    return _saying(look, collapsed) if collapsed.any() else look


def _saying(look: Look, collapsed: Array, then: str = "the sign test decides") -> Look:
    """Return the look with a remark on collapsed seeds."""
    remark = f"{collapsed.sum()} of {len(collapsed)} seeds collapse: {then}"
    return replace(look, shown=replace(look.shown, remarks=(remark,)))


def _sides(estimate: PairedEstimate | RankEstimate, band: Band) -> tuple[float, Word]:
    """Return two-sided p-value and word of the likelier side of a band, inside or outside."""
    low, high = band
    inside = [] if low is None else [estimate.p_above(low)]
    inside += [] if high is None else [estimate.p_below(high)]
    outside = [] if low is None else [estimate.p_below(low)]
    outside += [] if high is None else [estimate.p_above(high)]
    word: Word = "confirmed" if max(inside) <= min(outside) else "refuted"
    return min(1.0, 2 * min(max(inside), *outside)), word


def _held(estimate: PairedEstimate, band: Band, level: float) -> Look:
    """Return the look at an estimate against a band: inside or outside."""
    low, high = band
    if low is not None and estimate.mean <= low:
        edges = [low]
    elif high is not None and estimate.mean >= high:
        edges = [high]
    else:
        edges = [edge for edge in band if edge is not None]
    mean = None if isnan(estimate.mean) else estimate.mean
    return Look(
        Verdict("undecided", mean, estimate.low, estimate.high, estimate.n, level),
        {"side": _sides(estimate, band)},
        needed=partial(_to_decide, estimate, (edges,)),
        lean=_lean(estimate, band),
    )


def _lean(estimate: PairedEstimate, band: Band) -> Word | None:
    """Return the word for all seeds inside a band, or all on a single side outside; None otherwise."""
    low, high = (None if edge is None else estimate.differences(edge) for edge in band)
    if (low is None or (low > 0).all()) and (high is None or (high < 0).all()):
        return "leans for"
    below, above = low is not None and (low < 0).all(), high is not None and (high > 0).all()
    return "leans against" if below or above else None


def _to_decide(estimate: PairedEstimate, ways: Sequence[Sequence[float]], level: float) -> int | None:
    """Return the fewest seeds to separate the estimate from all edges of a possible verdict."""
    fewest = []
    for edges in ways:
        power = POWER if len(edges) == 1 else POWER_AT_EACH_OF_TWO_EDGES
        seeds_by_edge = [_from_edge(estimate, edge, power, level) for edge in edges]
        fewest += [max(n for n in seeds_by_edge if n is not None)] if None not in seeds_by_edge else []
    return min(fewest, default=None)


def _from_edge(estimate: PairedEstimate, edge: float, power: float, level: float) -> int | None:
    """Return the seeds to tell an estimate from an edge, by t (with skewness) and by sign flips."""
    differences = estimate.differences(edge)
    if isinstance(estimate, PairedMedian):
        alike = (differences > 0).all() or (differences < 0).all()
        return ceil(1 - log2(1 - level)) if alike else None
    effect = paired_effect(differences)
    if effect.std > 0:
        effect = replace(effect, mean=effect.std * straightened(abs(effect.mean) / effect.std))
    seeds = seeds_to_decide(effect, power, level=level)
    return None if seeds is None else max(seeds, FEWEST)


def _pair(claim: Better, a: Array, b: Array) -> bytes:
    """Return the question of two samples as bytes, regardless of the order of samples."""
    rule = (isinstance(claim, Same), claim.allowed if isinstance(claim, Same) else claim.margin)
    return repr((rule, sorted(((a - b).tolist(), (b - a).tolist())))).encode()


def _question(claim: Claim, table: Array) -> bytes:
    """Return the question of a claim as bytes: rule, coefficients and samples."""
    rule = claim.model_dump(include={"kind", "band", "margin", "log", "of", "order", "at_least", "printed"})
    return repr((rule, _times(claim).tolist(), table.tolist())).encode()


def _contrast(claim: Contrast, table: Array) -> Array:
    """Return Σ times · value, or of logarithms [seeds]."""
    if claim.log:
        if (table <= 0).any():
            raise ValueError("a value that has no logarithm")
        table = np.log(table)
    return np.asarray(_times(claim) @ table)


def _divided(claim: Ratio, table: Array, level: float) -> Look:
    """Return the look at a ratio; the sign test decides where runs collapse, except on spreads."""
    above = np.array([name.startswith("top") for name in claim.samples])
    top, bottom = (_times(claim)[side] @ table[side] for side in (above, ~above))
    spread, collapsed = claim.of == "spread", collapses(claim, table)
    if spread or not collapsed.any():
        look = _held((spread_ratio if spread else RatioEstimate)(top, bottom, level), claim.holds, level)
        return _saying(Look(look.shown), collapsed, "no test of spreads decides") if collapsed.any() else look
    if not (bottom > 0).all():
        raise ValueError("a value that nothing can be divided by")
    return _saying(_held(PairedMedian(top / bottom, level), claim.holds, level), collapsed)


def _ranked(claim: Rank, table: Array, level: float) -> Look:
    """Return the look at the order of k means over seeds, against other means or a claimed order."""
    k = len(claim.compared)
    estimate = RankEstimate(table[:k], table[k:] if claim.against else np.array(claim.order))
    if isnan(estimate.mean):
        raise ValueError("all alike: there is nothing to rank")
    verdict = Verdict("undecided", estimate.mean, seeds=estimate.n, level=level)
    return Look(verdict, {"side": _sides(estimate, claim.holds)}, needed=partial(_to_rank, estimate))


def _to_rank(estimate: RankEstimate, level: float) -> int:
    """Return the fewest seeds with a p-value able to reach a level; weaker agreement of ranks needs more."""
    seeds = estimate.n + 1
    while 2 * estimate.least_p**seeds > 1 - level:
        seeds += 1
    return seeds


def _times(claim: Claim) -> Array:
    """Return the factor of each sample in a sum [samples]."""
    return np.array([sample.times for sample in claim.samples.values()])


def printed(claim: Value, values: Array, level: float) -> Look:
    """Return the look at a printed mean of k runs against n seeds: within the margin, outside, or compatible.

    The interval of our mean is widened by the noise of theirs, √(1/n + 1/k) in place of √(1/n), and by the
    printed rounding. A single run of theirs is outside only where it would be rare among our seeds, too.
    """
    n, number, rounding = len(values), float(claim.printed or nan), claim.rounding
    effect, wider = paired_effect(values, level), sqrt(1 + n / claim.runs)
    half = max(effect.high - effect.mean, effect.mean - effect.low) * wider + rounding
    law = replace(effect, std=effect.std * wider)
    low, high = number - claim.allowed, number + claim.allowed
    inside = max(law.p_above(low + rounding), law.p_below(high - rounding))
    below, above = low - rounding, high + rounding
    less, more = law.p_below(below), law.p_above(above)
    if claim.runs == 1:
        less, more = backed(less, draw_above(below, values)), backed(more, draw_above(-above, -values))
    outside = min(less, more)
    away = max(0.0, abs(effect.mean - number) - rounding)
    unlike = min(1.0, 2 * replace(law, mean=away).p_above(0))
    verdict = Verdict(
        "compatible", effect.mean, effect.mean - half, effect.mean + half, n, level, unlike=unlike
    )
    word: Word = "confirmed" if inside <= outside else "refuted"
    return Look(
        replace(verdict, remarks=(f"printed {claim.printed}",)),
        {"side": (min(1.0, 2 * min(inside, outside)), word)},
        _question(claim, values[None, :]),
    )


def reported(values: Array) -> Verdict:
    """Return the verdict on unjudged numbers, with Student's interval of the mean; NaN and ∞ left out."""
    finite = values[np.isfinite(values)]
    lost = len(values) - len(finite)
    remarks = (_lost(lost, len(values)),) if lost else ()
    if not len(finite):
        return Verdict("reported", seeds=len(values), remarks=remarks)
    estimate = paired_effect(finite)
    return Verdict("reported", estimate.mean, estimate.low, estimate.high, len(values), 0.95, remarks=remarks)


def tested_without_runs(claim: Theorem) -> Verdict:
    """Return the verdict on a theorem from the result of a test: in a band, or as printed."""
    numbers = flat(claim.found)
    value = next(iter(numbers.values())) if len(numbers) == 1 else nan
    verdict = Verdict("refuted", None if isnan(value) else value)
    if claim.band is not None:
        low, high = claim.band
        holds = (low is None or low <= value) and (high is None or value <= high)
        return replace(verdict, word="confirmed" if holds else "refuted")
    if isinstance(claim.printed, str):
        half = rounding(claim.printed)
        near = abs(value - float(claim.printed)) <= half
        remark = f"printed {claim.printed} ± {short(half)}"
        return replace(verdict, word="confirmed" if near else "refuted", remarks=(remark,))
    printed_numbers = flat(claim.printed)
    if printed_numbers.keys() != numbers.keys():
        return replace(verdict, remarks=(f"{len(numbers)} numbers where {len(printed_numbers)} are printed",))
    wrong = [
        name for name in printed_numbers if not isclose(printed_numbers[name], numbers[name], rel_tol=EQUAL)
    ]
    if not wrong:
        return replace(verdict, word="confirmed")
    prefix = f"{wrong[0]}: " if wrong[0] else ""
    return replace(
        verdict, found=numbers[wrong[0]], remarks=(f"{prefix}printed {printed_numbers[wrong[0]]:g}",)
    )


def flat(value: Any, name: str = "") -> dict[str, float]:
    """Return numbers, truths and fractions in nested lists and mappings by path; ValueError otherwise."""
    if isinstance(value, Mapping):
        inner = ((f"{name}.{key}".lstrip("."), item) for key, item in value.items())
    elif isinstance(value, Sequence | np.ndarray) and not isinstance(value, str):
        inner = ((f"{name}[{at}]", item) for at, item in enumerate(value))
    else:
        return {name: float(Fraction(value)) if isinstance(value, str) else float(value)}
    return {path: number for key, item in inner for path, number in flat(item, key).items()}
