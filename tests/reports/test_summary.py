"""What the seeds came to, against numbers worked by hand."""

from __future__ import annotations

import re
from dataclasses import replace
from math import inf, isnan

import numpy as np
import pytest
from synthetic import POOLED, START, Fake, baseline, curve, diverged, records

from fl_core.recorded_names import UNTUNED, Status, Tag
from reports.ranking_table import ranking, ranking_frame
from reports.records.records import RecordedScenario, RecordedSuite, latest
from reports.records.seed_summaries import Cell, Spread, band, over_scenarios
from reports.sections.clients import (
    bin_text,
    client_summary,
    client_values,
    compared_by,
    participation_shares,
    staleness_shares,
)
from reports.sections.overview import remarks

MARKS = [0, 10, 20, 30]
REACHES_AT_20 = Fake(curve=curve([0.1, 0.5, 0.86, 0.9], MARKS))
NEVER_REACHES = Fake(seed=1, curve=curve([0.1, 0.2, 0.3, 0.8], MARKS))
REACHES_AT_10 = Fake(seed=2, curve=curve([0.1, 0.85, 0.2, 0.85], MARKS))
THREE = (REACHES_AT_20, NEVER_REACHES, REACHES_AT_10)


def only(suite: RecordedSuite) -> tuple[RecordedScenario, list[Cell]]:
    (scenario,) = suite.scenarios()
    return scenario, scenario.ranked


def test_finals_are_mean_and_sample_deviation_over_seeds() -> None:
    _, (row,) = only(records(*THREE))
    final = row.final["test/accuracy"]
    assert (final.mean, final.std, final.n) == pytest.approx((0.85, 0.05, 3))


def test_time_to_target_is_the_median_with_never_as_infinity() -> None:
    _, (row,) = only(records(*THREE))
    updates = row.reach("updates")
    assert (updates.median, updates.reached, updates.of) == (20, 2, 3)
    assert row.reach("time").median == 30  # 1.5 a time of 20 updates
    late = replace(REACHES_AT_10, curve=NEVER_REACHES.curve)
    _, (row,) = only(records(REACHES_AT_20, NEVER_REACHES, late))
    assert (row.reach("updates").median, row.reach("updates").reached) == (inf, 1)


def test_staleness_is_averaged_over_updates_and_then_over_seeds() -> None:
    calm, wild = (
        replace(REACHES_AT_20, staleness=(0, 0, 0, 4)),
        replace(NEVER_REACHES, staleness=(3, 3), client=(0, 1)),
    )
    _, (row,) = only(records(calm, wild))
    assert row.staleness[0] == pytest.approx((1 + 3) / 2)
    assert row.staleness[1] == 4


def test_one_seed_has_no_deviation() -> None:
    _, (row,) = only(records(REACHES_AT_20))
    assert row.final["test/accuracy"].mean == 0.9 and isnan(row.final["test/accuracy"].std)
    assert isnan(Spread.of([]).mean)


def test_a_diverged_run_is_counted_and_never_ranks_its_strategy_first() -> None:
    bad = [
        replace(run, strategy="Better but wild") for run in (REACHES_AT_20, diverged(NEVER_REACHES, after=3))
    ]
    good = replace(NEVER_REACHES, strategy="Worse but calm")
    scenario, rows = only(records(*bad, good))
    assert [row.strategy for row in rows] == ["Worse but calm", "Better but wild"]
    wild = rows[1]
    assert (wild.diverged, wild.final["test/accuracy"].mean, wild.final["test/accuracy"].n) == (1, 0.9, 1)
    assert wild.reach("updates").of == 2 and wild.reach("updates").median == inf
    assert wild.seeds == "2 (1 diverged)"
    best = [cell.strategy for cell, entries in ranking(scenario).lines if entries[0].best]
    assert best == ["Worse but calm"]


def test_a_target_met_before_diverging_was_met() -> None:
    _, (row,) = only(records(diverged(REACHES_AT_20, after=4)))
    assert (row.reach("updates").median, row.reach("updates").reached) == (20, 1)
    assert isnan(row.final["test/accuracy"].mean)


