"""The same two strategies on the same seeds have one answer wherever they are compared, SciPy's."""

from __future__ import annotations

import re
from math import inf
from typing import Any

import numpy as np
import pytest
from scipy import stats
from synthetic import Fake, curve, records

from benchmarks.claims.claim import Claim
from benchmarks.claims.kinds import KINDS
from benchmarks.mlflow_store.tags_and_metrics import target_metrics
from fl_core.metrics import ACCURACY
from fl_core.problems.digits import Digits
from fl_core.recorded_names import TO_TARGET, Clock, Status
from fl_core.recording.recorder import Record
from fl_core.scenario import Budget
from reports import comparisons, ranking_table
from reports.claims import measured, verdicts
from reports.gate import baseline
from reports.gate.baseline import Baseline, GateGoal
from reports.gate.gate import LEVEL, GateQuestion, compare
from reports.records.records import RecordedSuite, run_table
from reports.sections.time_to_target import times_to_target
from tuning import objective

METRIC, TARGET = "test/accuracy", 0.85
FEW = [(0.91, 0.90), (0.93, 0.915), (0.92, 0.92), (0.93, 0.915), (0.90, 0.905)]
MANY = [*FEW, (0.94, 0.91), (0.925, 0.90), (0.93, 0.92), (0.915, 0.89), (0.93, 0.93)]
FAR_APART = [(0.9 + 0.002 * at, 0.8 + 0.003 * (at % 3)) for at in range(9)]


def better(**fields: Any) -> Claim:
    """A claim that FedBuff is ahead of ACE."""
    usual = {
        "id": "T-row/case",
        "place": "§1",
        "statement": "FedBuff is ahead of ACE.",
        "kind": "better",
        "clock": "updates",
        "rates": "stated",
        "scenario": "somewhere",
        "metric": METRIC,
        "a": {},
        "b": {},
    }
    return KINDS["better"].model_validate(usual | fields)


def finals(pairs: list[tuple[float, float]], metric: str = METRIC) -> RecordedSuite:
    """Runs of FedBuff and ACE that end with these accuracies, seed by seed, and losses of 1 minus these."""
    how = {"target": None, "metric": metric, "higher": metric == METRIC}
    return records(
        *(
            Fake(strategy=name, seed=seed, curve=curve([0.1, value], [0, 10]), **how)
            for seed, pair in enumerate(pairs)
            for name, value in zip(("FedBuff", "ACE"), pair, strict=True)
        )
    )


@pytest.mark.parametrize("metric", [METRIC, "test/loss"])
@pytest.mark.parametrize("pairs", [FEW, MANY, FAR_APART])
def test_difference_interval_and_p_value_are_those_of_a_paired_t_test(
    pairs: list[tuple[float, float]], metric: str
) -> None:
    """Of the better one less the worse one: a loss has the same numbers as its accuracy."""
    suite, (first, second) = finals(pairs, metric), np.transpose(pairs)
    test = stats.ttest_rel(first, second)
    low, high = test.confidence_interval(0.95)
    expected = pytest.approx((np.mean(first - second), low, high, test.pvalue))
    (scenario,) = suite.scenarios()

    gap = comparisons.differences(scenario)["ACE"]  # the page: behind the best
    assert (gap.effect.mean, gap.effect.low, gap.effect.high, gap.p) == expected
    ranked = ranking_table.standings([scenario])  # the page: who leads
    assert ranked is not None and ranked.lines[1].gap == gap
    (contrast,) = comparisons.contrasts([scenario])  # the page, and the terminal: what holds
    assert (contrast.effect.mean, contrast.effect.low, contrast.effect.high, contrast.p) == expected
    (answer,) = comparisons.compare([scenario], "FedBuff", "ACE", metric)  # `asyncfl compare`
    assert answer.effect is not None
    assert (answer.effect.mean, answer.effect.low, answer.effect.high, answer.p) == expected

    claim = better(looks=(len(pairs),), metric=metric)  # at a single look the whole 5 % may be spent
    ends = (first, second) if metric == METRIC else (1 - first, 1 - second)
    values = dict(zip("ab", (dict(enumerate(of)) for of in ends), strict=True))
    (look,) = verdicts.looks(claim, values)
    p, _ = look.tests["side"]
    assert (look.shown.found, look.shown.low, look.shown.high) == pytest.approx(
        (np.mean(first - second), low, high)
    )
    assert p >= test.pvalue * (1 - 1e-9)  # two more tests must agree with the t-test
    if p <= 0.05:
        assert answer.decided and verdicts.judge(claim, values).word == "confirmed"


