"""The gate: comparison of runs with a recorded baseline, and whether changes exceed chance.

`asyncfl check` calls `compare`, prints the checks, and exits with `exit_code`; with --update it calls
`update`.

Two questions are asked. Quality: did the final metric, the loss at the end or the updates to the
target (of these the logarithm) get worse, seed by seed, or the speed? Runs are paired by seed with the
baseline's. A strategy is worse if the mean difference exceeds MIN_CHANGE, a small part of the value (of
updates: one evaluation), and one of these holds:

- every seed is worse by more than SEED_SPREADS standard deviations over the seeds of the baseline;
- the interval of the paired differences (LEVEL, Student's t) leaves out 0;
- the mean is worse by more than MEAN_SPREADS such standard deviations: a few seeds broke down.

A standard deviation smaller than MIN_CHANGE counts as MIN_CHANGE.

Each strategy is judged by its own seeds alone. An unchanged build has the same seeds and differs by rounding
only. A build that draws other random numbers is called worse by chance in less than one of 200 comparisons of
five seeds, and in one of 25 of three seeds. Speed is a ratio to the yardstick measured beside it
(MAX_SLOWDOWN).

Quality is compared with the reference: the first baseline, or the runs accepted later as better or, with a
reason, as worse. So small steps down add up until the sum is called worse.

Reproducibility: are schedules and losses, the golden values, those of the baseline? Schedules are compared
exactly, on every machine: they do not depend on sums of floats. Losses may differ by the rounding that
another processor, library or order of summation changes (GOLDEN_TOLERANCE). Where the same processor and the
same versions of all libraries made both, run by run, such a difference is a warning. A strategy that improved
must have other values: these are shown, and do not fail.

Fixed: the limits and questions: with wider ones, a regression passes (docs/explanation/verdicts.md).
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from enum import StrEnum, auto
from functools import partial
from math import exp, inf, isfinite, isnan, log1p, nan
from operator import itemgetter

import numpy as np

from benchmarks.errors import UserError
from fl_core.metrics import FP_LOSS
from fl_core.recorded_names import Status
from fl_core.text import many
from reports.gate.baseline import DIGITS, Acceptance, Baseline, BaselineRun, GateGoal
from reports.numbers import count, interval, minus, number
from reports.statistical_inference import paired_effect

LEVEL = 0.997  # of the interval of paired differences
MIN_CHANGE = 0.005  # of the value: a smaller mean difference is no change of quality
SEED_SPREADS = 1.5  # standard deviations over seeds by which a change exceeds chance if every seed shows it
MEAN_SPREADS = 3.5  # … and by which the mean does
ROUNDING = 1e-9  # relative, of differences that are compared with a limit
# Relative. Three times the largest difference of all losses of suite ci (float32) between two processors
# (8.8e-7; on one of them between AVX-512, AVX2 and no vector instructions 2.6e-7, in float64 2.4e-16; stacked
# jobs none; computed twice on the same one none); schedules never differed.
GOLDEN_TOLERANCE = 3e-6
MAX_SLOWDOWN = 1.5  # times as long as recorded, beside the yardstick

LOSS = "Loss at the end"
SCHEDULE, GOLDEN_VALUES, SPEED = "Schedule", "Golden values", "Speed ÷ yardstick"


class GateQuestion(StrEnum):
    """A question of the gate about a build."""

    QUALITY = auto()  # are results as good?
    REPRODUCIBILITY = auto()  # are they the same?


class Finding(StrEnum):
    """Change of a number since the baseline."""

    SAME = auto()
    BETTER = auto()
    IMPROVED = auto()  # other values than recorded, of a strategy that got better
    WORSE = auto()
    CHANGED = auto()  # other values than recorded
    ROUNDED = auto()  # golden values that differ by rounding: a warning


WORDS = {
    Finding.WORSE: "worse",
    Finding.BETTER: "better",
    Finding.CHANGED: "not what was recorded",
    Finding.IMPROVED: "changed by the improvement",
    Finding.ROUNDED: "different by rounding",
}
EXIT_CODES = {Finding.WORSE: 1, Finding.CHANGED: 3}  # of what fails; 2 is a mistake of the user's


@dataclass(frozen=True, slots=True)
class GateCheck:
    """A single comparison, as text."""

    scenario: str  # empty for values measured once per strategy
    strategy: str
    what: str  # name of the compared quantity; equal in every build, for CI servers
    finding: Finding
    before: str = ""
    now: str = ""
    change: str = ""
    allowed: str = ""
    detail: str = ""  # the place of the shown value, or the numbers of seeds that got worse or better
    seeds: tuple[int, int] = field(default=(0, 0), kw_only=True)  # numbers of seeds worse, and better

    @property
    def title(self) -> str:
        """Name of the compared quantity, with the detail."""
        return f"{self.what}: {self.detail}" if self.detail else self.what

    @property
    def failed(self) -> bool:
        """Whether the check stops the build."""
        return self.finding in EXIT_CODES


def compare(
    baseline: Baseline,
    build: Baseline,
    questions: Sequence[GateQuestion] = tuple(GateQuestion),
    tolerance: float = GOLDEN_TOLERANCE,
) -> list[GateCheck]:
    """Return all checks of a build's runs against the runs of a baseline.

    Args:
        baseline: The runs as they were accepted.
        build: The runs of the build.
        questions: Quality, reproducibility, or both. Without quality no strategy counts as improved.
        tolerance: Relative difference of golden values that counts as rounding.
    """
    alike = build.repeats(baseline)
    by_key, references = {run.key: run for run in build.runs}, baseline.references()
    groups: dict[tuple[str, str], list[BaselineRun]] = {}
    for run in sorted(baseline.runs, key=lambda run: run.seed):
        groups.setdefault((run.scenario, run.strategy), []).append(run)
    checks: list[GateCheck] = []
    for (scenario, strategy), earlier in groups.items():
        goal, today = baseline.goals[scenario], [by_key[run.key] for run in earlier]
        if GateQuestion.QUALITY in questions:
            pair = Seeds(scenario, strategy, goal, [references[run.key] for run in earlier], today)
            checks += pair.quality()
        if GateQuestion.REPRODUCIBILITY in questions:
            pair = Seeds(scenario, strategy, goal, earlier, today)
            checks += [pair.schedule(), pair.golden(tolerance, warn=alike)]
    if GateQuestion.QUALITY in questions:
        checks += _speeds(baseline.speed, build.speed)
    return list(_with_improvements(checks))


def verdict(checks: Sequence[GateCheck], suite: str) -> str:
    """Return the outcome as a sentence."""
    ends = []
    for kind, words in WORDS.items():
        of_kind = [check for check in checks if check.finding is kind]
        names = list(dict.fromkeys(check.strategy for check in of_kind))
        rest = " and others" if len(names) > 5 else ""
        if of_kind:
            ends.append(f"{len(of_kind)} {words} ({', '.join(names[:5])}{rest})")
    return f"{suite}: {many(len(checks), 'check')}, {', '.join(ends) or 'all as before'}."


def update(baseline: Baseline, build: Baseline, checks: Sequence[GateCheck], reason: str = "") -> Baseline:
    """Return the baseline of the current runs, with a line on accepted changes, if any.

    The first baseline stays in the file. Runs that are better or worse become the reference of later
    comparisons; other runs and speeds keep their present reference.

    Args:
        baseline: The baseline so far.
        build: The runs of the present build.
        checks: All checks of the build against the baseline.
        reason: The user's reason for accepting worse results.

    Raises:
        UserError: If something got worse without a reason, or nothing did and there is one.
    """
    worse = [check for check in checks if check.finding is Finding.WORSE]
    sentence = verdict(checks, build.suite).removesuffix(".")
    if worse and not reason:
        raise UserError(
            f"{sentence}: --update alone does not accept a regression. To accept it, add "
            "--accept-worse REASON"
        )
    if reason and not worse:
        raise UserError(f"{sentence}: nothing is worse. Leave out --accept-worse")
    changed = {Finding.CHANGED, Finding.IMPROVED, Finding.ROUNDED}
    strategies = dict.fromkeys(check.strategy for check in checks if check.finding in changed)
    line = Acceptance(
        date=datetime.now(UTC).date().isoformat(),
        commit=build.commit,
        repository=build.repository,
        better=tuple(_as_line(check) for check in checks if check.finding is Finding.BETTER),
        worse=tuple(map(_as_line, worse)),
        reason=reason,
        other=tuple(_counted(strategy, checks) for strategy in strategies),
    )
    lines = (line,) if line.better or line.worse or line.other else ()
    judged = [check for check in checks if check.finding in {Finding.BETTER, Finding.WORSE}]
    groups = {(check.scenario, check.strategy) for check in judged}
    keys = {run.key for run in baseline.runs if (run.scenario, run.strategy) in groups}
    moved = {run.key: run for run in baseline.reference_runs} | {
        run.key: run for run in build.runs if run.key in keys
    }
    same = [run.model_dump() for run in baseline.runs] == [run.model_dump() for run in build.runs]
    speeds = {check.strategy for check in judged if check.what == SPEED} | (
        build.speed.keys() - baseline.speed
    )
    taken = {
        "speed": {**baseline.speed, **{name: build.speed[name] for name in build.speed if name in speeds}},
        "accepted": (*baseline.accepted, *lines),
        "first_runs": baseline.first_runs or (() if same else baseline.runs),
        "reference_runs": tuple(moved.values()),
    }
    return build.model_copy(update=taken)


def _as_line(check: GateCheck) -> str:
    """Return a check in a line, for the list of accepted changes; no code parses the stored lines."""
    place = f" in {check.scenario}" if check.scenario else ""
    detail = f", {check.detail}" if check.detail else ""
    return f"{check.strategy}{place}: {check.what} {check.before} → {check.now}{detail}"


def _counted(strategy: str, checks: Sequence[GateCheck]) -> str:
    """Return a strategy with the counts of worse and better seeds, over all comparisons."""
    seeds = [check.seeds for check in checks if check.strategy == strategy]
    worse, better = (sum(numbers) for numbers in zip(*seeds, strict=True))
    return f"{strategy}: worse in {worse}, better in {better} comparisons of a seed"


def exit_code(checks: Sequence[GateCheck]) -> int:
    """Return 0 if the build may pass, 1 if a check got worse, and 3 for values other than recorded."""
    return min((EXIT_CODES[check.finding] for check in checks if check.failed), default=0)


def _with_improvements(checks: Sequence[GateCheck]) -> Iterator[GateCheck]:
    """Yield the checks; a change of a strategy better somewhere and worse nowhere is improved."""
    better, worse = (
        {check.strategy for check in checks if check.finding is finding and check.scenario}
        for finding in (Finding.BETTER, Finding.WORSE)
    )
    for check in checks:
        improved = check.finding is Finding.CHANGED and check.strategy in better - worse
        yield replace(check, finding=Finding.IMPROVED) if improved else check


def judged(worsening: Sequence[float] | np.ndarray, spread: float, min_difference: float) -> Finding:
    """Return the finding for paired differences.

    Args:
        worsening: A difference for each seed, positive if worse.
        spread: Standard deviation over the seeds of the baseline, at least `min_difference`.
        min_difference: Mean difference that counts.
    """
    effect, spread = paired_effect(worsening, LEVEL), max(spread, min_difference)
    mean, seeds = abs(effect.mean), np.copysign(1, effect.mean) * np.asarray(worsening)
    significant = (
        seeds.min() > SEED_SPREADS * spread
        or mean > MEAN_SPREADS * spread
        or effect.low > 0
        or effect.high < 0
    )
    if not significant or mean <= min_difference * (1 + ROUNDING):
        return Finding.SAME
    return Finding.WORSE if effect.mean > 0 else Finding.BETTER


@dataclass(frozen=True, slots=True)
class Seeds:
    """The runs of a strategy in a scenario, in the baseline and now, paired by seed; makes their checks."""

    scenario: str
    strategy: str
    goal: GateGoal
    before: Sequence[BaselineRun]
    now: Sequence[BaselineRun]

    def _check(self, quantity: str, finding: Finding, *texts: str) -> GateCheck:
        """Return a check of these runs; `texts` are its further fields in order."""
        return GateCheck(self.scenario, self.strategy, quantity, finding, *texts)

    def _count(self, quantity: str, happened: str, then: int, today: int, *, worse: bool) -> GateCheck:
        """Return the check of a number of seeds, with no increase allowed."""
        finding = Finding.WORSE if worse else Finding.BETTER
        texts = (f"{count} of {len(self.before)} {happened}" for count in (then, today))
        return self._check(quantity, finding, *texts, minus(f"{today - then:+d}"), "none more")

    @property
    def final_metric(self) -> str:
        """Name of the check of the final metric."""
        return f"Final {self.goal.measure.in_text}"

    def updates_to(self, target: float) -> str:
        """Return the name of the check of the updates to the target."""
        return f"Updates to {self.goal.measure.round_text(target)}"

    def quality(self) -> Iterator[GateCheck]:
        """Yield the checks of quality."""
        yield self.final()
        if self.goal.metric != FP_LOSS:
            yield self.loss()
        if self.goal.target is not None:
            yield self.reach(self.goal.target)

    def final(self) -> GateCheck:
        """Return the check of the final metric; an additional stalled or diverged seed is worse."""
        then, today = (
            {run.seed for run in runs if run.status is Status.STALLED} for runs in (self.before, self.now)
        )
        if then != today:
            worse = bool(today - then)
            return self._count(self.final_metric, "stalled", len(then), len(today), worse=worse)
        metric = self.goal.measure
        values = [[run.final if run.finite else nan for run in runs] for runs in (self.before, self.now)]
        sign = 1 if metric.higher else -1
        return self._at_end(
            self.final_metric, values, "diverged", sign=sign, value=metric.with_unit, change=metric.text
        )

    def loss(self) -> GateCheck:
        """Return the check of the federated loss at the end; an additional non-finite loss is worse."""
        pairs = [(a, b) for a, b in zip(self.before, self.now, strict=True) if a.finite and b.finite]
        values = [[runs[side].loss[-1][1] for runs in pairs] for side in (0, 1)]
        return self._at_end(
            LOSS, values, "not finite", sign=-1, value=number, change=partial(number, digits=3)
        )

    def _at_end(
        self,
        quantity: str,
        values: Sequence[Sequence[float]],
        lost: str,
        *,
        sign: int,
        value: Callable[[float], str],
        change: Callable[[float], str],
    ) -> GateCheck:
        """Return the check of values at the end; an additional seed without a finite value is worse.

        Args:
            quantity: The name of the check.
            values: Values in the baseline and now [2, seeds].
            lost: The fate of a seed without a finite value, in words: "diverged".
            sign: 1 where more is better, else −1.
            value: Writes a mean.
            change: Writes the size of a difference.
        """
        finite = np.isfinite(values)
        then, today = (int(n) for n in (~finite).sum(axis=1))
        if then != today:
            return self._count(quantity, lost, then, today, worse=today > then)
        finite_values = np.asarray(values)[:, finite.all(axis=0)]
        if not finite_values.size:
            return self._check(quantity, Finding.SAME, lost, lost)
        means = [float(mean) for mean in finite_values.mean(axis=1)]

        def signed(difference: float) -> str:
            return ("−" if difference < 0 else "+") + change(abs(difference))

        return self._paired(
            quantity,
            finite_values,
            sign=sign,
            min_difference=MIN_CHANGE * abs(means[0]),
            means=[value(mean) for mean in means],
            write=signed,
        )

    def _paired(
        self,
        quantity: str,
        values: np.ndarray,
        *,
        sign: int,
        min_difference: float,
        means: Sequence[str],
        write: Callable[[float], str],
    ) -> GateCheck:
        """Return the check of values in the baseline and now [2, seeds], paired by seed.

        Mean differences up to `min_difference` do not count.
        """
        first, second = values
        changes = second - first
        spread = float(np.std(first, ddof=1)) if len(first) > 1 else 0.0
        equal = GOLDEN_TOLERANCE * np.abs(first)
        seeds = tuple(int((side * sign * changes > equal).sum()) for side in (-1, 1))
        counts = [f"{word} in {n}" for word, n in zip(("worse", "better"), seeds, strict=True) if n]
        detail = f"{', '.join(counts)} of {many(len(first), 'seed')}" if counts else ""
        effect = paired_effect(changes, LEVEL)
        bounds = "" if effect.low == -inf else f" {interval(effect.low, effect.high, write)}"
        return GateCheck(
            self.scenario,
            self.strategy,
            quantity,
            judged(-sign * changes, spread, min_difference),
            before=means[0],
            now=means[1],
            change=f"{write(effect.mean)}{bounds}",
            allowed=write(-sign * SEED_SPREADS * max(spread, min_difference)),
            detail=detail,
            seeds=(seeds[0], seeds[1]),
        )

    def reach(self, target: float) -> GateCheck:
        """Return the check of updates to the target, as factors; one evaluation more or less is no change."""
        builds = (self.before, self.now)
        longest = max(run.end for runs in builds for run in runs)
        # Logarithms, since updates to the target spread by factors
        logs = np.log([[run.reached(longest) for run in runs] for runs in builds])
        means = [exp(float(mean)) for mean in logs.mean(axis=1)]
        texts = []
        for runs, mean in zip(builds, means, strict=True):
            met = sum(isfinite(run.updates_to_target) for run in runs)
            missed = f" ({met} of {len(runs)} seeds met it)" if met < len(runs) else ""
            texts.append(f"{count(round(mean))}{missed}")
        mark = max(run.mark for runs in builds for run in runs)
        return self._paired(
            self.updates_to(target),
            logs,
            sign=-1,
            min_difference=log1p(mark / min(means)),
            means=texts,
            write=lambda change: f"× {number(exp(change), 3)}",
        )

    def schedule(self) -> GateCheck:
        """Return the check of arrivals and staleness; of several seeds the first digests are shown."""
        pairs = [(a.schedule, b.schedule) for a, b in zip(self.before, self.now, strict=True)]
        changed = [pair for pair in pairs if pair[0] != pair[1]]
        if not changed:
            return self._check(SCHEDULE, Finding.SAME, *pairs[0])
        seeds = f"{len(changed)} of {many(len(pairs), 'seed')}"
        return self._check(SCHEDULE, Finding.CHANGED, *changed[0], seeds, "none")

    def golden(self, tolerance: float, *, warn: bool) -> GateCheck:
        """Return the check of the golden losses of every seed; the largest difference is shown.

        A difference within the tolerance is rounding, which is a finding only with `warn`.
        """
        for a, b in zip(self.before, self.now, strict=True):
            if [updates for updates, _ in a.loss] != [updates for updates, _ in b.loss]:
                texts = (f"after {', '.join(str(at) for at, _ in run.loss)} updates" for run in (a, b))
                change = f"evaluations of seed {a.seed}"
                return self._check(GOLDEN_VALUES, Finding.CHANGED, *texts, change, "none")
        values = [
            (deviation(was, is_now), updates, was, is_now, run.seed)
            for run, today in zip(self.before, self.now, strict=True)
            for (updates, was), (_, is_now) in zip(run.loss, today.loss, strict=True)
        ]
        off, updates, was, is_now, seed = max(values, key=itemgetter(0))
        if not off:
            _, updates, was, is_now, seed = values[len(self.before[0].loss) - 1]
        detail = f"loss after {updates} updates, seed {seed}"
        losses = f"{was:.{DIGITS}g}", f"{is_now:.{DIGITS}g}"
        if off > tolerance:
            finding = Finding.CHANGED
        else:
            finding = Finding.ROUNDED if off and warn else Finding.SAME
        if finding is Finding.SAME:
            return self._check(GOLDEN_VALUES, finding, *losses, "", "", detail)
        allowed = f"{minus(f'{tolerance:.0e}')} relative" if tolerance else "none"
        return self._check(GOLDEN_VALUES, finding, *losses, f"{number(off, 2)} relative", allowed, detail)


def deviation(stored: float, current: float) -> float:
    """Return the relative difference to the recorded value; ∞ where undefined."""
    if stored == current or (isnan(stored) and isnan(current)):
        return 0.0
    if not (isfinite(stored) and isfinite(current)) or stored == 0:
        return float("inf")
    return abs(current - stored) / abs(stored)


def _speeds(stored: Mapping[str, float], current: Mapping[str, float]) -> Iterator[GateCheck]:
    """Yield the check of each strategy's speed, a ratio to the yardstick."""
    for strategy in (name for name in stored if name in current):
        factor = stored[strategy] / current[strategy]
        speeds = number(stored[strategy], 3), number(current[strategy], 3)
        change, allowed = (f"{number(times, 3)} × the time" for times in (factor, MAX_SLOWDOWN))
        finding = Finding.SAME
        if not 1 / MAX_SLOWDOWN <= factor <= MAX_SLOWDOWN:
            finding = Finding.WORSE if factor > 1 else Finding.BETTER
        yield GateCheck("", strategy, SPEED, finding, *speeds, change, allowed)


def too_slow(stored: Mapping[str, float], current: Mapping[str, float]) -> list[str]:
    """Return the strategies apparently too slow, to be measured again."""
    return [check.strategy for check in _speeds(stored, current) if check.failed]
