"""Comparisons of two strategies in words: the output of `asyncfl compare` for each scenario.

The numbers are computed in `reports/comparisons.py`.

Free: wording.
"""

from collections.abc import Callable, Iterator
from math import isfinite, isinf

from fl_core.text import many
from reports import numbers
from reports.comparisons import Comparison
from reports.numbers import Measure
from reports.statistical_inference import Effect, seeds_to_decide, simultaneous_level


def answer(comparison: Comparison, first: str, second: str) -> Iterator[str]:
    """Yield a comparison in words and the runs left out, line by line."""
    if not comparison.pairs:
        yield "They have no seed in common that both completed."
    elif comparison.effect is None:
        yield from _who_is_first(comparison, first, second)
    else:
        yield from _who_is_ahead(comparison, comparison.effect, first, second)
    if comparison.target and comparison.pairs and any(comparison.met) and isfinite(comparison.step):
        step = f"{numbers.moment(comparison.step)} {comparison.measure.title}"
        yield f"Evaluations are {step} apart: a target was met up to that much earlier."
    if comparison.remarks:
        yield f"Note: {'; '.join(comparison.remarks)}."


def _who_is_ahead(comparison: Comparison, effect: Effect, first: str, second: str) -> Iterator[str]:
    """Yield the answer from the mean of paired differences."""
    metric, leads = comparison.measure, effect.mean >= 0
    leader, follower = (first, second) if leads else (second, first)
    size, ends = abs(effect.mean), (effect.low, effect.high)
    low, high = ends if leads else (-effect.high, -effect.low)
    write = _differences(metric, max(size, *(abs(end) for end in (low, high) if not isinf(end)), 0.0))
    unit = f" {metric.title}" if comparison.target else " points" if metric.share else ""
    seeds = many(effect.n, "seed")
    interval = numbers.interval(low, high, write)
    amount = f"{write(size)}{unit} {interval}, {seeds}, {numbers.p_value(comparison.p)}"
    ahead = f"{leader} is {'ahead of' if metric.higher is not None else 'above'} {follower} by {amount}"
    if comparison.decided:
        yield f"{ahead}."
    elif size:
        yield f"Undecided: {ahead}{_needed(comparison, effect)}."
    else:
        yield f"They are equal: {amount}."
    means = [metric.with_unit(mean) for mean in comparison.means]
    yield f"Mean: {first} {means[0]}, {second} {means[1]}."


def _who_is_first(comparison: Comparison, first: str, second: str) -> Iterator[str]:
    """Yield the answer from medians and counts, for targets not always met or values not finite."""
    wins, medians, met = comparison.wins, comparison.medians, comparison.met
    seeds = many(len(comparison.pairs), "seed")
    leads, test = wins[0] >= wins[1], "sign test"
    if comparison.restricted:
        leads, test = comparison.restricted.mean >= 0, "times cut where a run that never met it ended"
    leader, follower = (first, second) if leads else (second, first)
    verb = f"meets {comparison.target} before" if comparison.target else "is ahead of"
    if not any(wins):
        yield f"Neither is ahead on any of {seeds}."
    else:
        undecided = "" if comparison.decided else "Undecided: "
        on = f"on {wins[not leads]} of {seeds}"
        yield f"{undecided}{leader} {verb} {follower} {on}, {numbers.p_value(comparison.p)} ({test})."
    texts = [numbers.moment(median) for median in medians]
    yield (
        f"Median {comparison.measure.title}: {first} {texts[0]} ({met[0]} of {seeds}), "
        f"{second} {texts[1]} ({met[1]} of {len(comparison.pairs)})."
    )


def _needed(comparison: Comparison, effect: Effect) -> str:
    """Return in words the number of seeds to decide, if the estimated difference is the true difference."""
    if effect.n < 2:
        return "; one seed shows nothing of its spread"
    seeds = seeds_to_decide(effect, level=simultaneous_level(comparison.tests))
    if seeds is None:
        return ""
    return f"; {numbers.about_seeds(max(seeds, effect.n + 1))} would decide"


def _differences(metric: Measure, largest: float) -> Callable[[float], str]:
    """Return a function to write differences up to a size with equal decimals; shares in points."""
    scale = 100.0 if metric.share else 1.0
    leading = numbers.number(scale * largest, 2)
    decimals = max(len(leading.partition(".")[2]), int(metric.share)) if "e" not in leading else None

    def write(value: float) -> str:
        if isinf(value) or decimals is None:
            return numbers.number(scale * value, 2)
        return numbers.minus(f"{scale * value:,.{decimals}f}")

    return write
