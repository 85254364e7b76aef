"""The gate on records whose truth is known: what it catches, what it lets pass, and what it says."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from math import exp, inf, nan
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.errors import UserError
from fl_core.recorded_names import Status
from reports.gate import baseline, gate
from reports.gate.baseline import Baseline, BaselineRun, GateGoal
from reports.gate.gate import (
    GOLDEN_TOLERANCE,
    LOSS,
    MAX_SLOWDOWN,
    MEAN_SPREADS,
    MIN_CHANGE,
    SEED_SPREADS,
    Finding,
    GateQuestion,
    compare,
    exit_code,
    judged,
    update,
)

ACCURACY = GateGoal(
    metric="test/accuracy", higher=True, target=0.85, title="Test accuracy", share=True, unit=""
)
DISTANCE = GateGoal(
    metric="distance", higher=False, target=0.5, title="Distance to the optimum", share=False, unit=""
)
GOALS = {"digits · F80": ACCURACY, "quadratic · F80": DISTANCE}
STRATEGIES = {"FedAvg": 0.8, "FedBuff": 0.85, "ASGD": 0.9, "ACE": 0.95}
SEEDS, MARKS, LAST = 5, 16, 320
VICTIM = ("digits · F80", "FedBuff")


def outcome(scenario: str, strategy: str, seed: int, rng: np.random.Generator) -> BaselineRun:
    """A run that looks like a real one: a spread of 0.01 in the metric and of a fifth in the updates."""
    level = STRATEGIES[strategy]
    final = (level if scenario.startswith("digits") else 1.1 - level) + 0.01 * rng.standard_normal()
    reached = 20.0 * np.clip(round(8 * exp(0.2 * rng.standard_normal())), 1, MARKS)
    losses = 2.3 * np.exp(-np.arange(5) * level / 2) + 0.01 * rng.standard_normal(5)
    return BaselineRun(
        scenario=scenario,
        strategy=strategy,
        seed=seed,
        key=f"{scenario}/{strategy}/{seed}",
        status=Status.DONE,
        final=final,
        updates_to_target=reached,
        schedule=f"{seed:016x}",
        evaluations=MARKS,
        loss=tuple((80 * at, float(loss)) for at, loss in enumerate(losses)),
    )


def record(draws: int = 0) -> Baseline:
    """A suite of two scenarios, all its random numbers from one generator."""
    rng = np.random.default_rng(draws)
    runs = [
        outcome(scenario, name, seed, rng)
        for scenario in GOALS
        for name in STRATEGIES
        for seed in range(SEEDS)
    ]
    speed = dict.fromkeys(STRATEGIES, 0.8)
    return Baseline(
        suite="ci",
        commit="0123456789abcdef",
        versions={"torch": "2.13.0"},
        goals=GOALS,
        speed=speed,
        runs=runs,
    )


def changed(of: Baseline, where: tuple[str, str] = VICTIM, **fields: Any) -> Baseline:
    """The same with fields of one strategy's runs replaced, by values or functions of a run."""
    runs = [
        one.model_copy(
            update={key: value(one) if callable(value) else value for key, value in fields.items()}
        )
        if (one.scenario, one.strategy) == where
        else one
        for one in of.runs
    ]
    return of.model_copy(update={"runs": tuple(runs)})


def failures(before: Baseline, now: Baseline) -> list[tuple[str, str, str]]:
    """Strategy, beginning of what, and verdict of the checks that fail."""
    return [(one.strategy, one.what.split()[0], one.finding) for one in compare(before, now) if one.failed]


def rounded(of: Baseline, rng: np.random.Generator) -> Baseline:
    """The same, computed in another order of summation: a few parts in ten million, one test sample."""

    def touched(one: BaselineRun) -> BaselineRun:
        losses = tuple((at, loss * (1 + 3e-7 * rng.uniform(-1, 1))) for at, loss in one.loss)
        flip = rng.choice([-1, 0, 1]) / 359 if one.scenario.startswith("digits") else 0.0
        return one.model_copy(update={"loss": losses, "final": one.final + flip})

    return of.model_copy(update={"runs": tuple(map(touched, of.runs))})


def test_everything_is_checked_once() -> None:
    """Five checks a scenario and strategy, one a strategy."""
    checks = compare(record(), record())
    assert len(checks) == 5 * len(GOALS) * len(STRATEGIES) + len(STRATEGIES)
    assert len({(one.scenario, one.strategy, one.what) for one in checks}) == len(checks)
    assert {one.finding for one in checks} == {"same"}


