"""Verdicts on the stored numbers, and words of main results, by a second plain implementation."""

from collections.abc import Iterator
from fnmatch import fnmatchcase as fnmatch
from fractions import Fraction
from functools import cache
from itertools import permutations, product
from math import isfinite
from operator import itemgetter
from typing import Any

import numpy as np
import pytest
from scipy import stats
from scipy.special import stdtr

from benchmarks.claims import stored_numbers
from benchmarks.claims.claim import SCALES, Claim
from benchmarks.claims.files import Paper
from benchmarks.claims.kinds import Better, Contrast, Rank, Ratio, Report, Same, Theorem, Value
from reports.claims.main_results import Outcome
from reports.claims.readings import THEOREM, Reading

ERROR, LOOKS = 0.05, (8, 16, 32, 64)
Word = str
Recomputed = dict[str, dict[str, dict[str, Word]]]  # paper → scale → claim → word
Chances = dict[Word, float]  # what is decided → two-sided p-value


def one_sided(values: np.ndarray, edge: float) -> tuple[float, float]:
    """p-values for a mean above the edge, and below it, by t and by sign flips."""
    return for_more(values - edge), for_more(edge - values)


def for_more(away: np.ndarray) -> float:
    """p-value for a mean above 0: t, t without skewness, and sign flips if they do not pass."""
    n = len(away)
    if np.ptp(away) <= 1e-9 * np.abs(away).max():
        p = 0.5**n if away.mean() > 0 else 1.0
    else:
        size = away.mean() / away.std(ddof=1)
        third = n * ((away - away.mean()) ** 3).sum() / ((n - 1) * (n - 2) * away.std(ddof=1) ** 3)
        skew = min(float(third), -0.5)
        cubic = size + skew * size**2 / 3 + (skew * size) ** 2 * size / 27
        hall = (max(cubic, size / 2) + skew / (6 * n)) * np.sqrt(n)
        p = float(stdtr(n - 1, -min(hall, size * np.sqrt(n))))
    if p <= 0.025 and (flips := flipped(tuple(away))) > 0.025:
        return max(p, flips)
    return float(p)


@cache
def signs(n: int) -> np.ndarray:
    """All choices of n signs up to 12, else 8,000."""
    if n <= 12:
        return np.array(list(product((1, -1), repeat=n)))
    return np.random.default_rng(n).choice((1, -1), (8_000, n))


@cache
def flipped(away: tuple[float, ...]) -> float:
    """The share of choices of signs with a sum as large."""
    return float(np.mean(signs(len(away)) @ np.abs(away) >= sum(away) * (1 - 1e-9)))


def median_by_signs(values: np.ndarray, edge: float) -> tuple[float, float]:
    """p-values for a median above the edge, and below it."""
    above, below = int((values > edge).sum()), int((values < edge).sum())
    tails = (stats.binom.sf(above - 1, above + below, 0.5), stats.binom.sf(below - 1, above + below, 0.5))
    return (float(tails[0]) if above else 1.0), (float(tails[1]) if below else 1.0)


def some_collapse(claim: Claim, rows: np.ndarray) -> bool:
    """Whether a run diverged, missed its target, or has less than half of its method's upper quartile."""
    low = [
        sample.metric == "test/accuracy" and sample.along == "last" and sample.reach is None
        and row.min() < np.quantile(row, 0.75) / 2
        for sample, row in zip(claim.samples.values(), rows, strict=True)
    ]  # fmt: skip
    return any(low) or not np.isfinite(rows).all()


def against(band: Any, p_of: Any) -> Chances:
    """Inside a band, and outside."""
    low, high = band
    inside = [p_of(low)[0]] * (low is not None) if low is not None else []
    outside = [p_of(low)[1]] if low is not None else []
    if high is not None:
        inside, outside = [*inside, p_of(high)[1]], [*outside, p_of(high)[0]]
    return {"confirmed": 2 * max(inside), "refuted": 2 * min(outside)}


