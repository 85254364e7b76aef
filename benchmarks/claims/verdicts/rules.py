"""Rules: the verdict on a claim at one look, by its kind; `verdicts` determines which claims are decided."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from math import inf, isnan, nan, sqrt
from typing import Any, Literal

import numpy as np

from benchmarks.claims.claim import Band, Better, Claim, Contrast, Exact, Rank, Ratio, Same, Value
from benchmarks.claims.verdicts import estimates
from benchmarks.claims.verdicts.estimates import Array, Estimate
from reports.numbers import short
from reports.statistics.paired import Effect, seeds_to_decide, student

Values = Mapping[str, Mapping[int, float]]  # sample → seed → number; NaN where the run diverged
Word = Literal["confirmed", "refuted", "equal", "no effect", "undecided", "not run", "reported"]
EQUAL = 1e-9  # relative
POWER = 0.8  # power of a test with as many seeds as would decide
BOTH = 0.9  # at each of two edges, so that both are met with POWER


@dataclass(frozen=True, slots=True)
class Verdict:
    """The finding on a claim."""

    word: Word
    found: float = nan  # the effect, ratio, ρ or value
    low: float = nan  # its interval, at the level of the look; NaN where there is none
    high: float = nan
    seeds: int = 0  # of the look that it was made at; 0 for what is computed
    level: float = nan  # of the interval
    p: float = nan  # two-sided, of the test that decides, for the whole plan of looks; NaN without a test
    adjusted: float = nan  # p after Holm
    why: str = ""  # what else a reader must know
    more: int | None = None  # seeds that would decide, at this effect and spread


def _never(level: float) -> int | None:
    """No number of seeds."""
    return None


@dataclass(frozen=True, slots=True)
class Look:
    """The result for a claim at one look, before its row is known."""

    shown: Verdict  # with the word that holds unless a test decides
    # Hypothesis, `side` or `equal` → two-sided p-value of its test, and the word if it is rejected.
    tests: Mapping[str, tuple[float, Word]] = field(default_factory=dict)
    question: bytes = b""  # numbers and rule; equal ones are one question
    needed: Callable[[float], int | None] = _never  # seeds with which a test of that level would decide


def tested(claim: Claim, table: Array, level: float) -> Look:
    """A claim at one look, from its samples [samples, seeds], with intervals of that level."""
    try:
        if isinstance(claim, Better):
            return _differ(claim, table, level)
        if lost := int((~np.isfinite(table)).any(0).sum()):
            raise ValueError(_lost(lost, table.shape[1]))
        return replace(_measured(claim, table, level), question=_question(claim, table))
    except ValueError as error:
        return Look(Verdict("undecided", seeds=table.shape[1], why=str(error)))


def _measured(claim: Claim, table: Array, level: float) -> Look:
    """A claim with finite numbers only; ValueError where they allow no estimate."""
    if isinstance(claim, Contrast):
        found = student(_contrast(claim, table), level)
        return (
            _signed(found, claim.margin, level)
            if claim.band == (0, None)
            else _held(found, claim.band, level)
        )
    if isinstance(claim, Ratio):
        return _held(_ratio(claim, table, level), claim.band, level)
    if isinstance(claim, Rank):
        return _ranked(claim, table, level)
    assert isinstance(claim, Value) and claim.band is not None
    return _held(student(table[0], level), claim.band, level)


def _differ(claim: Better, table: Array, level: float) -> Look:
    """Better and same: A − B where more is better; a diverged run is worse than any other."""
    a, b = np.where(np.isnan(table), -inf, claim.sign * table)
    endless = ~(np.isfinite(a) & np.isfinite(b))
    if endless.any():
        return Look(_endless(claim, a, b, endless))
    found = student(a - b, level)
    if isinstance(claim, Same):
        look = _held(found, (-claim.allowed, claim.allowed), level)
    else:
        look = _signed(found, claim.margin, level)
    return replace(look, question=_pair(claim, a, b))


def _endless(claim: Better, a: Array, b: Array, endless: Array) -> Verdict:
    """Decided only where in every seed the same one diverged or missed the target."""
    lost = _lost(int(endless.sum()), len(a))
    ends = set(np.sign(np.where(a > b, 1, np.where(a < b, -1, 0))[endless]))
    if not endless.all() or len(ends) > 1 or 0 in ends:
        return Verdict("undecided", seeds=len(a), why=lost)
    end = float(ends.pop()) * inf
    word: Word = "confirmed" if end > 0 and not isinstance(claim, Same) else "refuted"
    return Verdict(word, end, end, end, len(a), why=lost)


def _lost(lost: int, seeds: int) -> str:
    return f"{lost} of {seeds} seeds diverged or never got there"


def _signed(found: Effect, margin: float | None, level: float) -> Look:
    """Ahead, which confirms; behind, which refutes; equal within the margin; no effect at all."""
    look = _held(found, (0, None), level)
    if found.low == found.high == 0:
        return Look(replace(look.shown, word="no effect", why="exactly 0 in every seed"))
    if margin is None:
        return look
    equal = min(1.0, 2 * max(found.p_above(-margin), found.p_below(margin)))
    ways = ((0.0,), (-margin, margin)) if abs(found.mean) < margin else ((0.0,),)
    needed = partial(_to_decide, found, ways)
    return replace(look, tests={**look.tests, "equal": (equal, "equal")}, needed=needed)


def _held(found: Estimate, band: Band, level: float) -> Look:
    """An estimate against a band: inside it, or outside."""
    least, most = band
    inside = [] if least is None else [found.p_above(least)]
    inside += [] if most is None else [found.p_below(most)]
    outside = [] if least is None else [found.p_below(least)]
    outside += [] if most is None else [found.p_above(most)]
    if least is not None and found.mean <= least:
        edges = [least]
    elif most is not None and found.mean >= most:
        edges = [most]
    else:
        edges = [edge for edge in band if edge is not None]
    word: Word = "confirmed" if max(inside) <= min(outside) else "refuted"
    p = min(max(inside), *outside)
    return Look(
        Verdict("undecided", found.mean, found.low, found.high, found.n, level),
        {"side": (min(1.0, 2 * p), word)},
        needed=partial(_to_decide, found, (edges,)),
    )


def _to_decide(found: Estimate, ways: Sequence[Sequence[float]], level: float) -> int | None:
    """The fewest seeds that separate the estimate from all edges of one possible verdict."""
    fewest = []
    for edges in ways:
        power = POWER if len(edges) == 1 else BOTH
        each = [_from_edge(found, edge, power, level) for edge in edges]
        fewest += [max(n for n in each if n is not None)] if None not in each else []
    return min(fewest, default=None)


def _from_edge(found: Estimate, edge: float, power: float, level: float) -> int | None:
    if isinstance(found, estimates.RatioEstimate):
        return seeds_to_decide(student(found.differences(edge)), power, level=level)
    return seeds_to_decide(found, power, edge, level) if isinstance(found, Effect) else None


def _pair(claim: Better, a: Array, b: Array) -> bytes:
    """The question of two samples, regardless of their order."""
    rule = (isinstance(claim, Same), claim.allowed if isinstance(claim, Same) else claim.margin)
    return repr((rule, sorted(((a - b).tolist(), (b - a).tolist())))).encode()


def _question(claim: Claim, table: Array) -> bytes:
    """Samples, the statistic computed from them, and the coefficients."""
    rule = claim.model_dump(include={"kind", "band", "margin", "log", "of", "order", "at_least", "printed"})
    return repr((rule, _times(claim).tolist(), table.tolist())).encode()


def _contrast(claim: Contrast, table: Array) -> Array:
    if claim.log:
        if (table <= 0).any():
            raise ValueError("a value that has no logarithm")
        table = np.log(table)
    return np.asarray(_times(claim) @ table)


def _ratio(claim: Ratio, table: Array, level: float) -> Estimate:
    above = np.array([name.startswith("top") for name in claim.samples])
    top, bottom = (_times(claim)[side] @ table[side] for side in (above, ~above))
    of = estimates.VarianceRatio if claim.of == "variance" else estimates.RatioEstimate
    return of(top, bottom, level)


def _ranked(claim: Rank, table: Array, level: float) -> Look:
    k = len(claim.compared)
    found = estimates.RankEstimate(table[:k], table[k:] if claim.against else np.array(claim.order))
    if isnan(found.mean):
        raise ValueError("all alike: there is nothing to rank")
    look = _held(found, (claim.at_least, None), level)
    return replace(look, needed=partial(_to_rank, found))


def _to_rank(found: estimates.RankEstimate, level: float) -> int:
    """The fewest seeds whose smallest p-value reaches a level; weaker agreement of ranks needs more."""
    seeds = found.n + 1
    while 2 * found.least_p**seeds > 1 - level:
        seeds += 1
    return seeds


def _times(claim: Claim) -> Array:
    return np.array([sample.times for sample in claim.samples.values()])


def printed(claim: Value, values: Array) -> Look:
    """A printed mean of k runs against n seeds: a prediction interval, and a test that only refutes."""
    shown, n = reported(values), len(values)
    if not np.isfinite(values).all():
        return Look(replace(shown, word="undecided", why=_lost(int((~np.isfinite(values)).sum()), n)))
    own, number = student(values), float(claim.printed or nan)
    wider = sqrt(1 + n / claim.runs)  # √(1/n + 1/k) in place of √(1/n)
    half = (own.high - own.mean) * wider + claim.rounding
    away = max(0.0, abs(own.mean - number) - claim.rounding) / wider
    p = min(1.0, 2 * replace(own, mean=away).p_above(0))
    said = replace(shown, word="confirmed", low=own.mean - half, high=own.mean + half, level=0.95)
    return Look(
        replace(said, why=f"printed {claim.printed}"),
        {"side": (p, "refuted")},
        _question(claim, values[None, :]),
    )


def reported(values: Array) -> Verdict:
    """Numbers that are shown and not judged, with Student's interval of their mean; NaN and ∞ left out."""
    finite = values[np.isfinite(values)]
    if not len(finite):
        return Verdict("reported", seeds=len(values), why=_lost(len(values), len(values)))
    found = student(finite)
    why = _lost(len(values) - len(finite), len(values)) if len(finite) < len(values) else ""
    return Verdict("reported", found.mean, found.low, found.high, len(values), 0.95, why=why)