def test_a_stalled_run_counts_with_its_last_model_and_is_seen() -> None:
    short = replace(Fake(seed=1, curve=curve([0.1, 0.3], [0, 4])), status="stalled")
    suite = records(REACHES_AT_20, short)
    scenario, (row,) = only(suite)
    assert (row.stalled, row.diverged) == (1, 0)
    assert (row.final["test/accuracy"].mean, row.final["test/accuracy"].n) == (pytest.approx(0.6), 2)
    assert (row.reach("updates").reached, row.reach("updates").of) == (1, 2)
    assert row.seeds == "2 (1 stalled)"
    assert ranking_frame([scenario]).loc[0, ["done", "stalled", "diverged"]].tolist() == [1, 1, 0]
    assert any(remark.startswith("Stalled runs") and remark.endswith(": 1.") for remark in remarks(suite))
    assert band(row, "test/accuracy", "updates").mean[-1] == pytest.approx(0.6)


@pytest.mark.parametrize("status", ["running", "error"])
def test_runs_that_have_not_ended_are_neither_counted_as_late_nor_as_final(status: str) -> None:
    _, (row,) = only(records(REACHES_AT_20, replace(NEVER_REACHES, status=status, curve=None)))
    assert row.reach("updates").of == 1 and row.final["test/accuracy"].n == 1
    assert row.seeds == "2 (1 unfinished)"


@pytest.mark.parametrize("status", [one for one in Status if one not in {Status.UNREADABLE, Status.PRUNED}])
@pytest.mark.parametrize("lost", [False, True])
def test_every_seed_is_counted_once(status: Status, lost: bool) -> None:
    """A stalled run without its curve was counted as stalled and as unfinished."""
    seed = replace(REACHES_AT_20, seed=1, status=status)
    _, (row,) = only(records(REACHES_AT_20, replace(seed, curve=None) if lost else seed))
    special = sum(int(n) for n in re.findall(r"(\d+) [a-z]", row.seeds))
    assert len(row.having(Status.DONE)) + special == 2


def test_less_is_better_where_the_problem_says_so() -> None:
    def quadratic(strategy: str, end: float) -> Fake:
        ends = {
            "distance": [4.0, 2.0, end],
            **{k: v for k, v in curve([0, 0, 0], [0, 5, 10]).items() if "/" not in k},
        }
        fields = {"metric": "distance", "higher": False, "target": 0.5, "problem": "quadratic"}
        return Fake(strategy=strategy, curve=ends, **fields)

    scenario, rows = only(records(quadratic("far", 1.0), quadratic("near", 0.25)))
    assert [row.strategy for row in rows] == ["near", "far"]
    assert [row.reach("updates").median for row in rows] == [10, inf]
    assert scenario.columns[0].heading == "Distance to the optimum"


def test_the_first_metric_that_a_suite_shows_ranks() -> None:
    def fake(strategy: str, accuracy: float, loss: float) -> Fake:
        ends = curve([0.1, accuracy], [0, 10], **{"fp/loss": [2.0, loss]})
        return Fake(strategy=strategy, curve=ends, show="fp/loss, not/recorded")

    scenario, rows = only(records(fake("accurate", 0.9, 0.5), fake("low loss", 0.8, 0.3)))
    assert [one.name for one in scenario.columns] == ["fp/loss", "test/accuracy"]
    assert [one.name for one in scenario.shown] == ["fp/loss"]
    assert [row.strategy for row in rows] == ["low loss", "accurate"]


def test_the_baseline_belongs_to_its_problem() -> None:
    suite = records(REACHES_AT_20, pooled=[*POOLED, baseline("other", 0, {"test/accuracy": 0.1})])
    scenario, _ = only(suite)
    assert scenario.pooled["test/accuracy"] == pytest.approx((0.968, 0.969, 0.970))
    assert ranking(scenario).pooled[0].text == "96.9"


def test_an_edited_suite_does_not_mix_its_versions() -> None:
    before = [replace(run, params={"strategy.buffer": "5"}) for run in THREE]
    after = [replace(run, started=START + 60_000, params={"strategy.buffer": "10"}) for run in THREE[:2]]
    suite = records(*before, *after)
    assert [run.params["strategy.buffer"] for run in suite.runs] == ["10", "10"]
    assert len(suite.older) == 3
    # A field more is another description, unless another version of the code records it.
    more = [replace(run, params={"strategy.buffer": "5", "non_finite": "end"}) for run in THREE[1:]]
    assert len(records(*before[:1], *more).runs) == 2
    later = [replace(run, tags=run.tags | {Tag.COMMIT: "later"}) for run in records(*more).runs]
    assert len(latest([*records(*before[:1]).runs, *later])[0]) == 3
    # What the runner marks is left out, even if it was begun last.
    marked = [replace(run, superseded=True) for run in after]
    chosen = records(*before, *marked)
    assert {run.params["strategy.buffer"] for run in chosen.runs} == {"5"} and len(chosen.runs) == 3
    again = records(REACHES_AT_20, replace(REACHES_AT_20, started=START + 1))
    assert len(again.runs) == 1 and len(again.older) == 1


