"""Version 1.0: scores by a plain script, clones, sabotage, frozen rates, budget curves, censoring."""

import json
import re
from dataclasses import replace
from datetime import date
from itertools import product
from math import exp, inf, log
from pathlib import Path
from random import Random
from statistics import fmean
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from benchmarks.errors import UserError
from reports.figures import look
from reports.inference import percentiles, spearman
from reports.leaderboard import charts, profiles
from reports.leaderboard import standing as standing_module
from reports.leaderboard.choice import best_of, budget_curves, for_others, one_setting, tuned
from reports.leaderboard.costs import Costs
from reports.leaderboard.held_out import bounds, correlations, missed, over_scenarios, places, scores
from reports.leaderboard.marks import unequal, untuned
from reports.leaderboard.page import write
from reports.leaderboard.printed import across, horizon
from reports.leaderboard.rules import FILE, SCENARIO, Frame, Rules
from reports.leaderboard.standing import standing, standing_table
from reports.leaderboard.tables import DESIGN, FINALS, ONE_SETTING, POINTS, RULESETS, TUNED, Tables

BUDGET = 100.0
RULES = Rules(
    version="test",
    date=date(2026, 11, 23),
    suite="toy",
    suite_digest="",
    reference="FedAvg",
    points=8,
    design_seeds=(1000, 1001, 1002),
    final_seeds=(0, 1, 2, 3),
    scenarios=tuple(
        Frame(problem=problem, partition=partition, timing=timing, budget=BUDGET, easy=0.6, hard=0.7)
        for problem, partition, timing in product("ab", ("i.i.d.", "skew"), ("alike", "two-speed", "away"))
    ),
)
SCENARIOS = [(frame.problem, frame.partition, frame.timing) for frame in RULES.scenarios]
BEST = {"FedAvg": 40.0, "FedBuff": 15.0, "ACE": 30.0}  # time to the hard target at the best rate


def result(best: float, rate: float, optimum: float, noise: float) -> dict[str, object]:
    """The measures of a run: slower by a factor of e for each decade between its rate and the best one."""
    time = best * exp(abs(np.log10(rate / optimum)) + noise)
    time = time if time <= BUDGET else inf
    end = min(time, BUDGET)
    accuracy = 0.7 - 0.01 * abs(np.log10(rate / optimum))
    return {
        "status": "done",
        "time_easy": time / 2,
        "time_hard": time,
        "updates": 30 * end,
        "bytes": 240 * end,
    } | {
        "accuracy": accuracy,
        "worst_client": accuracy / 2,
    }