def signed(values: np.ndarray, margin: float | None, test: Any) -> Chances | Word:
    """Above 0, below 0, or within the margin."""
    if not values.any():
        return "no effect"
    chances = against((0, None), lambda edge: test(values, edge))
    if margin is not None:
        chances["equal"] = 2 * max(test(values, -margin)[0], test(values, margin)[1])
    return chances


def at_a_look(claim: Claim, rows: np.ndarray) -> Chances | Word:
    """A claim at one look."""
    if isinstance(claim, Better):
        a, b = (np.where(np.isnan(row), -np.inf, claim.sign * row) for row in rows)  # diverged: the worst
        return compared(claim, rows, (a - b)[~(np.isinf(a) & np.isinf(b))])
    if not np.isfinite(rows).all() or (getattr(claim, "log", False) and (rows <= 0).any()):
        return "undecided"
    if isinstance(claim, Contrast):
        times = np.array([one.times for one in claim.terms])
        return compared(claim, rows, times @ (np.log(rows) if claim.log else rows))
    if isinstance(claim, Ratio):
        return divided(claim, rows)
    if isinstance(claim, Rank):
        return ranked(claim, rows)
    assert isinstance(claim, Value)
    return against(claim.band, lambda edge: one_sided(rows[0], edge))


def compared(claim: Better | Contrast, rows: np.ndarray, values: np.ndarray) -> Chances | Word:
    """One number a seed, by signs alone where runs collapse."""
    test = median_by_signs if some_collapse(claim, rows) else one_sided
    if isinstance(claim, Same):
        return against((-claim.allowed, claim.allowed), lambda edge: test(values, edge))
    if isinstance(claim, Contrast) and claim.band != (0, None):
        return against(claim.band, lambda edge: test(values, edge))
    return signed(values, claim.margin, test)


def divided(claim: Ratio, rows: np.ndarray) -> Chances | Word:
    """A ratio as the difference from the edge times what is below; of spreads, distances from a median."""
    times, tops = np.array([one.times for one in (*claim.top, *claim.bottom)]), len(claim.top)
    top, bottom = times[:tops] @ rows[:tops], times[tops:] @ rows[tops:]
    if claim.of == "spread":
        if not bottom.var() or some_collapse(claim, rows):
            return "undecided"
        top, bottom = abs(top - np.median(top)), abs(bottom - np.median(bottom))
    elif some_collapse(claim, rows):
        return against(claim.band, lambda edge: median_by_signs(top / bottom, edge))
    side = np.sign(bottom.mean())
    return against(claim.band, lambda edge: one_sided(side * (top - edge * bottom), 0))


def all_on_one_side(claim: Claim, rows: np.ndarray) -> Word:
    """The undecided word of seeds that are all inside of what is claimed, or all outside."""
    spread = isinstance(claim, Ratio) and claim.of == "spread"
    if isinstance(claim, Rank) or not np.isfinite(rows).all() or (spread and some_collapse(claim, rows)):
        return ""
    low, high = getattr(claim, "band", None) or (0, None)
    times = np.array([one.times for one in claim.samples.values()])
    if isinstance(claim, Same):
        low, high = -claim.allowed, claim.allowed
    if isinstance(claim, Better):
        values = claim.sign * (rows[0] - rows[1])
    elif isinstance(claim, Contrast):
        values = times @ (np.log(rows) if claim.log else rows)
    elif isinstance(claim, Ratio):
        tops = len(claim.top)
        top, bottom = times[:tops] @ rows[:tops], times[tops:] @ rows[tops:]
        if claim.of == "spread":
            top, bottom = abs(top - np.median(top)), abs(bottom - np.median(bottom))
        with np.errstate(divide="ignore", invalid="ignore"):
            values = top / bottom
    else:
        values = rows[0]
    inside = (values > (-np.inf if low is None else low)) & (values < (np.inf if high is None else high))
    below, above = values < (-np.inf if low is None else low), values > (np.inf if high is None else high)
    return "leans for" if inside.all() else "leans against" if below.all() or above.all() else ""