def test_what_is_missing_or_went_wrong_is_said() -> None:
    other = replace(REACHES_AT_20, strategy="ACE")
    suite = records(*THREE, other, diverged(replace(other, seed=1)))
    assert suite.missing == 1
    said = " ".join(remarks(suite))
    assert "not recorded yet: 1." in said and "without a final value: 1." in said
    assert remarks(records(*THREE)) == []


def test_one_seed_is_warned_of_where_strategies_are_compared() -> None:
    pair = [REACHES_AT_20, replace(REACHES_AT_20, strategy="ACE")]
    assert remarks(records(*pair))[0].startswith("One seed only: nothing here shows")
    assert remarks(records(*pair, *(replace(one, seed=1) for one in pair))) == []
    assert remarks(records(REACHES_AT_20)) == []


def test_one_rate_for_all_strategies_is_warned_of() -> None:
    """Where strategies are compared; not of tuned values, nor of rates that differ."""

    def made(*rates: str, name: str = "suite") -> RecordedSuite:
        params = [{"strategy.name": "fedbuff", "strategy.local_lr": rate} for rate in rates]
        fakes = [replace(REACHES_AT_20, strategy=f"S{at}", params=one) for at, one in enumerate(params)]
        return records(*fakes, *(replace(one, seed=1) for one in fakes), name=name)

    assert remarks(made("0.1", "0.1")) == [UNTUNED]
    assert remarks(made("0.1", "0.2")) == remarks(made("0.1")) == []
    assert remarks(made("0.1", "0.1", name="suite-tuned")) == []


def test_the_share_of_transfers_is_told() -> None:
    """With advice on the size of messages where it is small and no size was given."""

    def told(*shares: float, **params: str) -> list[str]:
        fakes = [
            replace(REACHES_AT_20, seed=seed, totals={"transfer_share": share}, params=params)
            for seed, share in enumerate(shares)
        ]
        return remarks(records(*fakes))

    assert told(0.25, 0.5) == ["Transfers take 25.0 to 50.0 % of the clients' working time."]
    (advice,) = told(0.001, 0.002)
    assert "0.1 to 0.2 %" in advice and "timing.network.message" in advice
    (plain,) = told(0.001, 0.002, **{"timing.network.message": "2600"})
    assert "0.1 to 0.2 %" in plain and "timing.network.message" not in plain


def test_a_total_that_the_suite_shows_is_a_column_without_a_curve() -> None:
    """And does not rank."""
    shares = (0.2, 0.4)
    fakes = [
        replace(REACHES_AT_20, seed=seed, show="transfer_share", totals={"transfer_share": share})
        for seed, share in enumerate(shares)
    ]
    scenario, (row,) = only(records(*fakes))
    assert row.final["transfer_share"].mean == pytest.approx(0.3)
    assert [metric.name for metric in scenario.columns[:2]] == ["test/accuracy", "transfer_share"]
    assert [metric.name for metric in scenario.shown] == ["test/accuracy"]
    entries = dict(zip(*(ranking(scenario).columns, ranking(scenario).lines[0][1]), strict=True))
    (heading,) = [title for title, _ in entries if title.startswith("Working time in transfers")]
    assert heading.endswith("(%)")


def test_bands_step_and_leave_diverged_runs_out() -> None:
    early, late = curve([0.0, 0.4], [0, 10]), curve([0.2, 0.8], [0, 20])
    lost = diverged(Fake(seed=2, curve=curve([0.0, 0.9, 0.9], [0, 10, 20])), after=2)
    scenario, _ = only(records(Fake(curve=early), Fake(seed=1, curve=late), lost))
    found = band(scenario.cells[0], "test/accuracy", "updates")
    assert found.grid == pytest.approx([0, 20])
    assert found.mean == pytest.approx([0.1, 0.6])
    assert found.low == pytest.approx([0.0, 0.4]) and found.high == pytest.approx([0.2, 0.8])
    assert found.n == 2 and len(found.lost) == 1 and found.lost[0][0] == pytest.approx([0, 10])