def test_runs_that_are_called_otherwise_are_the_same_runs() -> None:
    before = record()
    runs = [run.model_copy(update={"strategy": f"my {run.strategy}", "scenario": "x"}) for run in before.runs]
    checks = compare(before, before.model_copy(update={"runs": runs}))
    assert {check.finding for check in checks} == {Finding.SAME}
    assert {check.strategy for check in checks} == set(STRATEGIES)


def spread(of: Baseline, field: str = "final") -> float:
    """Standard deviation over the seeds of the strategy that tests change."""
    return float(
        np.std([getattr(one, field) for one in of.runs if (one.scenario, one.strategy) == VICTIM], ddof=1)
    )


def test_accuracy() -> None:
    """Lower in all seeds by more than 1.5 standard deviations fails, by less it does not."""
    before = record()
    size = SEED_SPREADS * spread(before)
    assert failures(before, changed(before, final=lambda one: one.final - 1.01 * size)) == [
        ("FedBuff", "Final", "worse")
    ]
    assert failures(before, changed(before, final=lambda one: one.final - 0.99 * size)) == []
    better = compare(before, changed(before, final=lambda one: one.final + 1.01 * size))
    assert [one.what for one in better if one.finding == "better"] == ["Final test accuracy"]
    assert not any(one.failed for one in better)


def test_lower_may_be_better() -> None:
    """A distance that grows is worse."""
    before, where = record(), ("quadratic · F80", "ACE")
    worse, better = (changed(before, where, final=lambda one, by=by: one.final + by) for by in (0.1, -0.1))
    assert failures(before, worse) == [("ACE", "Final", "worse")]
    assert failures(before, better) == []


def with_last_loss(of: Baseline, change: Callable[[BaselineRun], float]) -> Baseline:
    """The same with another loss at the end."""
    return changed(of, loss=lambda one: (*one.loss[:-1], (one.loss[-1][0], one.loss[-1][1] + change(one))))


def test_a_small_loss_in_all_seeds_is_worse() -> None:
    """As of FedBuff (buffer 5, digits) without the last update of each buffer, and of 10: p = 0.002, 4e-6.

    The differences are a fifth to half as large as the spread over seeds.
    """
    losses = (0.4844, 0.4978, 0.4828, 0.4828, 0.4842), (0.6747, 0.6835, 0.6696, 0.6653, 0.6717)
    higher = (0.0045, 0.0067, 0.0056, 0.0093, 0.0049), (0.0109, 0.0130, 0.0125, 0.0118, 0.0121)
    for values, differences in zip(losses, higher, strict=True):
        before = changed(record(), loss=lambda one, values=values: ((0, 2.3), (320, values[one.seed])))
        now = with_last_loss(before, lambda one, by=differences: by[one.seed])
        (worse,) = (one for one in compare(before, now) if one.finding == "worse")
        assert (worse.strategy, worse.what, worse.seeds) == ("FedBuff", LOSS, (5, 0))
        assert exit_code(compare(before, now, [GateQuestion.QUALITY])) == 1
        back = [one for one in compare(now, before) if one.finding == "better"]
        assert [(one.what, one.seeds) for one in back] == [(LOSS, (0, 5))]
        mixed = with_last_loss(before, lambda one, by=differences: (-1) ** one.seed * by[one.seed])
        assert not [one for one in compare(before, mixed) if one.finding in {"worse", "better"}]


@pytest.mark.parametrize("companion", [0.0, 100.0])
def test_the_noise_of_a_companion_changes_no_verdict(companion: float) -> None:
    """All other strategies of the scenario spread much more, or not at all."""
    before, rng = record(), np.random.default_rng(0)
    noisy = before
    for strategy in STRATEGIES.keys() - {"FedBuff"}:
        noisy = changed(noisy, (VICTIM[0], strategy), final=lambda _: 0.5 + companion * rng.standard_normal())
    size = SEED_SPREADS * spread(before)
    for factor, expected in ((1.01, [("FedBuff", "Final", "worse")]), (0.99, [])):
        now = changed(noisy, final=lambda one, by=factor * size: one.final - by)
        assert failures(noisy, now) == expected
    own = [
        [one.allowed for one in compare(of, of) if (one.scenario, one.strategy) == VICTIM]
        for of in (before, noisy)
    ]
    assert own[0] == own[1]


