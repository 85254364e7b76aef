"""The gate on records whose truth is known: what it catches, what it lets pass, and what it says."""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import exp, inf, nan
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.errors import UserError
from fl_core.schema import Status
from reports.gate import baseline, gate
from reports.gate.baseline import Baseline, BaselineRun, GateGoal
from reports.gate.gate import (
    ERRORS,
    GOLDEN,
    SLOWER,
    Finding,
    GateQuestion,
    compare,
    exit_code,
    tolerances,
    update,
)

ACCURACY = GateGoal(metric="test/accuracy", higher=True, target=0.85)
DISTANCE = GateGoal(metric="distance", higher=False, target=0.5)
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
    """Four checks a scenario and strategy, one a strategy."""
    checks = compare(record(), record())
    assert len(checks) == 4 * len(GOALS) * len(STRATEGIES) + len(STRATEGIES)
    assert len({(one.scenario, one.strategy, one.what) for one in checks}) == len(checks)
    assert {one.finding for one in checks} == {"same"}


def test_runs_that_are_called_otherwise_are_the_same_runs() -> None:
    before = record()
    runs = [run.model_copy(update={"strategy": f"my {run.strategy}", "scenario": "x"}) for run in before.runs]
    checks = compare(before, before.model_copy(update={"runs": runs}))
    assert {check.finding for check in checks} == {Finding.SAME}
    assert {check.strategy for check in checks} == set(STRATEGIES)


def test_accuracy() -> None:
    """Lower by more than four standard errors fails, by less it does not, higher is better."""
    before = record()
    finals = {
        name: [one.final for one in before.runs if one.scenario == VICTIM[0] and one.strategy == name]
        for name in STRATEGIES
    }
    spreads = {name: np.std(of, ddof=1) for name, of in finals.items()}
    allowed = 4 * max(spreads["FedBuff"], np.median(list(spreads.values()))) * (2 / SEEDS) ** 0.5
    assert failures(before, changed(before, final=lambda one: one.final - 1.01 * allowed)) == [
        ("FedBuff", "Final", "worse")
    ]
    assert failures(before, changed(before, final=lambda one: one.final - 0.99 * allowed)) == []
    better = compare(before, changed(before, final=lambda one: one.final + 1.01 * allowed))
    assert [one.what for one in better if one.finding == "better"] == ["Final test accuracy"]
    assert not any(one.failed for one in better)


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
    assert line.commit == "f" * 40 and line.other == ("FedBuff",)
    assert len(line.better) == 1 and line.better[0].startswith(
        "FedBuff in digits · F80: Final test accuracy "
    )
    assert found.runs == now.runs and found.speed == before.speed
    assert {one.finding for one in compare(found, now)} == {Finding.SAME}
    assert update(found, now, []).accepted == found.accepted  # lines stay; nothing taken in adds none


def test_what_is_worse_elsewhere_has_not_improved() -> None:
    """Other values of such a strategy fail beside its loss of quality, and no update takes them in."""
    before = record()
    now = changed(before, final=lambda one: one.final + 0.1)
    now = changed(now, ("quadratic · F80", "FedBuff"), final=lambda one: one.final + 0.1, schedule="f" * 16)
    checks = compare(before, now)
    assert exit_code(checks) == 1
    assert Finding.CHANGED in {one.finding for one in checks}
    with pytest.raises(UserError, match="--update never accepts"):
        update(before, now, checks)


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


def test_golden_values_are_compared_exactly_like_with_like() -> None:
    """The last digit counts for the same processor and libraries, and for no others; unknown is no like."""
    here = record().model_copy(update={"processor": "Linux, x, AVX512"})
    digit = changed(here, loss=lambda one: tuple((at, loss * (1 + 1e-8)) for at, loss in one.loss))
    assert failures(here, digit) == [("FedBuff", "Golden", "changed")]
    for others in ({"processor": "Linux, x, AVX2"}, {"versions": {"torch": "2.14.0"}}):
        assert failures(here, digit.model_copy(update=others)) == []
    unknown = {"processor": ""}
    assert failures(here.model_copy(update=unknown), digit.model_copy(update=unknown)) == []


def test_lower_may_be_better() -> None:
    """A distance that grows is worse."""
    before, where = record(), ("quadratic · F80", "ACE")
    assert failures(before, changed(before, where, final=lambda one: one.final + 0.1)) == [
        ("ACE", "Final", "worse")
    ]
    assert failures(before, changed(before, where, final=lambda one: one.final - 0.1)) == []


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
    """It is said as what it is, and values of runs of other lengths are not compared."""
    before = record()
    waits = changed(
        before, status=lambda one: Status.STALLED if one.seed == 2 else Status.DONE, updates_to_target=inf
    )
    assert failures(before, waits) == [("FedBuff", "Final", "worse")]
    names = [
        [(one.scenario, one.strategy, one.what) for one in compare(before, now)] for now in (before, waits)
    ]
    assert names[0] == names[1]
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