def ranked(claim: Rank, rows: np.ndarray) -> Chances:
    """Spearman's ρ of means, and the permutations of each seed's ranks: their sums added up one by one."""
    k, n = len(claim.compared), rows.shape[1]
    others = rows[k:] if claim.against else np.repeat(np.array(claim.order)[:, None], n, 1)
    rho = stats.spearmanr(rows[:k].mean(1), others.mean(1)).statistic
    law, seen = {0.0: 1.0}, 0.0
    for seed in range(n):
        one, other = stats.rankdata(rows[:k, seed]), stats.rankdata(others[:, seed])
        seen += float(one @ other)
        sums, counts = np.unique([np.dot(order, other) for order in permutations(one)], return_counts=True)
        each = zip(sums, counts / counts.sum(), strict=True)
        fresh: dict[float, float] = {}
        for (total, p), (more, q) in product(law.items(), list(each)):
            fresh[total + more] = fresh.get(total + more, 0.0) + p * q
        law = fresh
    above = sum(p for total, p in law.items() if total >= seen)
    below = sum(p for total, p in law.items() if total <= seen)
    high = rho >= claim.at_least
    return {"confirmed": 2 * above if high else 2.0, "refuted": 2.0 if high else 2 * below}


def printed(claim: Value, values: np.ndarray) -> Chances:
    """Ours within the margin of theirs, or outside, at the spread of the mean of k runs and of n seeds.

    One of theirs is outside only if it is rarer than 2.5 % among ours, itself counted.
    """
    n, number, rounding = len(values), float(claim.printed or "nan"), claim.rounding
    error = values.std(ddof=1) * np.sqrt(1 / n + 1 / claim.runs)
    away, margin = abs(values.mean() - number), 0.005 if claim.margin is None else claim.margin
    inside = stats.t.sf((margin - rounding - away) / error, n - 1)
    outside = stats.t.sf((away - margin - rounding) / error, n - 1)
    if claim.runs == 1:
        towards = values if number > values.mean() else 2 * number - values  # theirs lies above ours
        alike = (1 + sum(value >= number - margin - rounding for value in towards)) / (n + 1)
        outside = max(outside, alike) if alike > 0.025 else outside
    return {"confirmed": 2 * inside, "refuted": 2 * outside}


def words(paper: Paper, scale: str) -> dict[str, Word]:
    """The words of all claims of a paper that need runs."""
    stored = stored_numbers.values(stored_numbers.read(stored_numbers.path(paper.name, scale)))
    rows: dict[str, list[Claim]] = {}
    for claim in paper.claims.values():
        if scale in paper.scales(claim):
            rows.setdefault(claim.row, []).append(claim)
    return {id_: word for row in rows.values() for id_, word in of_row(row, stored)}


def of_row(row: list[Claim], stored: dict[str, dict[str, dict[int, float]]]) -> Iterator[tuple[str, Word]]:
    """The words of a row: looks in turn, corrected for what asks the same of the same numbers once."""
    tables = {claim.id: table_of(claim, stored.get(claim.id, {})) for claim in row}
    word: dict[str, Word] = {claim.id: first_word(claim, tables[claim.id]) for claim in row}
    least: dict[str, dict[str, tuple[float, Word]]] = {}
    asked: dict[str, Any] = {}
    final: set[str] = set()
    for at in range(max(len(claim.looks or LOOKS) for claim in row)):
        for claim in row:
            if claim.id not in final and word[claim.id] in {"undecided", "no effect"}:
                word[claim.id] = look(claim, tables[claim.id], at, least, asked) or word[claim.id]
        adjusted = corrected({asked[id_]: best for id_, best in least.items()})
        for id_, best in least.items():
            passing = [
                side for side in ("side", "equal") if side in best and adjusted[asked[id_], side] <= ERROR
            ]
            if passing and id_ not in final:
                word[id_] = best[passing[0]][1]
                final.add(id_)
    for claim in row:
        is_value = isinstance(claim, Value) and claim.band is None
        if claim.id not in final and word[claim.id] == "undecided" and is_value:
            word[claim.id] = "compatible"
        if claim.id not in final and word[claim.id] == "undecided":
            reached = [n for n in claim.looks or LOOKS if n <= tables[claim.id].shape[1]]
            word[claim.id] = all_on_one_side(claim, tables[claim.id][:, : reached[-1]]) or "undecided"
        if claim.unjudged and word[claim.id] != "not run":
            word[claim.id] = "reported"
        yield claim.id, word[claim.id]