def test_verdicts_of_paired_differences() -> None:
    """Against the three rules and the least difference, by hand."""
    spread = 1 / SEED_SPREADS
    assert judged([1.1, 1.2, 5.0], spread, 0.1) == "worse"  # all exceed 1
    assert judged([0.9, 1.2, 3.0], spread, 0.1) == "same"
    assert judged([0.3, 0.31, 0.29, 0.3, 0.32], spread, 0.1) == "worse"  # consistent
    assert judged([0.3, 0.31, 0.29, 0.3, 0.32], spread, 0.31) == "same"  # too small
    assert judged([0.0, 0.0, 0.0, 0.0, 5 * MEAN_SPREADS + 0.1], 1.0, 0.1) == "worse"
    assert judged([0.0, 0.0, 0.0, 0.0, 5 * MEAN_SPREADS - 0.1], 1.0, 0.1) == "same"
    assert judged([-1.1, -1.2, -5.0], spread, 0.1) == "better"


def test_an_improvement_passes_with_its_other_values_and_is_taken_in(tmp_path: Path) -> None:
    """One strategy better in one scenario, with other losses in both: exit code 0, and a line in the file."""
    before = record()
    now = changed(before, final=lambda one: one.final + 0.1)
    for where in ((scenario, "FedBuff") for scenario in GOALS):
        now = changed(now, where, loss=lambda one: tuple((at, 0.9 * loss) for at, loss in one.loss))
    checks = compare(before, now)
    assert {one.finding for one in checks} == {Finding.SAME, Finding.BETTER, Finding.IMPROVED}
    assert exit_code(checks) == 0
    taken = update(before, now.model_copy(update={"commit": "f" * 40, "speed": {}}), checks)
    path = baseline.write(taken, tmp_path / "ci.json")
    found = baseline.read(path)
    (line,) = found.accepted
    assert line.commit == "f" * 40
    assert [other.partition(":")[0] for other in line.other] == ["FedBuff"]
    improved = [text.partition(" in ")[0] + text.partition(": ")[2][:5] for text in line.better]
    assert improved == ["FedBuffFinal", "FedBuffLoss ", "FedBuffLoss "]
    assert found.runs == now.runs and found.speed == before.speed
    assert found.first_runs == before.runs
    assert {one.finding for one in compare(found, now)} == {Finding.SAME}
    assert update(found, now, []).accepted == found.accepted  # lines stay; nothing taken in adds none


def test_what_is_worse_elsewhere_has_not_improved() -> None:
    """Other values of such a strategy fail beside its loss of quality; an update needs a reason."""
    before = record()
    now = changed(before, final=lambda one: one.final + 0.1)
    now = changed(now, ("quadratic · F80", "FedBuff"), final=lambda one: one.final + 0.1, schedule="f" * 16)
    checks = compare(before, now)
    assert exit_code(checks) == 1
    assert Finding.CHANGED in {one.finding for one in checks}
    with pytest.raises(UserError, match="--accept-worse REASON"):
        update(before, now, checks)
    taken = update(before, now, checks, "the step was too long")
    (line,) = taken.accepted
    assert line.reason == "the step was too long" and len(line.worse) == 1 and line.better
    assert line.worse[0].endswith(", worse in 5 of 5 seeds")
    assert {one.finding for one in compare(taken, now)} == {Finding.SAME}
    with pytest.raises(UserError, match="Leave out --accept-worse"):
        update(taken, now, compare(taken, now), "again")


def test_slow_decay_is_noticed() -> None:
    """Each of five steps lowers the final metric by 0.4 of what is allowed and changes the losses."""
    first = record()
    found, step, findings = first, 0.4 * SEED_SPREADS * spread(first), []
    for at in range(1, 6):
        now = changed(
            first,
            final=lambda one, at=at: one.final - at * step,
            loss=lambda one, at=at: tuple((u, loss * (1 + 1e-4 * at)) for u, loss in one.loss),
        )
        checks = compare(found, now)
        worse = any(one.finding is Finding.WORSE for one in checks)
        findings.append(worse)
        found = update(found, now, checks, f"step {at}" if worse else "")
        assert found.first_runs == first.runs
        assert found.accepted[-1].other == ("FedBuff: worse in 10, better in 0 comparisons of a seed",)
    assert findings == [at == 3 for at in range(1, 6)]  # 3 × 0.4 exceeds 1, 2 after the third step do not
    assert [line.reason for line in found.accepted] == ["", "", "step 3", "", ""]
    since_first = compare(found.model_copy(update={"runs": first.runs, "reference_runs": ()}), now)
    assert [one.strategy for one in since_first if one.finding is Finding.WORSE] == ["FedBuff"]


