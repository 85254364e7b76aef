"""Two strategies compared: against SciPy's own tests, and in words."""

from __future__ import annotations

from dataclasses import replace
from math import inf, isinf, isnan
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from synthetic import Fake, curve, diverged, records, write_store

from benchmarks.commands.group import asyncfl
from benchmarks.errors import UserError
from reports.comparison_text import answer
from reports.comparisons import Comparison, compare, overall
from reports.numbers import measure
from reports.statistical_inference import holm, seeds_to_decide

ONE, TWO = (0.90, 0.93, 0.95, 0.91), (0.88, 0.92, 0.95, 0.90)


def fakes(strategy: str, finals: tuple[float, ...], scenario: str = "a", first: int = 0) -> list[Fake]:
    """A run a seed."""
    return [
        Fake(scenario, strategy, seed, curve=curve([0.1, 0.5, final], [0, 10, 20]))
        for seed, final in enumerate(finals, first)
    ]


def ask(*runs: Fake, metric: str = "test/accuracy") -> list[Comparison]:
    return compare(records(*runs).scenarios(), "FedBuff", "ACE", metric)


def words(found: Comparison) -> str:
    return " ".join(answer(found, "FedBuff", "ACE"))


def test_a_paired_t_test() -> None:
    (found,) = ask(*fakes("FedBuff", ONE), *fakes("ACE", TWO))
    by_scipy = stats.ttest_rel(ONE, TWO)
    assert found.effect is not None
    assert found.p == pytest.approx(by_scipy.pvalue)
    interval = by_scipy.confidence_interval(0.95)
    assert (found.effect.low, found.effect.high) == pytest.approx((interval.low, interval.high))
    assert found.effect.mean == pytest.approx(np.mean(ONE) - np.mean(TWO))
    assert not found.decided
    assert words(found) == (
        "Undecided: FedBuff is ahead of ACE by 1.0 points [−0.3, 2.3], 4 seeds, p = 0.092; "
        f"about {seeds_to_decide(found.effect)} seeds would decide. Mean: FedBuff 92.3 %, ACE 91.2 %."
    )


def test_the_other_one_ahead_reads_the_same_way() -> None:
    (found,) = ask(*fakes("FedBuff", (0.80, 0.81, 0.80)), *fakes("ACE", (0.90, 0.92, 0.92)))
    assert found.decided
    low, high = stats.t.interval(0.95, 2, 11, 1 / np.sqrt(3))
    assert words(found).startswith(f"ACE is ahead of FedBuff by 11.0 points [{low:.1f}, {high:.1f}], 3 seeds")


def test_intervals_hold_together_over_the_scenarios() -> None:
    """At 1 − 0.05/3 each: SciPy's own interval at that level, and no zero outside where p says nothing."""
    near = (0.895, 0.915, 0.93, 0.905)
    others = (TWO, near, (0.5, 0.4, 0.6, 0.5))
    runs = [
        fake
        for scenario, other in zip("abc", others, strict=True)
        for fake in (*fakes("FedBuff", ONE, scenario), *fakes("ACE", other, scenario))
    ]
    found = ask(*runs)
    for one, other in zip(found, others, strict=True):
        interval = stats.ttest_rel(ONE, other).confidence_interval(1 - 0.05 / 3)
        assert one.effect is not None and one.tests == 3
        assert (one.effect.low, one.effect.high) == pytest.approx((interval.low, interval.high))
        assert one.decided or one.effect.low <= 0 <= one.effect.high
    alone_p = [stats.ttest_rel(ONE, other).pvalue for other in others]
    assert [one.p for one in found] == pytest.approx(holm(alone_p))
    assert [one.decided for one in found] == [False, False, True]
    together = overall(records(*runs).scenarios(), found)
    assert together is not None and together.effect is not None and together.tests == 1
    mean = np.mean(others, axis=0)
    alone = stats.ttest_rel(ONE, mean).confidence_interval(0.95)
    assert (together.effect.low, together.effect.high) == pytest.approx((alone.low, alone.high))
    elsewhere = [replace(run, problem="mnist") if run.scenario == "b" else run for run in runs]
    assert overall(records(*elsewhere).scenarios(), found) is None


def test_only_seeds_of_both_are_paired_and_the_others_are_named() -> None:
    lost = diverged(fakes("ACE", (0.5,), first=3)[0])
    going = replace(fakes("ACE", (0.5,), first=2)[0], status="running", curve=None)
    (found,) = ask(
        *fakes("FedBuff", ONE), *fakes("ACE", TWO[:2]), going, lost, *fakes("ACE", (0.9,), first=9)
    )
    assert set(found.pairs) == {0, 1}
    assert words(found).endswith(
        "Note: seed 2: ACE is unfinished; seed 3: ACE diverged; seed 9: FedBuff was not run."
    )
    (nothing,) = ask(*fakes("FedBuff", (0.9,)), *fakes("ACE", (0.9,), first=1))
    assert nothing.effect is None and isnan(nothing.p) and "no seed in common" in words(nothing)


