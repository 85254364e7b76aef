"""Verdicts on the numbers of claims, by rules fixed before any number was seen.

`readings` calls `verdicts` on the stored numbers of a paper at a scale.

A claim is judged at the looks of its plan (`Claim.plan`) until it is decided. Before the first
look it counts as *not run*: a few seeds at a larger scale do not displace the verdict at a smaller one.
The tests of a row of the list of claims share 5 % of error (Holm). An estimate over paired seeds is held
against the band that the claim names: inside it the claim is *confirmed*, outside *refuted*, across its edge
*undecided*, with the number of seeds that would decide it. It takes t, corrected for skewness, and an exact
sign-flip test at 5 % (`agreed`), which fewer than six seeds cannot pass. Where no test decides and
all seeds are on one side, the claim *leans*.

    better     A − B in the direction of the metric: ahead is confirmed, behind is refuted; within the margin
               that the entry names *equal*; 0 in every seed *no effect*
    same       A − B, band ± margin
    contrast   Σ times · value, as `better`, or a band
    ratio      of two such sums; or of spreads over seeds (Brown and Forsythe)
    rank       Spearman's ρ of means over seeds, and an exact permutation test
    value      a printed mean of k runs, ± margin: the interval of our mean over all seeds, widened to
               ± t·s·√(1/n + 1/k) and by the printed rounding, inside, outside, or *compatible*. Or a band
    theorem    the result of its test, in a band or equal to what is printed

Where runs collapse (`collapses`), the sign test takes the place of both in comparisons, contrasts
and ratios of means; ratios of spreads are not tested. Entries that apply the same rule to the same numbers
are one test.

Looks at 8, 16, 32 and 64 seeds, with a stop at the first decision, give four chances of an error. So the 5 %
are divided among the looks, in proportion to the new seeds at each: at look k of K with n₁ < … < n_K seeds,
α·(n_k − n_{k−1})/n_K (Lan and DeMets, Biometrika 70, 1983, with a linear spending function). The shares are
simply added up (Bonferroni), which is slightly conservative and leaves Student's t exact at every look.

Fixed: these rules and the looks. A change may change published verdicts.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from math import ceil, inf, isclose, isnan, log2, nan, sqrt
from typing import Any, Literal

import numpy as np

from benchmarks.claims.claim import Band, Claim
from benchmarks.claims.kinds import Better, Contrast, Rank, Ratio, Report, Same, Theorem, Value, rounding
from reports.numbers import short
from reports.statistical_inference import (
    ERROR,
    FEWEST,
    Array,
    PairedEstimate,
    PairedMean,
    PairedMedian,
    RankEstimate,
    RatioEstimate,
    backed,
    draw_above,
    holm_by_question,
    paired_effect,
    seeds_to_decide,
    simultaneous_level,
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


def share(plan: Sequence[int], look: int) -> float:
    """Return the share of the error spent at a look, counted from 0; the shares of all looks add up to 1.

    Args:
        plan: Increasing numbers of seeds, one for each look.
        look: The look.
    """
    return (plan[look] - (plan[look - 1] if look else 0)) / plan[-1]


def verdicts(claims: Mapping[str, Claim], values: Mapping[str, Values]) -> dict[str, Verdict]:
    """Return the verdicts by id, for a paper's claims at a single scale."""
    rows: dict[str, dict[str, Sequence[Look]]] = {}
    for id_, claim in claims.items():
        rows.setdefault(claim.row, {})[id_] = looks(claim, values.get(id_, {}))
    judged = {id_: verdict for all_looks in rows.values() for id_, verdict in _row(all_looks).items()}
    return {id_: _with_reason(claim, judged[id_]) for id_, claim in claims.items()}


def judge(claim: Claim, values: Values) -> Verdict:
    """Return the verdict on a single claim, judged alone."""
    return verdicts({claim.id: claim}, {claim.id: values})[claim.id]


def looks(claim: Claim, values: Values) -> list[Look]:
    """Return the result at each look allowed by the seeds; a single result where looks do not apply."""
    if isinstance(claim, Theorem):
        return [Look(tested_without_runs(claim))]
    seeds, table = paired(claim, values)
    if not seeds:
        return [Look(Verdict("not run"))]
    if isinstance(claim, Report):
        return [Look(reported(table[0]))]
    reached = [at for at, n in enumerate(claim.plan) if n <= len(seeds)]
    if not reached:
        few = f"{len(seeds)} of the {claim.plan[0]} seeds of the first look"
        return [Look(replace(means_only(claim, table), remarks=(few,)))]
    if isinstance(claim, Value) and claim.band is None:
        return [_look(claim, table, reached[-1])]
    return [_look(claim, table[:, : claim.plan[at]], at) for at in reached]