@pytest.mark.parametrize("seed", range(SEEDS))
@pytest.mark.parametrize("at", range(5))
def test_one_golden_value(seed: int, at: int) -> None:
    """A single loss of a single seed that differs by more than rounding."""

    def shifted(by: float) -> Baseline:
        def losses(one: BaselineRun) -> Sequence[tuple[int, float]]:
            return tuple((u, loss * (1 + by * (one.seed == seed and u == 80 * at))) for u, loss in one.loss)

        return changed(before, loss=losses)

    before = record()
    assert failures(before, shifted(2 * GOLDEN)) == [("FedBuff", "Golden", "changed")]
    assert failures(before, shifted(-2 * GOLDEN)) == [("FedBuff", "Golden", "changed")]
    assert failures(before, shifted(GOLDEN / 2)) == []


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
    slow = before.model_copy(update={"speed": {**before.speed, "ACE": 0.8 / (1.01 * SLOWER)}})
    assert failures(before, slow) == [("ACE", "Speed", "worse")]
    assert gate.too_slow(before.speed, slow.speed) == ["ACE"]
    assert (
        failures(
            before, before.model_copy(update={"speed": dict.fromkeys(STRATEGIES, 0.8 / (0.99 * SLOWER))})
        )
        == []
    )
    assert failures(before, before.model_copy(update={"speed": {}})) == []
    assert {one.finding for one in compare(slow, before)} == {"same", "better"}


def test_twenty_unchanged_reruns_pass() -> None:
    """On other processors, with stacked jobs: they differ by rounding, by a test sample here and there."""
    before, rng = record(), np.random.default_rng(1)
    assert [failures(before, rounded(before, rng)) for _ in range(20)] == [[]] * 20


def test_means_hardly_ever_fail_by_chance() -> None:
    """Runs that draw other random numbers: of 20 × 16 comparisons of means, none is called worse."""
    before = record()
    worse = [
        one for draws in range(1, 21) for one in compare(before, record(draws)) if one.finding == "worse"
    ]
    assert worse == []


def test_the_rate_of_false_alarms() -> None:
    """22 normal strategies of unequal spread, five seeds, redrawn 2,000 times: below one mean in 200."""
    rng = np.random.default_rng(0)
    spread = np.geomspace(0.5, 2, 22)
    alarms = 0
    for _ in range(2000):
        then, now = (spread[:, None] * rng.standard_normal((22, 5)) for _ in range(2))
        allowed = tolerances({("", str(at)): list(row) for at, row in enumerate(then)})
        alarms += int((now.mean(1) - then.mean(1) > np.array(list(allowed.values()))).sum())
    assert alarms / (2000 * 22) < 1 / 200


def test_a_spread_is_never_taken_for_less_than_the_usual_one() -> None:
    """A strategy whose five seeds happen to agree has the tolerance of the median one."""
    cells = {("", "a"): [1.0, 1.0], ("", "b"): [0.0, 2.0], ("", "c"): [0.0, 4.0], ("", "d"): [5.0]}
    found = tolerances(cells)
    assert found["", "a"] == found["", "b"] == pytest.approx(ERRORS * 2**0.5)
    assert found["", "c"] == pytest.approx(ERRORS * 8**0.5)
    assert found["", "d"] == pytest.approx(ERRORS * 2**0.5 * 2**0.5)


def test_a_baseline_is_read_as_it_was_written(tmp_path: Path) -> None:
    """Bit for bit, ∞ and NaN too; one run a line."""
    before = changed(record(), updates_to_target=inf)
    path = baseline.write(before, tmp_path / "new" / "ci.json")
    assert baseline.read(path) == before
    assert path.read_text().count("\n") == len(before.runs) + 15
    lost = changed(before, final=nan, status=Status.DIVERGED)
    assert compare(lost, baseline.read(baseline.write(lost, path))) == compare(lost, lost)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "is no baseline: Invalid JSON"),
        (b"\xff\xfe", "is no baseline: "),
        (b"[]", "is no baseline: "),
        (b'{"format": 2}', "is no baseline: format: "),
    ],
)
def test_what_is_no_baseline(tmp_path: Path, content: bytes, said: str) -> None:
    """One clear line."""
    path = tmp_path / "ci.json"
    path.write_bytes(content)
    with pytest.raises(UserError, match=rf"^{re.escape(str(path))}(:\d+)?: {re.escape(said)}") as caught:
        baseline.read(path)
    assert len(caught.value.lines) == 1 and "\n" not in str(caught.value)


def test_no_file_no_baseline(tmp_path: Path) -> None:
    """Missing, a folder, not to be written, not shipped."""
    with pytest.raises(UserError, match=r"no such baseline.*--write --baseline"):
        baseline.read(tmp_path / "none.json")
    with pytest.raises(UserError, match="cannot be read"):
        baseline.read(tmp_path)
    with pytest.raises(UserError, match="cannot be written"):
        baseline.write(record(), tmp_path)
    with pytest.raises(UserError, match="no baseline of suite 'mine' comes with asyncfl"):
        baseline.shipped("mine")


def test_one_seed_has_no_spread() -> None:
    """A tolerance would be invented."""
    one = record().model_copy(update={"runs": tuple(run for run in record().runs if run.seed == 0)})
    with pytest.raises(UserError, match="has one seed"):
        baseline.must_have_spread(one)