def table_of(claim: Claim, found: dict[str, dict[int, float]]) -> np.ndarray:
    """Numbers [samples, seeds] of the seeds that all samples have."""
    seeds = sorted(set.intersection(*(set(found.get(name, {})) for name in claim.samples)))
    return np.array([[found[name][seed] for seed in seeds] for name in claim.samples])


def first_word(claim: Claim, table: np.ndarray) -> Word:
    """What holds before any look: whether there are seeds enough for one."""
    if table.shape[1] < (1 if isinstance(claim, Report) else (claim.looks or LOOKS)[0]):
        return "not run"
    return "reported" if isinstance(claim, Report) else "undecided"


def look(claim: Claim, table: np.ndarray, at: int, least: dict[str, Any], asked: dict[str, Any]) -> Word:
    """One look at a claim: its p-values are noted; the word that holds without a test, if there is a look."""
    plan, id_ = claim.looks or LOOKS, claim.id
    if at >= len(plan) or table.shape[1] < plan[at]:
        return ""
    seen = table[:, : plan[at]]
    if isinstance(claim, Value) and claim.band is None:
        if at:
            return ""
        at = sum(n <= table.shape[1] for n in plan) - 1  # all seeds at once, at the last look that they reach
        seen, found = table, printed(claim, table[0])
    else:
        found = at_a_look(claim, seen)
    asked[id_] = question(claim, seen)
    if isinstance(found, str):
        return found
    share = (plan[at] - (plan[at - 1] if at else 0)) / plan[-1]
    best = least.setdefault(id_, {})
    for what, p in found.items():
        side = "equal" if what == "equal" else "side"
        best[side] = min((min(1.0, p / share), what), best.get(side, (np.inf, "")))
    return "undecided"


def corrected(tests: dict[Any, dict[str, tuple[float, Word]]]) -> dict[Any, float]:
    """p-values in rising order, times the questions of which something is still open."""
    rising = sorted(
        ((p, key, side) for key, of in tests.items() for side, (p, _) in of.items()), key=itemgetter(0)
    )
    adjusted, so_far = {}, 0.0
    for rank, (p, key, side) in enumerate(rising):
        so_far = max(so_far, p * len({other for _, other, _ in rising[rank:]}))
        adjusted[key, side] = so_far
    return adjusted


def question(claim: Claim, table: np.ndarray) -> Any:
    """What is asked of which numbers; two samples are the same whichever comes first."""
    if isinstance(claim, Better):
        margin = claim.allowed if isinstance(claim, Same) else claim.margin
        gap = table[0] - table[1]
        return claim.kind == "same", margin, frozenset((tuple(gap), tuple(0.0 - gap)))
    rules = ("band", "margin", "log", "of", "order", "at_least", "printed")
    rule = tuple(str(getattr(claim, name, None)) for name in rules)
    return claim.kind, rule, tuple(one.times for one in claim.samples.values()), table.tobytes()


@pytest.fixture(scope="module")
def recomputed(all_papers: dict[str, Paper]) -> Recomputed:
    """The words of all claims by paper and scale."""
    return {
        name: {scale: words(paper, scale) for scale in SCALES} | {THEOREM: theorem_words(paper)}
        for name, paper in all_papers.items()
    }


