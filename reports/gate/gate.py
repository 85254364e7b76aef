"""The gate: what got worse since a baseline was recorded, and whether that is more than chance.

Final metric and updates to the target (of these the logarithm) are compared as means over seeds. A mean may
get worse by

    4 · s · √(2/n)

four standard errors of a difference between two means of n seeds each. s is the standard deviation over seeds
in the baseline: the strategy's own, but not less than the median one of all strategies in the scenario, since
a few seeds estimate a spread poorly. An unchanged build has the same seeds and differs by rounding only.

Schedules are compared exactly, on every machine: they do not depend on sums of floats. Losses, the golden
values, must agree but for rounding, which another processor, library or order of summation changes (GOLDEN).
Speed is a ratio to the yardstick measured beside it (SLOWER).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import exp, isfinite, log, sqrt
from statistics import median
from typing import Literal

import numpy as np

from fl_core.schema import Status
from fl_core.text import many
from reports.gate.baseline import Baseline, Goal, Outcome
from reports.numbers import count, minus, number
from reports.records.measures import Measure

ERRORS = 4.0  # standard errors by which a mean may get worse
# Relative. Ten times the largest difference of all losses of suite ci (float32), between AVX-512, AVX2
# and no vector instructions (2.6e-7; in float64 2.4e-16; stacked jobs none); schedules never differed.
GOLDEN = 3e-6
SLOWER = 1.5  # times as long as recorded, beside the yardstick

SCHEDULE, GOLDEN_VALUES, SPEED = "Schedule", "Golden values", "Speed ÷ yardstick"
STALLS = "Stalled runs"

Verdict = Literal["same", "better", "worse", "changed"]
Cell = tuple[str, str]  # scenario, strategy


@dataclass(frozen=True, slots=True)
class GateCheck:
    """One comparison, as text."""

    scenario: str  # empty for values measured once per strategy
    strategy: str
    what: str
    verdict: Verdict
    before: str = ""
    now: str = ""
    change: str = ""
    allowed: str = ""

    @property
    def failed(self) -> bool:
        """Whether the build must not pass."""
        return self.verdict in {"worse", "changed"}


def compare(baseline: Baseline, now: Baseline) -> list[GateCheck]:
    """All checks of the same runs, recorded then and now."""
    before, after = _cells(baseline), _cells(now)
    found: list[GateCheck] = []
    for scenario, goal in baseline.goals.items():
        cells = {cell: runs for cell, runs in before.items() if cell[0] == scenario}
        final = tolerances({cell: _finals(runs) for cell, runs in cells.items()})
        reach = tolerances({cell: _logs(runs) for cell, runs in cells.items()})
        for cell, runs in cells.items():
            if stalled := _stalled(cell, runs, after[cell]):
                found.append(stalled)  # runs of other lengths have nothing to compare
                continue
            found.append(_final(cell, goal, runs, after[cell], final[cell]))
            if goal.target is not None:
                found.append(_reach(cell, goal, runs, after[cell], reach[cell]))
            found += [_schedule(cell, runs, after[cell]), _golden(cell, runs, after[cell])]
    return found + list(_speeds(baseline.speed, now.speed))


def tolerances(values: Mapping[Cell, Sequence[float]]) -> dict[Cell, float]:
    """How far the mean of each may get worse by chance; one value per seed."""
    spreads = {cell: float(np.std(of, ddof=1)) for cell, of in values.items() if len(of) > 1}
    typical = median(spreads.values()) if spreads else 0.0
    return {
        cell: ERRORS * max(spreads.get(cell, 0.0), typical) * sqrt(2 / max(1, len(of)))
        for cell, of in values.items()
    }


def _cells(of: Baseline) -> dict[Cell, list[Outcome]]:
    """Runs by scenario and strategy, in the order of their seeds."""
    found: dict[Cell, list[Outcome]] = {}
    for one in sorted(of.runs, key=lambda one: one.seed):
        found.setdefault((one.scenario, one.strategy), []).append(one)
    return found


def _finals(runs: Sequence[Outcome]) -> list[float]:
    return [one.final for one in runs if one.finite]


def _logs(runs: Sequence[Outcome]) -> list[float]:
    """Times spread by factors, so they are compared by factors."""
    return [log(one.reached) for one in runs]


def _stalled(cell: Cell, before: Sequence[Outcome], now: Sequence[Outcome]) -> GateCheck | None:
    """The check where the stalled seeds have changed; one more stalled seed is worse."""
    stalled, stalls = ({one.seed for one in runs if one.status is Status.STALLED} for runs in (before, now))
    if stalled == stalls:
        return None
    then, today = (f"{len(seeds)} of {len(before)} stalled" for seeds in (stalled, stalls))
    verdict: Verdict = "worse" if stalls - stalled else "better"
    return GateCheck(
        *cell, STALLS, verdict, then, today, minus(f"{len(stalls) - len(stalled):+d}"), "none more"
    )


def _final(
    cell: Cell, goal: Goal, before: Sequence[Outcome], now: Sequence[Outcome], tolerance: float
) -> GateCheck:
    """The final metric over seeds that ended both times; one more diverged seed is worse."""
    shown = goal.measure
    what = f"Final {shown.in_text}"
    lost, loses = (sum(not one.finite for one in runs) for runs in (before, now))
    if lost != loses:
        verdict: Verdict = "worse" if loses > lost else "better"
        then, today = (f"{count} of {len(before)} diverged" for count in (lost, loses))
        return GateCheck(*cell, what, verdict, then, today, minus(f"{loses - lost:+d}"), "none more")
    pairs = [(a.final, b.final) for a, b in zip(before, now, strict=True) if a.finite and b.finite]
    if not pairs:
        return GateCheck(*cell, what, "same", "diverged", "diverged")
    first, second = (float(np.mean(values)) for values in zip(*pairs, strict=True))
    return _mean(cell, what, shown, (first, second), max(tolerance, GOLDEN * abs(first)))


def _reach(
    cell: Cell, goal: Goal, before: Sequence[Outcome], now: Sequence[Outcome], tolerance: float
) -> GateCheck:
    """Updates to the target as geometric means; they are known only to the next evaluation."""
    assert goal.target is not None
    what = f"Updates to {goal.measure.round_text(goal.target)}"
    first, second = (exp(float(np.mean(_logs(runs)))) for runs in (before, now))
    factor, allowed = second / first, max(exp(tolerance), 1 + before[0].mark / first)
    verdict: Verdict = "worse" if factor > allowed else "better" if factor < 1 / allowed else "same"
    then, today = count(round(first)), count(round(second))
    return GateCheck(*cell, what, verdict, then, today, f"× {number(factor, 3)}", f"× {number(allowed, 3)}")


def _mean(cell: Cell, what: str, shown: Measure, means: tuple[float, float], tolerance: float) -> GateCheck:
    change = means[1] - means[0]
    gain = change if shown.higher else -change
    verdict: Verdict = "worse" if gain < -tolerance else "better" if gain > tolerance else "same"
    then, today = (f"{shown.text(value)}{' %' if shown.share else ''}" for value in means)
    allowed = -tolerance if shown.higher else tolerance
    return GateCheck(*cell, what, verdict, then, today, _signed(change, shown), _signed(allowed, shown))


def _signed(value: float, shown: Measure) -> str:
    text = shown.text(value)
    return text if text.startswith("−") else f"+{text}"


def _schedule(cell: Cell, before: Sequence[Outcome], now: Sequence[Outcome]) -> GateCheck:
    """Arrivals of updates and their staleness; of several seeds the first digests are shown."""
    other = [(a, b) for a, b in zip(before, now, strict=True) if a.schedule != b.schedule]
    if not other:
        return GateCheck(*cell, SCHEDULE, "same")
    then, today = (one.schedule for one in other[0])
    return GateCheck(
        *cell, SCHEDULE, "changed", then, today, f"{len(other)} of {many(len(before), 'seed')}", "none"
    )


def _golden(cell: Cell, before: Sequence[Outcome], now: Sequence[Outcome]) -> GateCheck:
    """The loss at every evaluation of every seed; the first that differs is shown."""
    for a, b in zip(before, now, strict=True):
        if [updates for updates, _ in a.loss] != [updates for updates, _ in b.loss]:
            then, today = (f"after {', '.join(str(at) for at, _ in of.loss)} updates" for of in (a, b))
            return GateCheck(
                *cell, GOLDEN_VALUES, "changed", then, today, f"evaluations of seed {a.seed}", "none"
            )
        for (updates, was), (_, is_now) in zip(a.loss, b.loss, strict=True):
            if (off := deviation(was, is_now)) > GOLDEN:
                what = f"{GOLDEN_VALUES}: loss after {updates} updates, seed {a.seed}"
                then, today = f"{was:.8g}", f"{is_now:.8g}"
                return GateCheck(*cell, what, "changed", then, today, number(off, 2), minus(f"{GOLDEN:.0e}"))
    return GateCheck(*cell, GOLDEN_VALUES, "same")


def deviation(before: float, now: float) -> float:
    """How far a value is from the recorded one, relative to it; ∞ where one of them is no number."""
    if before == now or (before != before and now != now):  # noqa: PLR0124 - two NaN are the same
        return 0.0
    if not (isfinite(before) and isfinite(now)) or before == 0:
        return float("inf")
    return abs(now - before) / abs(before)


def _speeds(before: Mapping[str, float], now: Mapping[str, float]) -> Iterator[GateCheck]:
    for strategy in (name for name in before if name in now):
        then, today = before[strategy], now[strategy]
        verdict: Verdict = "worse" if then > SLOWER * today else "better" if today > SLOWER * then else "same"
        first, second = number(then, 3), number(today, 3)
        yield GateCheck("", strategy, SPEED, verdict, first, second, _times(then / today), _times(SLOWER))


def _times(factor: float) -> str:
    return f"{number(factor, 3)} × the time"


def too_slow(before: Mapping[str, float], now: Mapping[str, float]) -> list[str]:
    """Strategies that seem too slow now, and should be measured again."""
    return [check.strategy for check in _speeds(before, now) if check.failed]