def _look(claim: Claim, table: np.ndarray, at: int) -> Look:
    """Return a look with p-values adjusted for the whole plan: the smallest over all looks is valid."""
    spent = share(claim.plan, at)
    look = tested(claim, table, 1 - ERROR * spent)
    tests = {name: (min(1.0, p / spent), word) for name, (p, word) in look.tests.items()}
    return replace(look, tests=tests, needed=partial(_seeds, look.needed, claim.plan, at))


def _seeds(needed: Callable[[float], int | None], plan: Sequence[int], at: int, level: float) -> int | None:
    """Return the seeds to decide: of the first later look with enough, or a number beyond the plan."""
    seeds = None
    for later in range(min(at + 1, len(plan) - 1), len(plan)):
        seeds = needed(1 - (1 - level) * share(plan, later))
        if seeds is None or (seeds <= plan[later] and later > at):
            return None if seeds is None else plan[later]
    return seeds if seeds is not None and seeds > plan[-1] else None


def _row(all_looks: Mapping[str, Sequence[Look]]) -> dict[str, Verdict]:
    """Return the verdicts of a row: look after look, corrected for multiple tests; decisions are final."""
    decided: dict[str, Verdict] = {}
    latest: dict[str, Look] = {}
    smallest: dict[str, dict[str, tuple[float, Word]]] = {}  # the best of all looks, by hypothesis
    adjusted: dict[tuple[bytes, str], float] = {}
    for at in range(max(map(len, all_looks.values()))):
        for id_, looks in all_looks.items():
            if at < len(looks) and id_ not in decided:
                latest[id_], best = looks[at], smallest.setdefault(id_, {})
                best |= {
                    name: min(test, best.get(name, (inf, test[1]))) for name, test in looks[at].tests.items()
                }
        questions = {
            latest[id_].question: {name: p for name, (p, _) in best.items()} for id_, best in smallest.items()
        }
        adjusted = holm_by_question(questions)
        for id_ in latest.keys() - decided.keys():
            for name, (p, word) in sorted(smallest[id_].items(), reverse=True):  # a side, before equality
                if id_ not in decided and (after := adjusted[latest[id_].question, name]) <= ERROR:
                    decided[id_] = replace(latest[id_].shown, word=word, p=p, adjusted=after)
    tests_open = len({latest[id_].question for id_, best in smallest.items() if best and id_ not in decided})
    for id_ in latest.keys() - decided.keys():
        decided[id_] = _open(latest[id_], smallest[id_], adjusted, tests_open)
    return decided


def _open(
    look: Look,
    best: Mapping[str, tuple[float, Word]],
    adjusted: Mapping[tuple[bytes, str], float],
    among: int,
) -> Verdict:
    """Return the undecided verdict, with the seeds to decide among all open tests."""
    verdict = look.shown
    if best:
        name = min(best, key=lambda name: best[name])
        verdict = replace(verdict, p=best[name][0], adjusted=adjusted[look.question, name])
    for p, word in (look.tests[name] for name in sorted(look.tests)):  # equality, before a side
        if p <= ERROR:
            but = f"{word} but for the other tests of its row"
            verdict = replace(verdict, remarks=(but, *look.shown.remarks))
    if look.lean:
        verdict = replace(verdict, word=look.lean)
    if verdict.word in {"undecided", "leans for", "leans against"} and verdict.more is None:
        verdict = replace(verdict, more=look.needed(simultaneous_level(among)))
    return verdict


def _with_reason(claim: Claim, verdict: Verdict) -> Verdict:
    """Return the verdict as pages show it, with remarks written in the claim's entry.

    Numbers of an unjudged entry are only reported; for "no effect" the entry may say what was observed.
    """
    if claim.unjudged and verdict.word != "not run":
        return replace(verdict, word="reported", p=None, adjusted=None, remarks=(claim.unjudged,), more=None)
    return replace(verdict, remarks=(claim.seen,)) if verdict.word == "no effect" and claim.seen else verdict
