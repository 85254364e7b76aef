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
from enum import StrEnum, auto
from math import exp, isfinite, log, sqrt
from statistics import median

import numpy as np

from fl_core.schema import Status
from fl_core.text import many
from reports.gate.baseline import Baseline, BaselineRun, Goal
from reports.numbers import count, minus, number

ERRORS = 4.0  # standard errors by which a mean may get worse
# Relative. Ten times the largest difference of all losses of suite ci (float32), between AVX-512, AVX2
# and no vector instructions (2.6e-7; in float64 2.4e-16; stacked jobs none); schedules never differed.
GOLDEN = 3e-6
SLOWER = 1.5  # times as long as recorded, beside the yardstick

SCHEDULE, GOLDEN_VALUES, SPEED = "Schedule", "Golden values", "Speed ÷ yardstick"
STALLS = "Stalled runs"

Group = tuple[str, str]  # scenario, strategy


class Finding(StrEnum):
    """What became of a number since the baseline."""

    SAME = auto()
    BETTER = auto()
    WORSE = auto()
    CHANGED = auto()


@dataclass(frozen=True, slots=True)
class GateCheck:
    """One comparison, as text."""

    scenario: str  # empty for values measured once per strategy
    strategy: str
    what: str
    finding: Finding
    before: str = ""
    now: str = ""
    change: str = ""
    allowed: str = ""

    @property
    def failed(self) -> bool:
        """Whether the build must not pass."""
        return self.finding in {Finding.WORSE, Finding.CHANGED}


def compare(baseline: Baseline, now: Baseline) -> list[GateCheck]:
    """Return all checks of the same runs, recorded then and now."""
    before, after = _groups(baseline), _groups(now)
    final = {group: [run.final for run in runs if run.finite] for group, runs in before.items()}
    reach = {group: _logs(runs) for group, runs in before.items()}
    checks: list[GateCheck] = []
    for scenario, goal in baseline.goals.items():
        groups = [group for group in before if group[0] == scenario]
        finals = tolerances({group: final[group] for group in groups})
        reaches = tolerances({group: reach[group] for group in groups})
        for group in groups:
            pair = Seeds(*group, goal, before[group], after[group])
            if stalled := pair.stalled():
                checks.append(stalled)  # runs of other lengths have nothing to compare
                continue
            checks.append(pair.final(finals[group]))
            if goal.target is not None:
                checks.append(pair.reach(goal.target, reaches[group]))
            checks += [pair.schedule(), pair.golden()]
    return checks + list(_speeds(baseline.speed, now.speed))


def tolerances(values: Mapping[Group, Sequence[float]]) -> dict[Group, float]:
    """Return how far the mean of each strategy may get worse by chance; one value per seed."""
    spreads = {group: float(np.std(seeds, ddof=1)) for group, seeds in values.items() if len(seeds) > 1}
    typical = median(spreads.values()) if spreads else 0.0
    return {
        group: ERRORS * max(spreads.get(group, 0.0), typical) * sqrt(2 / max(1, len(seeds)))
        for group, seeds in values.items()
    }


def _groups(baseline: Baseline) -> dict[Group, list[BaselineRun]]:
    """Return runs by scenario and strategy, in the order of their seeds."""
    groups: dict[Group, list[BaselineRun]] = {}
    for run in sorted(baseline.runs, key=lambda run: run.seed):
        groups.setdefault((run.scenario, run.strategy), []).append(run)
    return groups


def _logs(runs: Sequence[BaselineRun]) -> list[float]:
    """Return logarithms of the updates to the target: times spread by factors."""
    return [log(run.reached) for run in runs]


