"""The gate: what got worse since a baseline was recorded, and whether that is more than chance.

Two questions are asked. Quality: did means over seeds of the final metric and of the updates to the target
(of these the logarithm), or the speed, get worse? A mean may get worse by

    4 · s · √(2/n)

four standard errors of a difference between two means of n seeds each. s is the standard deviation over seeds
in the baseline: the strategy's own, but not less than the median one of all strategies in the scenario, since
a few seeds estimate a spread poorly. An unchanged build has the same seeds and differs by rounding only.
Speed is a ratio to the yardstick measured beside it (SLOWER).

Reproducibility: are schedules and losses, the golden values, those of the baseline? Schedules are compared
exactly, on every machine: they do not depend on sums of floats. Losses are compared exactly where the same
processor and the same versions of all libraries made them, run by run; elsewhere they must agree but for the
rounding that another processor, library or order of summation changes (GOLDEN). A strategy that improved has
other values of necessity: these are shown, and do not fail.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum, auto
from math import exp, isfinite, log, sqrt
from statistics import median

import numpy as np

from benchmarks.errors import UserError
from fl_core.schema import Status
from fl_core.text import many
from reports.gate.baseline import DIGITS, Acceptance, Baseline, BaselineRun, GateGoal
from reports.numbers import count, minus, number

ERRORS = 4.0  # standard errors by which a mean may get worse
# Relative. Three times the largest difference of all losses of suite ci (float32) between two processors
# (8.8e-7; on one of them between AVX-512, AVX2 and no vector instructions 2.6e-7, in float64 2.4e-16; stacked
# jobs none; computed twice on the same one none); schedules never differed.
GOLDEN = 3e-6
SLOWER = 1.5  # times as long as recorded, beside the yardstick

SCHEDULE, GOLDEN_VALUES, SPEED = "Schedule", "Golden values", "Speed ÷ yardstick"

Group = tuple[str, str]  # scenario, strategy


class GateQuestion(StrEnum):
    """A question that the gate asks of a build."""

    QUALITY = auto()  # are results as good?
    REPRODUCIBILITY = auto()  # are they the same?


class Finding(StrEnum):
    """What became of a number since the baseline."""

    SAME = auto()
    BETTER = auto()
    IMPROVED = auto()  # other values than recorded, of a strategy that got better
    WORSE = auto()
    CHANGED = auto()  # other values than recorded
    SKIPPED = auto()  # not compared, since other seeds stalled


WORDS = {
    Finding.WORSE: "worse",
    Finding.BETTER: "better",
    Finding.CHANGED: "not what was recorded",
    Finding.IMPROVED: "changed by the improvement",
}
EXIT_CODES = {Finding.WORSE: 1, Finding.CHANGED: 3}  # of what fails; 2 is a mistake of the user's


@dataclass(frozen=True, slots=True)
class GateCheck:
    """One comparison, as text."""

    scenario: str  # empty for values measured once per strategy
    strategy: str
    what: str  # the same whatever the finding
    finding: Finding
    before: str = ""
    now: str = ""
    change: str = ""
    allowed: str = ""
    detail: str = ""  # which value of several is shown

    @property
    def title(self) -> str:
        """What was compared, with the detail."""
        return f"{self.what}: {self.detail}" if self.detail else self.what

    @property
    def failed(self) -> bool:
        """Whether the build must not pass."""
        return self.finding in EXIT_CODES


def compare(
    baseline: Baseline, now: Baseline, questions: Sequence[GateQuestion] = tuple(GateQuestion)
) -> list[GateCheck]:
    """Return all checks of the same runs, recorded then and now.

    Args:
        baseline: The runs as they were accepted.
        now: The runs of the build.
        questions: What is asked. A strategy is known to have improved only where quality is.
    """
    golden = 0.0 if now.repeats(baseline) else GOLDEN
    before, by_key = _groups(baseline), {run.key: run for run in now.runs}  # whatever they are called now
    final = {group: [run.final for run in runs if run.finite] for group, runs in before.items()}
    reach = {group: _logs(runs, max(run.end for run in runs)) for group, runs in before.items()}
    checks: list[GateCheck] = []
    for scenario, goal in baseline.goals.items():
        groups = [group for group in before if group[0] == scenario]
        finals = tolerances({group: final[group] for group in groups})
        reaches = tolerances({group: reach[group] for group in groups})
        for group in groups:
            pair = Seeds(*group, goal, before[group], [by_key[run.key] for run in before[group]])
            if GateQuestion.QUALITY in questions:
                if stalled := pair.stalled():
                    checks += [stalled, *pair.skipped(questions)]  # runs of other lengths
                    continue
                checks.append(pair.final(finals[group]))
                if goal.target is not None:
                    checks.append(pair.reach(goal.target, reaches[group]))
            if GateQuestion.REPRODUCIBILITY in questions:
                checks += [pair.schedule(), pair.golden(golden)]
    if GateQuestion.QUALITY in questions:
        checks += _speeds(baseline.speed, now.speed)
    return list(_with_improvements(checks))


def verdict(checks: Sequence[GateCheck], suite: str) -> str:
    """Return the outcome as a sentence."""
    ends = []
    for kind, words in WORDS.items():
        of_kind = [check for check in checks if check.finding is kind]
        names = list(dict.fromkeys(check.strategy for check in of_kind))
        others = " and others" if len(names) > 5 else ""
        if of_kind:
            ends.append(f"{len(of_kind)} {words} ({', '.join(names[:5])}{others})")
    return f"{suite}: {many(len(checks), 'check')}, {', '.join(ends) or 'all as before'}."


def update(before: Baseline, now: Baseline, checks: Sequence[GateCheck]) -> Baseline:
    """Return the baseline of the runs as they are now, with a line on what it took in, if anything.

    Args:
        before: The baseline so far.
        now: The same runs, as they are now; speeds that were not measured again stay as they are.
        checks: All checks of both.

    Raises:
        UserError: If something got worse.
    """
    if any(check.finding is Finding.WORSE for check in checks):
        said = verdict(checks, now.suite).removesuffix(".")
        raise UserError(f"{said}: --update never accepts a regression. Use --write to overwrite the baseline")
    line = Acceptance(
        date=datetime.now(UTC).date().isoformat(),
        commit=now.commit,
        repository=now.repository,
        better=tuple(_said(check) for check in checks if check.finding is Finding.BETTER),
        other=tuple(
            dict.fromkeys(
                check.strategy for check in checks if check.finding in {Finding.CHANGED, Finding.IMPROVED}
            )
        ),
    )
    lines = (line,) if line.better or line.other else ()
    taken = {"speed": {**before.speed, **now.speed}, "accepted": (*before.accepted, *lines)}
    return now.model_copy(update=taken)


def _said(check: GateCheck) -> str:
    where = f" in {check.scenario}" if check.scenario else ""
    return f"{check.strategy}{where}: {check.title} {check.before} → {check.now}"


def exit_code(checks: Sequence[GateCheck]) -> int:
    """Return 0 if the build may pass, 1 if something got worse, else 3: other values than recorded."""
    return min((EXIT_CODES[check.finding] for check in checks if check.failed), default=0)


def _with_improvements(checks: Sequence[GateCheck]) -> Iterator[GateCheck]:
    """Yield the checks; what changed of a strategy that is better somewhere, worse nowhere, has improved."""
    better, worse = (
        {check.strategy for check in checks if check.finding is finding and check.scenario}
        for finding in (Finding.BETTER, Finding.WORSE)
    )
    for check in checks:
        improved = check.finding is Finding.CHANGED and check.strategy in better - worse
        yield replace(check, finding=Finding.IMPROVED) if improved else check


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


def _logs(runs: Sequence[BaselineRun], longest: int) -> list[float]:
    """Return logarithms of the updates to the target, which spread by factors; see `BaselineRun.reached`."""
    return [log(run.reached(longest)) for run in runs]


@dataclass(frozen=True, slots=True)
class Seeds:
    """The seeds of one strategy in one scenario, then and now."""

    scenario: str
    strategy: str
    goal: GateGoal
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
        return self._count(self.final_metric, "stalled", len(then), len(today), worse=bool(today - then))

    def skipped(self, questions: Sequence[GateQuestion]) -> list[GateCheck]:
        """Return the checks that are not made where the stalled seeds have changed."""
        names = [] if self.goal.target is None else [self.updates_to(self.goal.target)]
        if GateQuestion.REPRODUCIBILITY in questions:
            names += [SCHEDULE, GOLDEN_VALUES]
        return [self._check(name, Finding.SKIPPED) for name in names]

    @property
    def final_metric(self) -> str:
        """Name of the check of the final metric."""
        return f"Final {self.goal.measure.in_text}"

    def updates_to(self, target: float) -> str:
        """Return the name of the check of the updates to the target."""
        return f"Updates to {self.goal.measure.round_text(target)}"

    def final(self, tolerance: float) -> GateCheck:
        """Return the check of the final metric over seeds that ended; one more diverged seed is worse."""
        metric = self.goal.measure
        what = self.final_metric
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
        signed = [("−" if v < 0 else "+") + metric.text(abs(v)) for v in (change, -sign * tolerance)]
        return self._check(what, finding, *map(metric.with_unit, means), *signed)

    def reach(self, target: float, tolerance: float) -> GateCheck:
        """Return the check of updates to the target, geometric means known to the next evaluation."""
        longest = max(run.end for run in (*self.before, *self.now))
        first, second = (exp(float(np.mean(_logs(runs, longest)))) for runs in (self.before, self.now))
        factor, allowed = second / first, max(exp(tolerance), 1 + self.before[0].mark / first)
        means = (self._reached(runs, mean) for runs, mean in ((self.before, first), (self.now, second)))
        what = self.updates_to(target)
        finding = _by_factor(factor, allowed)
        return self._check(what, finding, *means, f"× {number(factor, 3)}", f"× {number(allowed, 3)}")

    def _reached(self, runs: Sequence[BaselineRun], mean: float) -> str:
        """Return the mean updates to the target, with how many seeds met it where some did not."""
        met = sum(isfinite(run.updates_to_target) for run in runs)
        return count(round(mean)) + (f" ({met} of {len(runs)} seeds met it)" if met < len(runs) else "")

    def schedule(self) -> GateCheck:
        """Return the check of arrivals and their staleness; of several seeds the first digests are shown."""
        pairs = [(a.schedule, b.schedule) for a, b in zip(self.before, self.now, strict=True)]
        other = [pair for pair in pairs if pair[0] != pair[1]]
        if not other:
            return self._check(SCHEDULE, Finding.SAME, *pairs[0])
        seeds = f"{len(other)} of {many(len(pairs), 'seed')}"
        return self._check(SCHEDULE, Finding.CHANGED, *other[0], seeds, "none")

    def golden(self, tolerance: float) -> GateCheck:
        """Return the check of the loss at every evaluation of every seed; the first that differs is shown."""
        for a, b in zip(self.before, self.now, strict=True):
            if [updates for updates, _ in a.loss] != [updates for updates, _ in b.loss]:
                texts = (f"after {', '.join(str(at) for at, _ in run.loss)} updates" for run in (a, b))
                seed = f"evaluations of seed {a.seed}"
                return self._check(GOLDEN_VALUES, Finding.CHANGED, *texts, seed, "none")
            for (updates, was), (_, is_now) in zip(a.loss, b.loss, strict=True):
                if (off := deviation(was, is_now)) > tolerance:
                    detail = f"loss after {updates} updates, seed {a.seed}"
                    losses = f"{was:.{DIGITS}g}", f"{is_now:.{DIGITS}g}"
                    allowed = f"{minus(f'{tolerance:.0e}')} relative" if tolerance else "none"
                    change = f"{number(off, 2)} relative"
                    return self._check(GOLDEN_VALUES, Finding.CHANGED, *losses, change, allowed, detail)
        first, now = self.before[0], self.now[0]
        (updates, was), (_, is_now) = first.loss[-1], now.loss[-1]
        detail = f"loss after {updates} updates, seed {first.seed}"
        losses = f"{was:.{DIGITS}g}", f"{is_now:.{DIGITS}g}"
        return self._check(GOLDEN_VALUES, Finding.SAME, *losses, "", "", detail)


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