def test_along_the_clock_of_the_budget_a_curve_has_every_mark() -> None:
    """Where a mark has no row, the model was the one of the row before."""
    early, late = curve([0.0, 0.4, 0.6], [0, 10, 20]), curve([0.2, 0.8], [0, 20])
    budget = {"strategy.name": "fedbuff", "budget.updates": "20"}
    first, second = Fake(curve=early, params=budget), Fake(seed=1, curve=late, params=budget)
    scenario, _ = only(records(first, second))
    found = band(scenario.cells[0], "test/accuracy", "updates")
    assert found.grid == pytest.approx([0, 10, 20])
    assert found.mean == pytest.approx([0.1, 0.3, 0.7])
    by_time = band(scenario.cells[0], "test/accuracy", "time")  # marks are not the same there
    assert by_time.grid == pytest.approx([0, 30])

    pair = records(Fake(curve=early, params=budget), Fake(curve=late, params=budget, scenario="other"))
    found = over_scenarios([one.cells[0] for one in pair.scenarios()], "test/accuracy", "updates")
    assert found.grid == pytest.approx([0, 10, 20])
    assert found.mean == pytest.approx([0.1, 0.3, 0.7])


def test_bins_of_staleness_double() -> None:
    run = replace(REACHES_AT_20, staleness=(0, 1, 2, 3, 4, 5, 8, 9), client=(0,) * 8)
    scenario, _ = only(records(run))
    assert staleness_shares(scenario.cells[0]) == pytest.approx(np.array([1, 1, 1, 2, 2, 1]) / 8)
    assert [bin_text(at) for at in range(6)] == ["0", "1", "2", "4", "8", "16"]


def test_participation_is_sorted_by_speed() -> None:
    clients = {
        "client": [0, 1, 2],
        "importance": [1 / 3] * 3,
        "mean_time": [5.0, 1.0, 3.0],
        "accuracy": [0.5] * 3,
    }
    run = replace(REACHES_AT_20, clients=clients, client=(1, 1, 1, 2))
    scenario, _ = only(records(run))
    assert participation_shares(scenario.cells[0]) == pytest.approx([0.75, 0.25, 0])


def test_the_worst_client_is_the_worst_of_each_seed() -> None:
    def clients(*accuracy: float) -> dict[str, object]:
        return {"client": [0, 1], "importance": [0.25, 0.75], "mean_time": [1, 1], "accuracy": accuracy}

    runs = [replace(THREE[0], clients=clients(0.2, 0.6)), replace(THREE[1], clients=clients(0.8, 0.4))]
    scenario, _ = only(records(*runs))
    values = client_values(scenario.cells, metric := compared_by(scenario))
    summary = client_summary(values, metric)
    assert summary[["worst", "mean", "seeds"]].to_numpy().tolist() == [
        pytest.approx([0.3, (0.5 + 0.5) / 2, 2])
    ]
    assert sorted(values["value"]) == pytest.approx([0.2, 0.4, 0.6, 0.8])


def test_the_table_for_other_programs_keeps_infinity() -> None:
    scenario, _ = only(records(NEVER_REACHES))
    table = ranking_frame([scenario])
    assert table.loc[0, "updates to target"] == inf and table.loc[0, "reached"] == 0
    assert table.loc[0, "test/accuracy mean"] == 0.8 and table.loc[0, "staleness max"] == 2


def test_what_reads_the_same_is_marked_the_same() -> None:
    ends = (0.9501, 0.9503, 0.9401)
    fakes = [
        Fake(strategy=name, curve=curve([0.1, end], [0, 10])) for name, end in zip("abc", ends, strict=True)
    ]
    scenario, _ = only(records(*fakes))
    marked = {cell.strategy: entries[0].best for cell, entries in ranking(scenario).lines}
    assert marked == {"a": True, "b": True, "c": False}


def test_the_page_says_that_times_were_measured() -> None:
    """Of one run suffices."""
    plain = records(*THREE)
    first, *rest = plain.runs
    measured = replace(
        plain, runs=[replace(first, params={**first.params, "problem.measured": "true"}), *rest]
    )
    assert len(remarks(measured)) == len(remarks(plain)) + 1