@dataclass(frozen=True, slots=True)
class Seeds:
    """The seeds of one strategy in one scenario, then and now."""

    scenario: str
    strategy: str
    goal: Goal
    before: Sequence[BaselineRun]
    now: Sequence[BaselineRun]

    def _check(self, what: str, finding: Finding, *texts: str) -> GateCheck:
        return GateCheck(self.scenario, self.strategy, what, finding, *texts)

    def _count(self, what: str, happened: str, then: int, today: int, *, worse: bool) -> GateCheck:
        """Return the check of a number of seeds, of which none more is allowed."""
        finding = Finding.WORSE if worse else Finding.BETTER
        texts = (f"{count} of {len(self.before)} {happened}" for count in (then, today))
        return self._check(what, finding, *texts, minus(f"{today - then:+d}"), "none more")

    def stalled(self) -> GateCheck | None:
        """Return the check where the stalled seeds have changed; one more stalled seed is worse."""
        then, today = (
            {run.seed for run in runs if run.status is Status.STALLED} for runs in (self.before, self.now)
        )
        if then == today:
            return None
        return self._count(STALLS, "stalled", len(then), len(today), worse=bool(today - then))

    def final(self, tolerance: float) -> GateCheck:
        """Return the check of the final metric over seeds that ended; one more diverged seed is worse."""
        metric = self.goal.measure
        what = f"Final {metric.in_text}"
        then, today = (sum(not run.finite for run in runs) for runs in (self.before, self.now))
        if then != today:
            return self._count(what, "diverged", then, today, worse=today > then)
        pairs = [
            (a.final, b.final) for a, b in zip(self.before, self.now, strict=True) if a.finite and b.finite
        ]
        if not pairs:
            return self._check(what, Finding.SAME, "diverged", "diverged")
        means = [float(np.mean(values)) for values in zip(*pairs, strict=True)]
        tolerance = max(tolerance, GOLDEN * abs(means[0]))
        sign = 1 if metric.higher else -1
        change = means[1] - means[0]
        gain = sign * change
        finding = Finding.WORSE if gain < -tolerance else Finding.BETTER if gain > tolerance else Finding.SAME
        signed = [metric.text(value) for value in (change, -sign * tolerance)]
        signed = [text if text.startswith("−") else f"+{text}" for text in signed]
        return self._check(what, finding, *map(metric.with_unit, means), *signed)

    def reach(self, target: float, tolerance: float) -> GateCheck:
        """Return the check of updates to the target, geometric means known to the next evaluation."""
        first, second = (exp(float(np.mean(_logs(runs)))) for runs in (self.before, self.now))
        factor, allowed = second / first, max(exp(tolerance), 1 + self.before[0].mark / first)
        means = count(round(first)), count(round(second))
        what = f"Updates to {self.goal.measure.round_text(target)}"
        finding = _by_factor(factor, allowed)
        return self._check(what, finding, *means, f"× {number(factor, 3)}", f"× {number(allowed, 3)}")

    def schedule(self) -> GateCheck:
        """Return the check of arrivals and their staleness; of several seeds the first digests are shown."""
        pairs = [(a.schedule, b.schedule) for a, b in zip(self.before, self.now, strict=True)]
        other = [pair for pair in pairs if pair[0] != pair[1]]
        if not other:
            return self._check(SCHEDULE, Finding.SAME)
        seeds = f"{len(other)} of {many(len(pairs), 'seed')}"
        return self._check(SCHEDULE, Finding.CHANGED, *other[0], seeds, "none")

    def golden(self) -> GateCheck:
        """Return the check of the loss at every evaluation of every seed; the first that differs is shown."""
        for a, b in zip(self.before, self.now, strict=True):
            if [updates for updates, _ in a.loss] != [updates for updates, _ in b.loss]:
                texts = (f"after {', '.join(str(at) for at, _ in run.loss)} updates" for run in (a, b))
                seed = f"evaluations of seed {a.seed}"
                return self._check(GOLDEN_VALUES, Finding.CHANGED, *texts, seed, "none")
            for (updates, was), (_, is_now) in zip(a.loss, b.loss, strict=True):
                if (off := deviation(was, is_now)) > GOLDEN:
                    what = f"{GOLDEN_VALUES}: loss after {updates} updates, seed {a.seed}"
                    losses = f"{was:.8g}", f"{is_now:.8g}"
                    return self._check(what, Finding.CHANGED, *losses, number(off, 2), minus(f"{GOLDEN:.0e}"))
        return self._check(GOLDEN_VALUES, Finding.SAME)


def _by_factor(factor: float, allowed: float) -> Finding:
    """Return the finding for a quantity of which less is better, from its ratio to the recorded one."""
    return Finding.WORSE if factor > allowed else Finding.BETTER if factor < 1 / allowed else Finding.SAME


def deviation(before: float, now: float) -> float:
    """Return how far a value is from the recorded one, relative to that; ∞ where one of them is no number."""
    if before == now or (before != before and now != now):  # noqa: PLR0124 - two NaN are the same
        return 0.0
    if not (isfinite(before) and isfinite(now)) or before == 0:
        return float("inf")
    return abs(now - before) / abs(before)


def _speeds(before: Mapping[str, float], now: Mapping[str, float]) -> Iterator[GateCheck]:
    for strategy in (name for name in before if name in now):
        factor = before[strategy] / now[strategy]
        speeds = number(before[strategy], 3), number(now[strategy], 3)
        times = (f"{number(times, 3)} × the time" for times in (factor, SLOWER))
        yield GateCheck("", strategy, SPEED, _by_factor(factor, SLOWER), *speeds, *times)


def too_slow(before: Mapping[str, float], now: Mapping[str, float]) -> list[str]:
    """Return strategies that seem too slow now, and should be measured again."""
    return [check.strategy for check in _speeds(before, now) if check.failed]