def computed(claim: Claim, numbers: Mapping[str, float]) -> Verdict:
    """A claim that needs no runs: equal to what is printed, or in a band; no test."""
    if not numbers:
        return Verdict("not run")
    shown = Verdict("reported", next(iter(numbers.values())) if len(numbers) == 1 else nan)
    if isinstance(claim, Exact):
        return _exact(flat(claim.printed), numbers, shown)
    if not isinstance(claim, Value):
        return shown
    if claim.band is not None:
        least, most = (
            inf * sign if edge is None else edge for sign, edge in zip((-1, 1), claim.band, strict=True)
        )
        return replace(shown, word="confirmed" if least <= shown.found <= most else "refuted")
    near = abs(shown.found - float(claim.printed or nan)) <= claim.rounding
    why = f"printed {claim.printed} ± {short(claim.rounding)}"
    return replace(shown, word="confirmed" if near else "refuted", why=why)


def _exact(said: Mapping[str, float], numbers: Mapping[str, float], shown: Verdict) -> Verdict:
    if said.keys() != numbers.keys():
        return replace(shown, word="refuted", why=f"{len(numbers)} numbers where {len(said)} are printed")
    wrong = [name for name, value in said.items() if not _equal(value, numbers[name])]
    if not wrong:
        return replace(shown, word="confirmed")
    one = wrong[0]
    where = f"{one}: " if one else ""
    return replace(shown, word="refuted", found=numbers[one], why=f"{where}printed {said[one]:g}")


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