@pytest.mark.parametrize("name", ["ace", "anarchic", "asyncsgd", "fraboni"])
@pytest.mark.parametrize("scale", [*SCALES, THEOREM])
def test_verdicts_are_those_of_the_plain_rules(
    recomputed: Recomputed, all_readings: list[Reading], name: str, scale: str
) -> None:
    expected = recomputed[name][scale]
    found = {one.claim.id: one.word for one in all_readings if (one.paper.name, one.scale) == (name, scale)}
    assert {id_: (word, expected[id_]) for id_, word in found.items() if word != expected[id_]} == {}
    assert found.keys() == expected.keys()


def theorem_words(paper: Paper) -> dict[str, Word]:
    """The words of theorems: within the band, or as printed."""
    theorems = {id_: claim for id_, claim in paper.claims.items() if isinstance(claim, Theorem)}
    return {id_: "reported" if claim.unjudged else holds(claim) for id_, claim in theorems.items()}


def holds(claim: Theorem) -> Word:
    """Whether results are as claimed: in the band, within half a printed digit, or exactly equal."""
    numbers = listed(claim.found)
    if claim.printed is not None and not isinstance(claim.printed, str):
        wanted = listed(claim.printed)
        right = len(wanted) == len(numbers) and np.allclose(numbers, wanted, rtol=1e-9, atol=0)
    else:
        (number,) = numbers
        low, high = claim.band or (None, None)
        if claim.printed is not None:
            digits, _, power = claim.printed.partition("e")
            half = 0.5 * 10.0 ** (int(power or 0) - len(digits.partition(".")[2]))
            low, high = float(claim.printed) - half, float(claim.printed) + half
        right = (low is None or number >= low) and (high is None or number <= high)
    return "confirmed" if right else "refuted"


def listed(value: Any) -> list[float]:
    """A number or truth, or those of a list or mapping; a text is a fraction."""
    several = value.values() if isinstance(value, dict) else value if isinstance(value, list) else [value]
    return [float(Fraction(one)) if isinstance(one, str) else float(one) for one in several]


def of_readings(paper: Paper, by_scale: dict[str, dict[str, Word]], patterns: tuple[str, ...]) -> Word:
    """The word of a main result, from the words above."""
    chosen = [id_ for id_ in paper.claims if any(fnmatch(id_, pattern) for pattern in patterns)]
    tried = [(paper.claims[id_], of[id_]) for of in by_scale.values() for id_ in chosen if id_ in of]
    if all(word == "not run" for _, word in tried):
        return "not run"
    counted = [
        word
        for claim, word in tried
        if not (claim.twin or claim.outside_conditions) and claim.stated_by == "paper"
    ]
    yes = counted.count("confirmed")
    no = sum(word in {"refuted", "equal", "no effect"} for word in counted)
    if not yes + no:
        return "undecided"
    if 5 * yes >= 4 * (yes + no):
        return "mostly holds" if no or "leans against" in counted else "holds"
    if 5 * yes <= yes + no:
        return "mostly fails" if yes or "leans for" in counted else "fails"
    return "mixed"


@pytest.mark.parametrize("name", ["ace", "anarchic", "asyncsgd", "fraboni"])
def test_words_of_main_results_are_those_of_the_plain_rule(
    recomputed: Recomputed, all_papers: dict[str, Paper], main_results: list[Outcome], name: str
) -> None:
    found = {one.result.id: one.word for one in main_results if one.paper.name == name}
    assert found == {
        id_: of_readings(all_papers[name], recomputed[name], one.readings)
        for id_, one in all_papers[name].main.items()
    }


def test_there_is_something_to_recompute(all_papers: dict[str, Paper]) -> None:
    numbers = [
        one
        for name in all_papers
        for scale in SCALES
        for one in stored_numbers.read(stored_numbers.path(name, scale))
    ]
    assert len({one.claim for one in numbers}) > 300
    assert sum(isfinite(one.value) for one in numbers) > 2500