def test_targets_that_were_never_met_count_up_to_the_end_of_these_runs() -> None:
    """FedBuff meets the target, 0.85, at 10, 10, 20, 20, ACE once at 20, where its other runs end."""
    soon = [Fake("a", "FedBuff", seed, curve=curve([0.1, 0.9, 0.9], [0, 10, 20])) for seed in (0, 1)]
    runs = [*soon, *fakes("FedBuff", ONE[:2], first=2), *fakes("ACE", (0.9, 0.5, 0.5, 0.5))]
    (found,) = ask(*runs, metric="updates_to_target")
    assert found.effect is None and found.medians == (15, inf) and found.met == (4, 1)
    assert found.wins == (4, 0)
    assert found.p == pytest.approx(stats.ttest_rel([20, 20, 20, 20], [10, 10, 20, 20]).pvalue)
    assert words(found) == (
        "Undecided: FedBuff meets 85\N{NO-BREAK SPACE}% before ACE on 4 of 4 seeds, p = 0.18 (times cut "
        "where a run that never met it ended). "
        "Median client updates: FedBuff 15 (4 of 4 seeds), ACE ∞ (1 of 4). "
        "Evaluations are 10 client updates apart: a target was met up to that much earlier."
    )
    never = [*fakes("FedBuff", (0.1, 0.1)), *fakes("ACE", (0.1, 0.1))]
    (found,) = ask(*never, metric="time_to_target")
    assert found.p == 1 and words(found).startswith("Neither is ahead on any of 2 seeds.")
    assert "Evaluations" not in words(found)


def test_a_run_that_diverged_is_never_dropped_from_a_target() -> None:
    lost = diverged(fakes("ACE", (0.9,), first=1)[0], after=2)
    (found,) = ask(*fakes("FedBuff", (0.9, 0.9)), *fakes("ACE", (0.9,)), lost, metric="updates_to_target")
    assert found.pairs == {0: (20, 20), 1: (20, inf)}
    assert "seed 1: ACE diverged (never, unless the target was met before)" in words(found)
    early = [diverged(run, after=1) for run in fakes("ACE", (0.9, 0.9, 0.9))]
    soon = [Fake("a", "FedBuff", seed, curve=curve([0.1, 0.9, 0.9], [0, 10 + seed, 20])) for seed in range(3)]
    (found,) = ask(*soon, *early, metric="updates_to_target")
    assert found.restricted is not None and found.restricted.mean == 9  # 20 less 10, 11 and 12


@pytest.mark.parametrize(
    ("status", "reason"), [("stalled", "no update came"), ("done", "no client is left"), ("diverged", "")]
)
def test_a_run_at_a_standstill_misses_the_target_until_the_other_ends(status: str, reason: str) -> None:
    """FedBuff meets the target at 8 of 40; ACE ends at 0 and would never go on: pairs (8, 40)."""
    soon = [Fake("a", "FedBuff", seed, curve=curve([0.1, 0.9, 0.9], [0, 8, 40])) for seed in range(4)]
    still = [Fake("a", "ACE", seed, status, curve=curve([0.1], [0]), reason=reason) for seed in range(4)]
    (found,) = ask(*soon, *still, metric="updates_to_target")
    assert found.pairs == dict.fromkeys(range(4), (8, inf))
    assert found.restricted is not None and found.restricted.mean == 32
    assert found.restricted.p == found.p == 2.0**-3


def test_a_run_that_met_the_target_and_stalled_is_before_one_that_diverged() -> None:
    met = [
        Fake("a", "FedBuff", seed, "stalled", curve=curve([0.1, 0.9, 0.9], [0, 8, 30])) for seed in range(3)
    ]
    lost = [diverged(Fake("a", "ACE", seed, curve=curve([0.1, 0.2], [0, 2]))) for seed in range(3)]
    (found,) = ask(*met, *lost, metric="updates_to_target")
    assert found.restricted is not None and found.restricted.mean == 22


def test_targets_met_by_all_are_compared_by_their_mean() -> None:
    (found,) = ask(*fakes("FedBuff", ONE), *fakes("ACE", TWO), metric="time_to_target")
    assert found.effect is not None and found.effect.mean == 0 and found.p == 1
    assert words(found).startswith("They are equal")
    assert isinf(found.effect.low) and "∞" not in words(found)


steps = st.lists(st.tuples(st.integers(1, 30), st.floats(0, 1)), min_size=2, max_size=6)


@given(steps, steps)
def test_the_area_is_that_of_step_functions(
    one: list[tuple[int, float]], two: list[tuple[int, float]]
) -> None:
    def run(strategy: str, steps: list[tuple[int, float]]) -> tuple[Fake, list[float]]:
        at = [0, *np.cumsum([step for step, _ in steps])][: len(steps)]
        values = [value for _, value in steps]
        each = [value for k, value in enumerate(values[:-1]) for _ in range(at[k], at[k + 1])]
        return Fake("a", strategy, curve=curve(values, [int(mark) for mark in at])), each

    (first, mine), (second, theirs) = run("FedBuff", one), run("ACE", two)
    (found,) = ask(first, second, metric="auc")
    end = min(len(mine), len(theirs))
    assert found.pairs[0] == pytest.approx((np.mean(mine[:end]), np.mean(theirs[:end])))