def test_what_was_gained_is_not_lost_again_step_by_step() -> None:
    """An accepted improvement is the reference from then on, of quality and of speed."""
    first = record()
    size = SEED_SPREADS * spread(first)
    better = changed(first, final=lambda one: one.final + 5 * size).model_copy(
        update={"speed": dict.fromkeys(STRATEGIES, 2.0)}
    )
    found = update(first, better, compare(first, better))
    assert found.speed == better.speed
    for factor in (0.8, 0.6):
        slower = {name: value * factor for name, value in better.speed.items()}
        now = better.model_copy(update={"speed": slower})
        checks = compare(found, now)
        if factor == 0.8:
            found = update(found, now, checks)
    assert {one.what for one in checks if one.failed} == {gate.SPEED}
    now = changed(first, final=lambda one: one.final + 3.9 * size).model_copy(update={"speed": {}})
    assert failures(found, now) == [("FedBuff", "Final", "worse")]


def test_two_questions_with_two_exit_codes() -> None:
    """Quality alone, reproducibility alone, both: 1 if something is worse, 3 if it is only other."""
    before = record()
    other = changed(before, schedule="f" * 16)
    worse = changed(other, final=lambda one: one.final - 0.1)
    asked = [(question,) for question in GateQuestion] + [tuple(GateQuestion)]
    assert [exit_code(compare(before, other, questions)) for questions in asked] == [0, 3, 3]
    assert [exit_code(compare(before, worse, questions)) for questions in asked] == [1, 3, 1]
    counts = [len(compare(before, before, questions)) for questions in asked]
    assert counts[0] + counts[1] == counts[2]


def test_rounding_of_golden_values_is_a_warning_like_with_like() -> None:
    """Of the same processor and libraries; of others it is expected. The tolerance sets what is rounding."""
    here = record().model_copy(update={"processor": "Linux, x, AVX512"})
    digit = changed(here, loss=lambda one: tuple((at, loss * (1 + 1e-8)) for at, loss in one.loss))

    def found(now: Baseline, **options: float) -> set[str]:
        return {str(one.finding) for one in compare(here, now, **options)} - {"same"}

    assert found(digit) == {"rounded"} and exit_code(compare(here, digit)) == 0
    assert found(digit, tolerance=0.0) == found(digit, tolerance=0.9e-8) == {"changed"}
    assert found(digit, tolerance=1.1e-8) == {"rounded"}
    far = changed(here, loss=lambda one: tuple((at, loss * (1 + 1e-5)) for at, loss in one.loss))
    assert found(far) == {"changed"} and found(far, tolerance=1e-4) == {"rounded"}
    for others in ({"processor": "Linux, x, AVX2"}, {"versions": {"torch": "2.14.0"}}):
        assert found(digit.model_copy(update=others)) == set()
    unknown = {"processor": ""}
    assert failures(here.model_copy(update=unknown), digit.model_copy(update=unknown)) == []
    accepted = update(here, digit, compare(here, digit))
    assert accepted.runs == digit.runs and accepted.accepted[0].other


def test_the_largest_difference_of_golden_values_is_shown() -> None:
    before = record()
    factors = {1: 1 + 1e-5, 3: 1 + 3e-5}
    now = changed(
        before, loss=lambda one: tuple((u, loss * factors.get(one.seed, 1)) for u, loss in one.loss)
    )
    (worst,) = (one for one in compare(before, now) if one.failed)
    assert worst.detail.endswith("seed 3")


def test_updates_to_target() -> None:
    """Twice as many fail; a single evaluation more does not, whatever the spread; half as many are better."""
    before = record()
    assert failures(before, changed(before, updates_to_target=lambda one: 2 * one.updates_to_target)) == [
        ("FedBuff", "Updates", "worse")
    ]
    fast = compare(before, changed(before, updates_to_target=lambda one: one.updates_to_target / 2))
    assert [one.what for one in fast if one.finding != "same"] == ["Updates to 85\N{NO-BREAK SPACE}%"]
    alike = before.model_copy(
        update={"runs": tuple(one.model_copy(update={"updates_to_target": 100.0}) for one in before.runs)}
    )
    assert failures(alike, changed(alike, updates_to_target=120.0)) == []
    assert failures(alike, changed(alike, updates_to_target=140.0)) == [("FedBuff", "Updates", "worse")]