@pytest.mark.parametrize("pairs", [FEW, MANY, FAR_APART])
def test_the_gate_shows_the_same_difference_and_interval_at_its_level(
    pairs: list[tuple[float, float]],
) -> None:
    """ACE in the place of FedBuff, as if a build had changed one into the other."""
    suite = finals(pairs)
    runs = {name: [run for run in suite.runs if run.strategy == name] for name in ("FedBuff", "ACE")}
    before, now = (
        Baseline(
            suite="suite",
            commit="0123456789abcdef",
            versions={},
            goals={
                runs[name][0].scenario: GateGoal(
                    metric=METRIC, higher=True, target=None, title=METRIC, share=True, unit=""
                )
            },
            speed={},
            runs=[
                baseline._outcome(run, "0").model_copy(update={"strategy": "it", "key": str(run.seed)})
                for run in runs[name]
            ],
        )
        for name in ("FedBuff", "ACE")
    )
    check = next(iter(compare(before, now, [GateQuestion.QUALITY])))
    assert check.what.startswith("Final")
    shown = [float(text.replace("−", "-")) for text in re.findall(r"[−+]?\d+(?:\.\d+)?", check.change)]
    first, second = np.transpose(pairs)
    low, high = stats.ttest_rel(second, first).confidence_interval(LEVEL)
    assert shown == pytest.approx([100 * value for value in (np.mean(second - first), low, high)], abs=0.0501)
    if high < 0:
        assert check.finding == "worse"


STATUSES = {
    "met, and missed again": ([0.1, 0.5, 0.9, 0.2, 0.95], Status.DONE),
    "met at once": ([0.85, 0.8, 0.7], Status.DONE),
    "met in the end": ([0.1, 0.84, 0.85], Status.DONE),
    "cut": ([0.1, 0.5, 0.849], Status.DONE),
    "stalled": ([0.1, 0.5], Status.STALLED),
    "met and stalled": ([0.1, 0.9], Status.STALLED),
    "diverged": ([0.1, 0.5, float("nan")], Status.DIVERGED),
    "met and diverged": ([0.1, 0.9, float("nan")], Status.DIVERGED),
}


@pytest.mark.parametrize("outcome", STATUSES)
def test_one_time_to_target_everywhere(outcome: str) -> None:
    values, status = STATUSES[outcome]
    updates = [10 * at for at in range(len(values))]
    rows = [
        {
            "iteration": at // 2,
            "updates": at,
            "time": 1.5 * at,
            "bytes": 8.0 * at,
            "uploads_bytes": 4 * at,
            "energy": 2.5 * at,
            METRIC: value,
        }
        for at, value in zip(updates, values, strict=True)
    ]
    met: dict[str, float] = dict.fromkeys(TO_TARGET.values(), inf)
    for row in rows:  # from the rules: the first evaluation that is as good
        if row[METRIC] >= TARGET:
            met = {clock: row[clock] for clock in TO_TARGET.values()}
            break
    columns: dict[str, Any] = {name: [row[name] for row in rows] for name in rows[0]}
    fake = Fake(status=str(status), target=TARGET, curve=columns, params={})
    suite = records(fake)
    (run,), (scenario,) = suite.runs, suite.scenarios()
    (cell,) = scenario.cells
    written = target_metrics(Record(status=status, curve=rows), Digits(target=TARGET))
    sample = better(clock="time", reach=TARGET)
    for name, clock in TO_TARGET.items():
        assert written.get(name, inf) == met[clock]  # MLflow
        assert run.time_to_target(clock, TARGET) == met[clock]
        assert cell.reach(clock).median == met[clock]  # the ranking
        assert run_table(suite)[name][0] == met[clock]  # the table
    times = times_to_target(scenario)  # the section of times, for the clocks that the page shows
    assert dict(zip(times["clock"], times["met at"], strict=True)) == {
        clock.value: met[clock] for clock in (Clock.UPDATES, Clock.TIME, Clock.ENERGY)
    }
    assert baseline._outcome(run, "0").updates_to_target == met[Clock.UPDATES]  # the gate
    a_sample = sample.samples["a"]
    assert measured._of_run(sample, a_sample, run, inf) == met[Clock.TIME]  # claims
    judged = objective.Objective("time_to_target", ACCURACY, 1, TARGET, Budget(time=100), 1)
    trial = judged.measured(objective.curve_of(Record(status=status, curve=rows), METRIC))
    assert trial.get("objective/time_hard", inf) == met[Clock.TIME]  # tuning, and the leaderboard's runs


def test_a_page_and_compare_cut_times_to_target_alike() -> None:
    """Two that never met the target: one was cut at 30, one diverged; their partners met it at 15."""
    never, soon = [0.1, 0.5, 0.5], [0.1, 0.9, 0.9]
    runs = [
        *(Fake(strategy="FedBuff", seed=seed, curve=curve(soon, [0, 10, 20])) for seed in range(4)),
        *(Fake(strategy="ACE", seed=seed, curve=curve(never, [0, 10, 20])) for seed in range(3)),
        Fake(strategy="ACE", seed=3, status="diverged", curve=curve(never, [0, 5, 10])),
    ]
    scenarios = records(*runs).scenarios()
    (answer,) = comparisons.compare(scenarios, "FedBuff", "ACE", "time_to_target")
    contrast = next(one for one in comparisons.contrasts(scenarios) if one.question == "time to target")
    assert answer.restricted == contrast.effect
    assert contrast.effect.mean == 15  # 30 − 15 in every seed; of the diverged one up to the other's end