def test_metrics_nobody_calls_good_or_bad_are_above_not_ahead() -> None:
    runs = [
        Fake("a", name, seed, curve=curve([0.1, 0.5], [0, 10], odd=[0.0, at + seed / 100]))
        for name, at in (("FedBuff", 3.0), ("ACE", 1.0))
        for seed in range(3)
    ]
    (found,) = ask(*runs, metric="odd")
    assert measure("odd").higher is None
    assert "FedBuff is above ACE by 2.0 [" in words(found)


def test_times_to_target_carry_the_step_of_the_evaluations() -> None:
    """FedBuff and ACE are evaluated every 10 updates, of 1.5 units of time each."""
    runs = [
        Fake(strategy=name, seed=seed, curve=curve([0.1, 0.5, 0.9, 0.9], [0, 10, 20, 30]))
        for name in ("FedBuff", "ACE")
        for seed in range(2)
    ]
    (found,) = ask(*runs, metric="time_to_target")
    assert found.step == 15 and "Evaluations are 15 units of virtual time apart" in words(found)
    (found,) = ask(*runs, metric="updates_to_target")
    assert found.step == 10
    (found,) = ask(*runs, metric="test/accuracy")
    assert isnan(found.step) and "apart" not in words(found)


def invoke(store: str, *arguments: str) -> str:
    """What the command prints, of suite 'two' unless another is named."""
    suite = () if "--suite" in arguments else ("--suite", "two")
    done = CliRunner().invoke(asyncfl, ["compare", *arguments, *suite, "--tracking-uri", store])
    if done.exception:
        raise done.exception
    return done.output


def test_the_command(store: str) -> None:
    said = invoke(store, "fedbuff", "ACE", "--metric", "test/accuracy", "--metric", "updates_to_target")
    assert "FedBuff and ACE, test accuracy at the end" in said
    assert "Undecided: FedBuff is ahead of ACE by 10.0 points [no interval], 3 seeds" in said
    assert "FedBuff and ACE, client updates until the target is met" in said
    assert "Median client updates: FedBuff 20 (2 of 3 seeds), ACE ∞ (0 of 3)." in said


def test_the_time_to_a_target_is_compared_where_one_is_set(store: str, tmp_path: Path) -> None:
    said = invoke(store, "fedbuff", "ACE")
    assert said.index("test accuracy at the end") < said.index("virtual time until the target is met")
    uri, runs = f"sqlite:///{tmp_path}/mlflow.db", [*fakes("FedBuff", ONE[:2]), *fakes("ACE", TWO[:2])]
    write_store(uri, tmp_path.as_uri(), "two", [replace(run, target=None) for run in runs])
    assert "until the target is met" not in invoke(uri, "fedbuff", "ACE")


def test_strategies_go_by_label_title_or_name(tmp_path: Path) -> None:
    """The title alone while no other label shares it; the name as a suite writes it, import path included."""
    own = {"strategy.name": "mine.strategies:Heavy"}
    labels = ("Heavy (momentum 0.3)", "FedBuff (buffer 5)", "FedBuff (buffer 10)")
    runs = [one for label in labels for one in fakes(label, TWO[:2])]
    runs = [replace(one, params=own) if one.strategy == labels[0] else one for one in runs]
    uri = f"sqlite:///{tmp_path}/mlflow.db"
    write_store(uri, tmp_path.as_uri(), "two", runs)
    for name in ("Heavy (momentum 0.3)", "heavy", "mine.strategies:Heavy"):
        assert "Heavy (momentum 0.3) and FedBuff (buffer 5)" in invoke(uri, name, "FedBuff (buffer 5)")
    with pytest.raises(UserError) as caught:
        invoke(uri, "Heavy", "FedBuff")
    assert caught.value.lines[0] == (
        "ambiguous strategy 'FedBuff': give one of FedBuff (buffer 5), FedBuff (buffer 10)"
    )


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            ("FedBuf", "ACE"),
            "strategy 'FedBuf' is not recorded. Did you mean 'FedBuff'? Available: ACE, FedBuff",
        ),
        (("ACE", "ACE"), "cannot compare ACE with itself"),
        (("ACE", "FedBuff", "--scenario", "mars"), "scenario 'mars' is not recorded. Available: digits"),
        (("ACE", "FedBuff", "--metric", "test/los"), "Did you mean 'test/loss'?"),
        (("ACE", "FedBuff", "--suite", "tow"), "Did you mean 'two'?"),
        (("ACE", "FedBuff", "--suite", "empty"), "no run of a suite 'empty' is recorded"),
    ],
)
def test_a_wrong_name_is_one_line_with_what_there_is(
    store: str, arguments: tuple[str, ...], sentence: str
) -> None:
    with pytest.raises(UserError) as caught:
        invoke(store, *arguments)
    (line,) = caught.value.lines
    assert sentence in line and "\n" not in line