def entry(name: str, best: float, rates: list[float]) -> dict[str, list[dict[str, object]]]:
    """Design, points and final runs of one strategy, chosen as the rules say."""
    random = Random(name)
    design, finals = [], []
    optima = {scenario: 0.1 * 10 ** (place % 3 / 3) for place, scenario in enumerate(SCENARIOS)}
    for scenario, optimum in optima.items():
        place = dict(zip(SCENARIO, scenario, strict=True)) | {"strategy": name}
        points = list(range(len(rates)))
        for seed in RULES.design_seeds:
            runs = [
                {
                    **place,
                    "point": point,
                    "seed": seed,
                    **result(best, rates[point], optimum, random.gauss(0, 0.1)),
                }
                for point in points
            ]
            design += runs
            if seed == RULES.design_seeds[0]:
                runs.sort(key=lambda run: (run["time_hard"], -run["accuracy"]))
                points = [run["point"] for run in runs[: len(rates) // 4]]
    for (scenario, optimum), ruleset, seed in product(optima.items(), RULESETS, RULES.final_seeds):
        place = dict(zip(SCENARIO, scenario, strict=True)) | {"strategy": name}
        rate = rates[plain_choice(design, name, scenario, ruleset)]
        measures = result(best, rate, optimum, random.gauss(0, 0.1))
        finals.append({**place, "ruleset": ruleset, "seed": seed, **measures})
    points = [
        {"problem": problem, "strategy": name, "point": point, "values": json.dumps(own)}
        for problem in "ab"
        for point, rate in enumerate(rates)
        for own in [{"local_lr": rate, "local.steps": 4 ** (point % 3)}]
    ]
    return {"design": design, "points": points, "finals": finals}


def plain_choice(design: list[dict], name: str, scenario: tuple[str, ...], ruleset: str) -> int:
    """The point of a ruleset, from the rows of a design, by loops."""
    means: dict[int, tuple[float, float]] = {}
    for point in {row["point"] for row in design if row["strategy"] == name}:
        rows = [row for row in design if row["strategy"] == name and row["point"] == point]
        here = [row for row in rows if (row["problem"], row["partition"], row["timing"]) == scenario]
        if ruleset == TUNED:
            rows = here if len(here) == len(RULES.design_seeds) else []
        else:
            rows = [
                row
                for row in rows
                if row["seed"] == 1000 and row not in here and row["problem"] == scenario[0]
            ]
        if rows:
            cost = fmean(log(min(row["time_hard"], BUDGET)) for row in rows)
            means[point] = (cost, -fmean(row["accuracy"] for row in rows))
    return min(means, key=lambda point: (*(round(value, 12) for value in means[point]), point))


def board(**entries: dict[str, list[dict[str, object]]]) -> Tables:
    """Tables of several entries."""
    columns = {"design": DESIGN, "points": POINTS, "finals": FINALS}
    rows = {name: [row for own in entries.values() for row in own[name]] for name in columns}
    return Tables(RULES, **{name: pd.DataFrame(rows[name])[columns[name]] for name in columns})


@pytest.fixture(autouse=True)
def _few_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(standing_module, "RESAMPLES", 300)


RATES = [0.001, 0.01, 0.05, 0.1, 0.2, 0.5, 1.0, 10.0]
ENTRIES = {name: entry(name, best, RATES) for name, best in BEST.items()}


@pytest.fixture(scope="module")
def three() -> Tables:
    return board(**ENTRIES)


@pytest.mark.parametrize("ruleset", RULESETS)
def test_scores_are_those_of_a_plain_script(three: Tables, ruleset: str) -> None:
    found = standing(three, ruleset)
    rows = three.finals.to_dict("records")
    for name, score in zip(found.costs.strategies, found.scores, strict=True):
        logs = []
        for scenario, seed in product(SCENARIOS, RULES.final_seeds):
            here = [
                r
                for r in rows
                if (r["problem"], r["partition"], r["timing"]) == scenario and r["seed"] == seed
            ]
            own = next(r["time_hard"] for r in here if (r["strategy"], r["ruleset"]) == (name, ruleset))
            ref = next(r["time_hard"] for r in here if (r["strategy"], r["ruleset"]) == ("FedAvg", TUNED))
            logs.append(log(min(ref, BUDGET) / min(own, BUDGET)))
        assert score == pytest.approx(fmean(logs), abs=1e-12)


def test_choices_are_those_of_a_plain_script(three: Tables) -> None:
    costs, rows = Costs.of(three), three.design.to_dict("records")
    for name, tune, one in zip(costs.strategies, tuned(costs), one_setting(costs), strict=True):
        for place, scenario in enumerate(costs.scenarios):
            assert tune[place] == plain_choice(rows, name, scenario, TUNED)
            assert one[place] == plain_choice(rows, name, scenario, ONE_SETTING)


def test_the_speed_up_is_the_one_built_in_and_both_intervals_hold_it(three: Tables) -> None:
    found = standing(three)
    table = standing_table(found, three)
    assert list(table.index) == ["FedBuff", "ACE", "FedAvg"]
    assert table.loc["FedBuff", "speedup"] == pytest.approx(40 / 15, rel=0.1)
    assert (
        table.loc["FedAvg", "speedup"] == 1 and table.loc["FedAvg", ["easy", "updates", "bytes"]].eq(1).all()
    )
    for over in ("seeds", "scenarios"):
        low, high = table.loc["FedBuff", [f"{over}_low", f"{over}_high"]]
        assert low < table.loc["FedBuff", "speedup"] < high
        assert table.loc["FedAvg", [f"{over}_low", f"{over}_high"]].eq(1).all()
    assert table["behind"].tolist() == [False, True, True] and table.loc["FedBuff", "first"] > 0.99


@pytest.mark.parametrize("ruleset", RULESETS)
def test_a_clone_is_not_separated_and_moves_no_other(three: Tables, ruleset: str) -> None:
    clone = entry("Clone", BEST["FedBuff"], RATES)
    with_clone = board(**ENTRIES, Clone=clone)
    alone, beside = (standing_table(standing(t, ruleset), t) for t in (three, with_clone))
    assert not beside.loc["Clone", "behind"] and not beside.loc["FedBuff", "behind"]
    own = [name for name in alone if name not in ("first", "behind")]
    pd.testing.assert_frame_equal(beside.loc[alone.index, own], alone[own], check_exact=True)
    assert beside.loc[["Clone", "FedBuff"], "first"].sum() == pytest.approx(1)
    assert beside["first"].max() < 0.99


@pytest.mark.parametrize("ruleset", RULESETS)
def test_a_sabotaged_one_is_behind(three: Tables, ruleset: str) -> None:
    worse = board(**ENTRIES, Slow=entry("Slow", 1.5 * BEST["FedBuff"], RATES))
    assert standing_table(standing(worse, ruleset), worse).loc["Slow", "behind"]


def test_a_frozen_rate_is_flagged_and_an_edge_too(three: Tables) -> None:
    frozen = board(
        **ENTRIES,
        Frozen=entry("Frozen", 15, [10.0] * 8),
        Edge=entry("Edge", 15, [rate / 1000 for rate in RATES]),
    )
    costs = Costs.of(frozen)
    assert untuned(frozen, costs, "Frozen") == [f"{problem}: local_lr does not vary" for problem in "ab"]
    edge = "local_lr is best at the greatest value tried, 0.01"
    assert untuned(frozen, costs, "Edge") == [f"a: {edge}", f"b: {edge}"]
    assert untuned(frozen, costs, "FedBuff") == []


def test_an_entry_that_did_not_follow_the_design_is_told_apart(three: Tables) -> None:
    assert unequal(three, "ACE") == []
    half = replace(three, points=three.points.query("strategy != 'ACE' or point < 4"))
    assert unequal(half, "ACE") == ["4 points in place of 8"]
    lacking = replace(three, finals=three.finals.query("strategy != 'ACE' or seed > 0"))
    assert unequal(lacking, "ACE") == ["24 final runs missing"]
    assert standing(lacking).costs.strategies == ("FedAvg", "FedBuff")


def test_runs_without_the_target_count_at_the_budget_and_are_marked(three: Tables) -> None:
    slow = board(**ENTRIES, Never=entry("Never", 1e6, RATES))
    found = standing_table(standing(slow), slow)
    rows = slow.finals.query("strategy == 'FedAvg' and ruleset == 'tuned'")["time_hard"]
    assert found.loc["Never", "speedup"] == pytest.approx(exp(np.log(rows / BUDGET).mean()))
    assert found.loc["Never", "missed"] == found.loc["Never", "runs"] == 48
    assert found["bound"].to_dict() == {name: "≤" * (name == "Never") for name in found.index}
    early = slow.finals.assign(
        time_hard=slow.finals["time_hard"].where(slow.finals["strategy"] != "FedAvg", inf)
    )
    unmet = replace(slow, finals=early)
    found = standing_table(standing(unmet), unmet)
    assert found["bound"].to_dict() == {"FedAvg": "", "Never": "~", "ACE": "≥", "FedBuff": "≥"}
    late = replace(slow, finals=slow.finals.assign(time_hard=inf))
    found = standing_table(standing(late), late)
    assert found["speedup"].eq(1).all() and not found["behind"].any()
    assert found["bound"].to_dict() == {name: "~" * (name != "FedAvg") for name in found.index}
    assert "| FedBuff | ~ 1.0 × | – (2.5) |" in across(standing(late), ["a"])[1].replace("\u00a0", " ")


def test_the_best_of_k_random_points_is_the_mean_over_all_draws() -> None:
    random, cost = Random(0), [3.0, 1.0, 4.0, 1.5, 9.0, 2.6]
    for k, expected in enumerate(best_of(np.array(cost)), 1):
        drawn = [min(random.sample(cost, k)) for _ in range(20_000)]
        assert expected == pytest.approx(fmean(drawn), abs=0.06)


def test_budget_curves_rise_to_the_best_point(three: Tables) -> None:
    costs = Costs.of(three)
    curves = budget_curves(costs, "FedAvg")
    assert (np.diff(curves, axis=1) >= -1e-12).all()
    assert curves[costs.strategies.index("FedAvg"), -1] == pytest.approx(0)


def test_intervals_know_that_the_choice_was_made_on_few_seeds(three: Tables) -> None:
    """With design seeds that disagree, resampling them widens the interval downwards."""
    found = standing(three)
    noisy = three.design.copy()
    noise = np.random.default_rng(0).normal(0, 1, len(noisy))
    noisy["time_hard"] = noisy["time_hard"] * np.exp(noise)
    other = standing(replace(three, design=noisy))
    (low, _), (wider, _) = percentiles(found.over_seeds), percentiles(other.over_seeds)
    at = found.costs.strategies.index("FedBuff")
    assert found.scores[at] == other.scores[at] and wider[at] < low[at]


def test_profiles_by_hand() -> None:
    """X: 1 and 2, Y: 2 and 1, Z never; up to τ = 2 in half of the scenarios, from there on in all."""
    times = {"X": (10.0, 10.0), "Y": (20.0, 5.0), "Z": (inf, inf)}
    rows = [("a", "", "b"[:seed], name, time) for name, own in times.items() for seed, time in enumerate(own)]
    runs = pd.DataFrame(rows, columns=[*SCENARIO, "strategy", "time_hard"])
    found = profiles.ratios(runs)
    assert found.to_dict("list") == {"X": [1, 2], "Y": [2, 1], "Z": [inf, inf]}
    factors, shares = profiles.profile(found["X"])
    assert factors.tolist() == [1, 2] and shares.tolist() == [0.5, 1]
    assert profiles.profile(found["Z"])[1].tolist() == [0]
    assert profiles.ratios(runs.assign(time_hard=inf)).empty


def test_orders_at_two_horizons(three: Tables) -> None:
    full, third = standing(three), standing(three, horizon=1 / 3)
    assert third.costs.finals[TUNED].max() == pytest.approx(log(BUDGET / 3))
    assert spearman(full.scores, third.scores) == pytest.approx(1)
    assert np.isnan(spearman(full.scores, np.zeros(3)))
    assert "| FedBuff | 1 | 1 |" in horizon(full, third)


def test_equal_scores_share_their_places() -> None:
    def own(*scores: float) -> Any:
        return SimpleNamespace(scores=np.array(scores), costs=SimpleNamespace(strategies=["A", "B", "C"]))

    rows = horizon(own(0.5, 0.5, 0.1), own(0.0, 0.0, 0.0)).splitlines()[2:]
    assert rows == ["| A | 1.5 | 2 |", "| B | 1.5 | 2 |", "| C | 3 | 2 |"]


def held_out(times: dict[str, float]) -> Tables:
    """Three entries with two held-out scenarios, in which each takes this time on four seeds."""
    places = [("a", "skew 2", "slow"), ("b", "skew 2", "slow")]
    frames = tuple(
        Frame(problem=problem, partition=partition, timing=timing, budget=BUDGET, easy=0.6, hard=0.7)
        for problem, partition, timing in places
    )
    rows = [
        {
            **dict(zip(SCENARIO, place, strict=True)),
            "strategy": name,
            "seed": seed,
            "ruleset": ONE_SETTING,
            **result(time, 1, 1, seed / 100),
        }
        for place, (name, time), seed in product(places, times.items(), RULES.final_seeds)
    ]
    rules = RULES.model_copy(update={"held_out": frames})
    return replace(board(**ENTRIES), rules=rules, held_out=pd.DataFrame(rows)[FINALS])


def test_held_out_scores_and_their_rank_correlation_by_hand() -> None:
    """The board has FedBuff, ACE, FedAvg; the last misses the target there, and counts at the budget."""
    same = held_out({"FedBuff": 20, "ACE": 40, "FedAvg": 80})
    assert scores(same).to_dict() == pytest.approx({"FedBuff": log(4), "ACE": log(2), "FedAvg": 0})
    assert correlations(same) == pytest.approx({TUNED: 1, ONE_SETTING: 1})
    turned = held_out({"FedBuff": 80, "ACE": 40, "FedAvg": 20})
    assert list(scores(turned).index) == ["FedAvg", "ACE", "FedBuff"]
    assert correlations(turned) == pytest.approx({TUNED: -1, ONE_SETTING: -1})
    never = held_out({"FedBuff": 50, "ACE": 1e6, "FedAvg": 1e6})
    assert scores(never)["ACE"] == 0 and scores(never)["FedBuff"] == pytest.approx(log(2) - 0.015)
    assert missed(same).to_dict() == {"ACE": 0, "FedAvg": 0, "FedBuff": 0}
    assert missed(never).to_dict() == {"ACE": 8, "FedAvg": 8, "FedBuff": 0}
    assert bounds(never) == {"ACE": "~", "FedAvg": "", "FedBuff": "≥"} and set(bounds(same).values()) == {""}
    lacking = replace(same, held_out=same.held_out.query("strategy != 'ACE' or seed > 0"))
    assert set(scores(lacking).index) == {"FedBuff", "FedAvg"}
    assert correlations(board(**ENTRIES)) == {}


def test_held_out_scenarios_that_are_drawn_anew() -> None:
    """Twice as soon in one of two and level in the other: log 2, half of it, or 0, at odds of 1 : 2 : 1."""
    same = held_out({"FedBuff": 40, "ACE": 80, "FedAvg": 80})
    own = same.held_out
    level = own.assign(time_hard=own["time_hard"].mask(own["problem"] == "b", 80))
    draws = over_scenarios(replace(same, held_out=level))["FedBuff"]
    shares = (draws / log(2)).round(6).value_counts(normalize=True).to_dict()
    assert shares == pytest.approx({0.0: 0.25, 0.5: 0.5, 1.0: 0.25}, abs=0.05)
    assert places(scores(same)) == {"FedBuff": 1, "ACE": 2.5, "FedAvg": 2.5}


def test_the_first_screen_says_that_the_unit_misses_and_who_runs_alike(tmp_path: Path) -> None:
    twin = {name: [row | {"strategy": "Twin"} for row in rows] for name, rows in ENTRIES["FedBuff"].items()}
    tables = board(**ENTRIES, Twin=twin)
    finals = tables.finals
    late = finals.assign(time_hard=finals["time_hard"].mask(finals["strategy"] == "FedAvg", inf))
    text = write(replace(tables, finals=late), tmp_path).read_text()
    assert "the same times in 12 of 12 scenarios)" in text
    assert " Tuned FedAvg itself misses the target in 48 of 48 runs." in text


def test_the_first_screen_names_the_held_out_scenario_where_the_boards_first_is_last(tmp_path: Path) -> None:
    tables = held_out({"FedBuff": 5, "ACE": 40, "FedAvg": 80})
    assert "In one of them" not in write(tables, tmp_path).read_text()
    own = tables.held_out
    late = own.assign(
        time_hard=own["time_hard"].mask((own["problem"] == "b") & (own["strategy"] == "FedBuff"), 90)
    )
    text = write(replace(tables, held_out=late), tmp_path).read_text()
    assert "**In one of them FedBuff has place 3 of 3**: b · skew 2 · slow (" in text


@pytest.mark.parametrize(
    ("times", "said"),
    [
        ({"FedBuff": 80, "ACE": 40, "FedAvg": 20}, "**The order is another one in held-out scenarios"),
        ({"FedBuff": 20, "ACE": 40, "FedAvg": 80}, "**FedBuff** reaches the hard target"),
        ({}, "**Held-out scenarios are not run yet**"),
    ],
)
def test_the_page_begins_with_an_order_that_does_not_hold(
    times: dict[str, float], said: str, tmp_path: Path
) -> None:
    tables = held_out(times) if times else board(**ENTRIES)
    text = write(tables, tmp_path).read_text()
    head, *parts = text.split("\n\n")
    first, *rest = parts[parts.index("## What the tables say") + 1 :]
    assert head == "# Leaderboard test" and first.startswith(said)
    there = {20: "FedAvg is soonest: 1.0", 80: "FedBuff is soonest: 4.0"}.get(times.get("FedAvg", 0), "")
    assert any(part.startswith("In the held-out scenarios") and there in part for part in rest) is bool(times)
    figures = re.findall(r"\]\((leaderboard-\w+\.svg)\)", text)
    assert len(figures) == 4
    drawn = [(tmp_path / name).read_text() for name in figures]
    assert all(look.palette()["s0"] in figure for figure in drawn)  # the first's colour


def test_a_strategy_has_one_colour_and_the_reference_ink() -> None:
    order = [f"strategy {place}" for place in range(20)]
    shown = charts.colours(order, "strategy 12")
    assert [*shown] == [*order[: charts.LEADERS], "strategy 12"]
    assert len({look.colour(index) for index in shown.values()}) == charts.LEADERS + 1
    assert look.colour(shown["strategy 12"]) == "ink"
    assert look.colour(charts.colours(order, order[1])[order[1]]) == "ink"


def test_the_standing_of_one_workload_is_that_of_its_tables_alone(three: Tables) -> None:
    for ruleset in RULESETS:
        both = standing(three, ruleset)
        part = both.within(np.asarray(both.costs.scenarios.get_level_values("problem")) == "b")
        alone = standing(three.on("b"), ruleset)
        np.testing.assert_array_equal(part.scores, alone.scores)
        np.testing.assert_array_equal(part.over_both, alone.over_both)


def test_the_setting_for_other_scenarios_is_that_of_a_plain_script(three: Tables) -> None:
    costs, rows = Costs.of(three), three.design.to_dict("records")
    for name, points in zip(costs.strategies, for_others(costs), strict=True):
        for place, scenario in enumerate(costs.scenarios):
            elsewhere = (scenario[0], "of no", "table")
            assert points[place] == plain_choice(rows, name, elsewhere, ONE_SETTING)


def test_tables_are_kept_and_damage_is_named(three: Tables, tmp_path: Path) -> None:
    for workload in "ab":
        parts = {
            name: getattr(three, name).query(f"problem == '{workload}'") for name in ("design", "finals")
        }
        replace(three, **parts, points=three.points).save(tmp_path, workload)
    with pytest.raises(UserError, match="there are no rules"):
        Tables.load(tmp_path)
    (tmp_path / FILE).write_text(json.dumps(RULES.model_dump(mode="json")))
    again = Tables.load(tmp_path)
    assert standing(again).scores == pytest.approx(standing(three).scores, abs=1e-7)
    (tmp_path / "a-design.csv").write_text("problem\n1\n")
    with pytest.raises(UserError, match="no column 'partition'"):
        Tables.load(tmp_path)
