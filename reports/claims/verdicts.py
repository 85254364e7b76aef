"""Verdicts: what the numbers of a claim come to, by rules that were fixed before any of them was seen.

An estimate with its 95 % interval over paired seeds (`paired` and `estimates` in `reports/statistics/`) is
held against the band that the claim names. Inside: *confirmed*; outside: *refuted*; across its edge:
*undecided*, with the number of seeds that would decide it. p-values are adjusted for the number of claims of
a paper at one scale (Holm): what an interval alone decides, and the adjusted p-value does not, is undecided.

    better     A − B in the direction of the metric, band (0, ∞)
    same       A − B, band ± margin
    contrast   Σ times · value, band (0, ∞) unless given
    ratio      of two such sums; or of variances over seeds
    rank       Spearman's ρ of means over seeds
    value      |mean − printed| ≤ the larger of the printed precision and twice the standard error, 1.5 points
               where the paper ran one seed; no test. Or the mean, and a band
    exact      equal within 1e-9 of its size; no test
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import inf, isnan, nan, sqrt
from typing import Any, Literal

import numpy as np

from benchmarks.claims import SINGLE_RUN, Band, Better, Claim, Contrast, Exact, Rank, Ratio, Same, Value
from fl_core.words import many
from reports.statistics import estimates
from reports.statistics.estimates import Array, Estimate
from reports.statistics.paired import LEVEL, Effect, effect, holm, seeds_to_decide

Values = Mapping[str, Mapping[int, float]]  # sample → seed → number; NaN where the run diverged
Word = Literal["confirmed", "refuted", "undecided", "not run", "reported"]
EQUAL = 1e-9  # relative


@dataclass(frozen=True, slots=True)
class Verdict:
    """What was found of a claim."""

    word: Word
    found: float = nan  # the effect, ratio, ρ or value
    low: float = nan  # its 95 % interval; NaN where there is none
    high: float = nan
    seeds: int = 0  # 0 for what is computed
    p: float = nan  # two-sided, of the test that decides; NaN without a test
    adjusted: float = nan  # p after Holm
    why: str = ""  # what a reader must know besides
    short_of: Effect | None = None  # what is between the estimate and the nearest edge of the band
    more: int | None = None  # seeds that would decide, at this effect and spread


def verdicts(claims: Mapping[str, Claim], values: Mapping[str, Values]) -> dict[str, Verdict]:
    """The verdicts of a paper's claims at one scale, by id, after Holm's correction."""
    found = {id_: judge(claim, values.get(id_, {})) for id_, claim in claims.items()}
    tested = [id_ for id_, one in found.items() if not isnan(one.p)]
    for id_, adjusted in zip(tested, holm([found[id_].p for id_ in tested]), strict=True):
        found[id_] = _corrected(found[id_], adjusted)
    still_open = sum(found[id_].word == "undecided" for id_ in tested)
    return {id_: _with_more(one, still_open) for id_, one in found.items()}


def judge(claim: Claim, values: Values) -> Verdict:
    """The verdict of one claim by itself."""
    if claim.computed is not None:
        return _computed(claim, {name: number for name, of in values.items() for number in of.values()})
    names = list(claim.samples)
    seeds = sorted(set.intersection(*(set(values.get(name, ())) for name in names)))
    if not seeds:
        return Verdict("not run")
    table = np.array([[values[name][seed] for seed in seeds] for name in names])  # [samples, seeds]
    return _differ(claim, table) if isinstance(claim, Better) else _finite(claim, table)


def _finite(claim: Claim, table: Array) -> Verdict:
    """Whatever cannot be judged where a value is infinite or missing."""
    lost = int((~np.isfinite(table)).any(0).sum())
    if lost:
        return Verdict("undecided", seeds=table.shape[1], why=_lost(lost, table.shape[1]))
    try:
        if isinstance(claim, Contrast):
            return within(_contrast(claim, table), claim.band)
        if isinstance(claim, Ratio):
            return within(_ratio(claim, table), claim.band)
        if isinstance(claim, Rank):
            return within(_rank(claim, table), (claim.at_least, None), closed=True)
    except ValueError as error:
        return Verdict("undecided", seeds=table.shape[1], why=str(error))
    return _value(claim, table[0]) if isinstance(claim, Value) else _shown(table[0])


def within(found: Estimate, band: Band, *, closed: bool = False) -> Verdict:
    """An estimate against a band: inside, outside, or across its edge; `closed`: the edge is inside."""
    least, most = band
    inside, outside = [], []  # one-sided p-values
    if least is not None:
        inside.append(found.p_above(least))
        outside.append(found.p_below(least))
    if most is not None:
        inside.append(found.p_below(most))
        outside.append(found.p_above(most))
    nearest = min((edge for edge in band if edge is not None), key=lambda edge: abs(found.mean - edge))
    return Verdict(
        _word(found.low, found.high, band, closed=closed),
        found.mean,
        found.low,
        found.high,
        found.n,
        min(1.0, 2 * min(max(inside), *outside)),
        why="" if closed or not found.low == found.high == nearest else f"exactly {nearest:g} in every seed",
        short_of=_short_of(found, nearest),
    )


def _word(low: float, high: float, band: Band, *, closed: bool = False) -> Word:
    least, most = (-inf if band[0] is None else band[0]), (inf if band[1] is None else band[1])
    above = low > least or least == -inf or (closed and low == least)
    below = high < most or most == inf or (closed and high == most)
    if above and below:
        return "confirmed"
    return "refuted" if high < least or low > most else "undecided"


def _short_of(found: Estimate, edge: float) -> Effect | None:
    """The distance from an edge as an effect; None where the estimate is none of means."""
    if isinstance(found, estimates.Ratio):
        return effect(found.differences(edge))
    return replace(found, mean=found.mean - edge) if isinstance(found, Effect) else None


def _differ(claim: Better, table: Array) -> Verdict:
    """Better and same: A − B where more is better; what diverged is worse than anything."""
    a, b = np.where(np.isnan(table), -inf, claim.sign * table)
    band: Band = (-claim.allowed, claim.allowed) if isinstance(claim, Same) else (0, None)
    endless = ~(np.isfinite(a) & np.isfinite(b))
    if not endless.any():
        return within(effect((a - b).tolist()), band)
    seeds, lost = len(a), _lost(int(endless.sum()), len(a))
    ends = set(np.sign(np.where(a > b, 1, np.where(a < b, -1, 0))[endless]))
    if seeds == 1 or not endless.all() or len(ends) > 1 or 0 in ends:
        return Verdict("undecided", seeds=seeds, why=lost)
    end = float(ends.pop()) * inf  # in every seed, one of them diverged or never got there
    return Verdict(_word(end, end, band), end, end, end, seeds, why=lost)


def _lost(lost: int, seeds: int) -> str:
    return f"{lost} of {many(seeds, 'seed')} diverged or never got there"


def _contrast(claim: Contrast, table: Array) -> Estimate:
    if claim.log:
        if (table <= 0).any():
            raise ValueError("a value that has no logarithm")
        table = np.log(table)
    return effect((_times(claim) @ table).tolist())


def _ratio(claim: Ratio, table: Array) -> Estimate:
    above = np.array([name.startswith("top") for name in claim.samples])
    top, bottom = (_times(claim)[side] @ table[side] for side in (above, ~above))
    return estimates.VarianceRatio(top, bottom) if claim.of == "variance" else estimates.Ratio(top, bottom)


def _rank(claim: Rank, table: Array) -> Estimate:
    k = len(claim.compared)
    found = estimates.Rank(table[:k], table[k:] if claim.against else np.array(claim.order))
    if isnan(found.mean):
        raise ValueError("all alike: there is nothing to rank")
    return found


def _times(claim: Claim) -> Array:
    return np.array([sample.times for sample in claim.samples.values()])


def _value(claim: Value, values: Array) -> Verdict:
    if claim.band is not None:
        return within(effect(values.tolist()), claim.band)
    shown = _shown(values)
    if len(values) < 2:
        return replace(shown, word="undecided", why="one seed says nothing of its spread")
    error = float(values.std(ddof=1)) / sqrt(len(values))
    return _printed(claim, shown, max(claim.precision, 2 * error, SINGLE_RUN if claim.single_run else 0.0))


def _printed(claim: Value, shown: Verdict, tolerance: float) -> Verdict:
    near = abs(shown.found - float(claim.printed or nan)) <= tolerance
    return replace(
        shown, word="confirmed" if near else "refuted", why=f"printed {claim.printed} ± {tolerance:.2g}"
    )


def _shown(values: Array) -> Verdict:
    found = effect(values.tolist())
    return Verdict("reported", found.mean, found.low, found.high, found.n)


def _computed(claim: Claim, numbers: Mapping[str, float]) -> Verdict:
    if not numbers:
        return Verdict("not run")
    shown = Verdict("reported", next(iter(numbers.values())) if len(numbers) == 1 else nan)
    if isinstance(claim, Exact):
        return _exact(flat(claim.printed), numbers, shown)
    if not isinstance(claim, Value):
        return shown
    if claim.band is not None:
        return replace(shown, word=_word(shown.found, shown.found, claim.band, closed=True))
    return _printed(claim, shown, claim.precision)


def _exact(printed: Mapping[str, float], numbers: Mapping[str, float], shown: Verdict) -> Verdict:
    if printed.keys() != numbers.keys():
        return replace(shown, word="refuted", why=f"{len(numbers)} numbers where {len(printed)} are printed")
    wrong = [name for name, value in printed.items() if not _equal(value, numbers[name])]
    if not wrong:
        return replace(shown, word="confirmed")
    one = wrong[0]
    where = f"{one}: " if one else ""
    return replace(shown, word="refuted", found=numbers[one], why=f"{where}printed {printed[one]:g}")


def _equal(one: float, other: float) -> bool:
    return one == other or abs(one - other) <= EQUAL * max(abs(one), abs(other))


def flat(value: Any, name: str = "") -> dict[str, float]:
    """Numbers, truths and fractions in lists and mappings, by their path; ValueError for anything else."""
    if isinstance(value, Mapping):
        inner = ((f"{name}.{key}".lstrip("."), one) for key, one in value.items())
    elif isinstance(value, Sequence | np.ndarray) and not isinstance(value, str):
        inner = ((f"{name}[{at}]", one) for at, one in enumerate(value))
    else:
        return {name: float(Fraction(value)) if isinstance(value, str) else float(value)}
    return {path: number for key, one in inner for path, number in flat(one, key).items()}


def _corrected(one: Verdict, adjusted: float) -> Verdict:
    if one.word in {"confirmed", "refuted"} and adjusted >= 1 - LEVEL:
        return replace(one, word="undecided", adjusted=adjusted, why=f"{one.word} but for Holm’s correction")
    return replace(one, adjusted=adjusted)


def _with_more(one: Verdict, still_open: int) -> Verdict:
    """With the seeds that would decide it, among as many claims as are open."""
    if one.word != "undecided" or one.short_of is None:
        return one
    return replace(one, more=seeds_to_decide(one.short_of, level=1 - (1 - LEVEL) / still_open))