def test_never_is_one_evaluation_after_the_end() -> None:
    """Whoever no longer meets the target at all got worse; who never did is as before."""
    before = record()
    assert before.runs[0].model_copy(update={"updates_to_target": inf}).reached() == LAST + 20
    assert failures(before, changed(before, updates_to_target=inf)) == [("FedBuff", "Updates", "worse")]
    one_left = changed(before, updates_to_target=lambda one: inf if one.seed else 100.0)
    (worse,) = (one for one in compare(before, one_left) if one.failed)
    assert worse.now.endswith(" (1 of 5 seeds met it)") and worse.before.isdigit()
    never = changed(before, updates_to_target=inf)
    assert failures(never, never) == []


@pytest.mark.parametrize("status", [Status.STALLED, Status.DIVERGED])
def test_runs_that_end_sooner_at_a_standstill_do_not_meet_the_target_sooner(status: Status) -> None:
    """All seeds miss the target before and now; only the moment of their end differs."""
    cut = [changed(record(), status=status, updates_to_target=inf, final=0.1) for _ in range(2)]
    early = changed(cut[1], loss=lambda one: one.loss[:1], evaluations=0)
    for before, now in ((cut[0], early), (early, cut[0])):
        (reach,) = (
            one
            for one in compare(before, now)
            if (one.scenario, one.strategy) == VICTIM and one.what.startswith("Updates")
        )
        assert reach.finding == "same"


def test_a_seed_that_diverges_is_worse() -> None:
    """However good the others are; back again it is better."""
    before = record()
    broken = changed(
        before,
        status=lambda one: Status.DIVERGED if one.seed == 2 else Status.DONE,
        final=lambda one: nan if one.seed == 2 else 1.0,
    )
    assert failures(before, broken) == [("FedBuff", "Final", "worse")]
    assert [one for one in compare(broken, before) if one.what.startswith("Final") and one.failed] == []
    assert failures(broken, broken) == []


def test_a_seed_that_stalls_is_worse() -> None:
    """It is said as what it is; once it no longer stalls, that is better."""
    before = record()
    waits = changed(before, status=lambda one: Status.STALLED if one.seed == 2 else Status.DONE)
    assert failures(before, waits) == [("FedBuff", "Final", "worse")]
    (found,) = [one for one in compare(before, waits) if one.failed]
    assert (found.before, found.now, found.allowed) == ("0 of 5 stalled", "1 of 5 stalled", "none more")
    assert failures(waits, before) == []
    assert failures(waits, waits) == []


def test_names_of_checks_do_not_depend_on_findings() -> None:
    """CI servers compare test cases of builds by name."""
    before = record()
    worse = changed(before, final=lambda one: one.final - 0.5, loss=lambda one: ((0, 9.0), *one.loss[1:]))
    names = [
        [(one.scenario, one.strategy, one.what) for one in compare(before, now)] for now in (before, worse)
    ]
    assert failures(before, worse) and names[0] == names[1]


def test_settings_that_differ_are_named() -> None:
    old = {"strategy.local_lr": "0.2", "seed": "1, 2", "gone": "1"}
    now = {"strategy.local_lr": "0.1", "seed": "1, 2", "new": "2"}
    expected = ["strategy.local_lr: 0.2 → 0.1", "gone: 1 → default", "new: default → 2"]
    assert baseline.differences(old, now) == expected
    assert baseline.differences({}, now) == []  # a baseline without settings says nothing of them


def test_one_schedule() -> None:
    """A single arrival of a single seed."""
    before = record()
    now = changed(before, schedule=lambda one: "f" * 16 if one.seed == 3 else one.schedule)
    assert failures(before, now) == [("FedBuff", "Schedule", "changed")]


@pytest.mark.parametrize(("seed", "at"), [(0, 0), (2, 1), (4, 4)])
def test_one_golden_value(seed: int, at: int) -> None:
    """A single loss of a single seed that differs by more than rounding."""

    def shifted(by: float) -> Baseline:
        def losses(one: BaselineRun) -> Sequence[tuple[int, float]]:
            return tuple((u, loss * (1 + by * (one.seed == seed and u == 80 * at))) for u, loss in one.loss)

        return changed(before, loss=losses)

    before = record()
    assert failures(before, shifted(2 * GOLDEN_TOLERANCE)) == [("FedBuff", "Golden", "changed")]
    assert failures(before, shifted(-2 * GOLDEN_TOLERANCE)) == [("FedBuff", "Golden", "changed")]
    assert failures(before, shifted(GOLDEN_TOLERANCE / 2)) == []


