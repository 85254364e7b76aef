"""Comparisons of two strategies in words."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import isinf

from fl_core.text import many
from reports import numbers
from reports.records.measures import Measure
from reports.statistics.compare import Comparison
from reports.statistics.paired import LEVEL, seeds_to_decide


def answer(found: Comparison, first: str, second: str) -> Iterator[str]:
    """A comparison in a sentence or two, and the runs left out; one line each."""
    if not found.pairs:
        yield "They have no seed in common that both completed."
    elif found.effect is None:
        yield from _who_is_first(found, first, second)
    else:
        yield from _who_is_ahead(found, first, second)
    if found.remarks:
        yield f"Note: {'; '.join(found.remarks)}."


def _who_is_ahead(found: Comparison, first: str, second: str) -> Iterator[str]:
    """From the mean of paired differences."""
    effect = found.effect
    assert effect is not None
    leads = effect.mean >= 0
    leader, other = (first, second) if leads else (second, first)
    low, high = (effect.low, effect.high) if leads else (-effect.high, -effect.low)
    size = abs(effect.mean)
    write = _differences(found.measure, max(size, *(abs(end) for end in (low, high) if not isinf(end)), 0.0))
    amount = (
        f"{write(size)}{_unit(found)} [{write(low)}, {write(high)}], {many(effect.n, 'seed')}, {_p(found)}"
    )
    how = "ahead of" if found.measure.higher is not None else "above"
    if found.decided:
        yield f"{leader} is {how} {other} by {amount}."
    elif size:
        yield f"Undecided: {leader} is {how} {other} by {amount}{_needed(found)}."
    else:
        yield f"They are equal: {amount}."
    one, two = found.means
    yield f"{first} {_level(found.measure, one)}, {second} {_level(found.measure, two)}."


def _who_is_first(found: Comparison, first: str, second: str) -> Iterator[str]:
    """From medians and counts: a target was not always met, or a value is not finite."""
    wins, (one, two), (met, also) = found.wins, found.medians, found.met
    n = len(found.pairs)
    leader, other, ahead = (first, second, wins[0]) if wins[0] >= wins[1] else (second, first, wins[1])
    what = f"meets {found.target} before" if found.target else "is ahead of"
    if not any(wins):
        yield f"Neither is ahead on any of {many(n, 'seed')}."
    else:
        open_ = "" if found.decided else "Undecided: "
        yield f"{open_}{leader} {what} {other} on {ahead} of {many(n, 'seed')}, {_p(found)} (sign test)."
    write = numbers.count if found.measure.name == "updates_to_target" else lambda x: numbers.number(x, 3)
    yield (
        f"Median {found.measure.title}: {first} {write(one)} ({met} of {many(n, 'seed')}), "
        f"{second} {write(two)} ({also} of {n})."
    )


def _p(found: Comparison) -> str:
    return "p < 0.001" if found.p < 0.001 else f"p = {numbers.number(found.p, 2)}"


def _needed(found: Comparison) -> str:
    """How many seeds would decide if the estimated difference is the true one."""
    assert found.effect is not None
    if found.effect.n < 2:
        return "; one seed shows nothing of its spread"
    seeds = seeds_to_decide(found.effect, level=1 - (1 - LEVEL) / found.tests)
    return "" if seeds is None else f"; about {max(seeds, found.effect.n + 1):,} seeds would decide"


def _unit(found: Comparison) -> str:
    if found.target:
        return f" {found.measure.title}"
    return " points" if found.measure.share else ""


def _level(of: Measure, value: float) -> str:
    return f"{of.text(value)} %" if of.share else numbers.number(value)


def _differences(of: Measure, largest: float) -> Callable[[float], str]:
    """How to write differences of that size, all with as many decimals; shares in points of a per cent."""
    scale = 100.0 if of.share else 1.0
    leading = numbers.number(scale * largest, 2)
    decimals = max(len(leading.partition(".")[2]), int(of.share)) if "e" not in leading else None

    def write(value: float) -> str:
        if isinf(value) or decimals is None:
            return numbers.number(scale * value, 2)
        return numbers.minus(f"{scale * value:,.{decimals}f}")

    return write