@pytest.mark.parametrize(
    ("then", "now", "off"),
    [(1.0, nan, inf), (nan, nan, 0), (inf, inf, 0), (0.0, 0.0, 0), (0.0, 1e-9, inf), (-2.0, -1.0, 0.5)],
)
def test_deviation(then: float, now: float, off: float) -> None:
    """Relative; what is no number agrees with its like alone."""
    assert gate.deviation(then, now) == off


def test_other_evaluations_are_no_golden_values() -> None:
    """Losses after other numbers of updates cannot be compared."""
    before = record()
    now = changed(before, loss=lambda one: tuple((at + 1, loss) for at, loss in one.loss))
    assert failures(before, now) == [("FedBuff", "Golden", "changed")]


def test_speed() -> None:
    """Half as long again fails, and only then; who was not measured is not judged."""
    before = record()
    slow = before.model_copy(update={"speed": {**before.speed, "ACE": 0.8 / (1.01 * MAX_SLOWDOWN)}})
    assert failures(before, slow) == [("ACE", "Speed", "worse")]
    assert gate.too_slow(before.speed, slow.speed) == ["ACE"]
    assert (
        failures(
            before,
            before.model_copy(update={"speed": dict.fromkeys(STRATEGIES, 0.8 / (0.99 * MAX_SLOWDOWN))}),
        )
        == []
    )
    assert failures(before, before.model_copy(update={"speed": {}})) == []
    assert {one.finding for one in compare(slow, before)} == {"same", "better"}


def test_unchanged_reruns_pass() -> None:
    """On other processors, with stacked jobs: they differ by rounding, by a test sample here and there."""
    before, rng = record(), np.random.default_rng(1)
    assert [failures(before, rounded(before, rng)) for _ in range(5)] == [[]] * 5


@pytest.mark.parametrize(("seeds", "most"), [(3, 1 / 20), (5, 1 / 200)])
def test_the_rate_of_false_alarms(seeds: int, most: float) -> None:
    """Normal values of seeds that are redrawn, of which nothing is known but those of the baseline."""
    rng, alarms, draws = np.random.default_rng(0), 0, 10_000
    for _ in range(draws):
        then, now = rng.standard_normal((2, seeds))
        alarms += judged(now - then, float(np.std(then, ddof=1)), MIN_CHANGE) is Finding.WORSE
    assert alarms / draws < most


def test_a_baseline_is_read_as_it_was_written(tmp_path: Path) -> None:
    """Bit for bit, ∞ and NaN too; one run a line."""
    before = changed(record(), updates_to_target=inf)
    path = baseline.write(before, tmp_path / "new" / "ci.json")
    assert baseline.read(path) == before
    assert path.read_text().count("\n") == len(before.runs) + 17
    lost = changed(before, final=nan, status=Status.DIVERGED)
    assert compare(lost, baseline.read(baseline.write(lost, path))) == compare(lost, lost)


@pytest.mark.parametrize("content", [b"", b"\xff\xfe", b"[]", b'{"format": 2}', None])
def test_what_is_no_baseline_is_one_line_with_the_file(tmp_path: Path, content: bytes | None) -> None:
    """And so is a folder in its place, which cannot be written either."""
    path = tmp_path / "ci.json"
    if content is None:
        path.mkdir()
        with pytest.raises(UserError, match=re.escape(str(path))):
            baseline.write(record(), path)
    else:
        path.write_bytes(content)
    with pytest.raises(UserError) as caught:
        baseline.read(path)
    (line,) = caught.value.lines
    assert line.startswith(str(path)) and "\n" not in line


def test_one_seed_has_no_spread() -> None:
    """A tolerance would be invented."""
    one = record().model_copy(update={"runs": tuple(run for run in record().runs if run.seed == 0)})
    with pytest.raises(UserError):
        baseline.must_have_spread(one)


def test_a_suite_without_a_shipped_baseline_is_named() -> None:
    with pytest.raises(UserError, match="'mine'"):
        baseline.shipped("mine")
