"""Evidence for one strategy: verdicts, the claim, the checklist, ablation, and the files."""

from __future__ import annotations

import json
import re
from math import exp, log
from pathlib import Path
from statistics import fmean
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
import yaml
from scipy import stats
from test_leaderboard_scores import BEST, BUDGET, ENTRIES, RATES, board, entry

from benchmarks.errors import UserError
from benchmarks.leaderboard.ablation import COLUMNS, Ablation, switches
from benchmarks.leaderboard.evidence import Evidence
from fl_core.scenario import Scenario
from fl_core.server.jobs import Update
from fl_core.server.server import Server
from fl_core.strategies.fedavg import FedAvg
from fl_core.strategies.strategy import Strategy
from fl_core.testing.scene import scenario
from reports.leaderboard import appendix, standing
from reports.leaderboard.findings import Findings
from reports.leaderboard.rules import SCENARIO
from reports.leaderboard.tables import TUNED

NO_ABLATION = pd.DataFrame(columns=COLUMNS)
WORST = "The worst client no worse than with FedAvg"


@pytest.fixture(autouse=True)
def _few_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(standing, "RESAMPLES", 200)


def findings(best: float, name: str = "Mine") -> Findings:
    """An author's strategy with this time to the target, among three."""
    return Findings(name, board(**ENTRIES, **{name: entry(name, best, RATES)}), NO_ABLATION, {})


def test_ahead_level_and_behind_by_factors_that_a_plain_loop_gives() -> None:
    own = findings(BEST["FedBuff"])
    table = own.against(own.tuned)
    assert table["verdict"].to_dict() == {"FedBuff": "not separated", "ACE": "ahead", "FedAvg": "ahead"}
    finals = own.tables.finals.query(f"ruleset == '{TUNED}'")
    times = {
        (*(row[key] for key in (*SCENARIO, "seed")), row["strategy"]): min(row["time_hard"], BUDGET)
        for row in finals.to_dict("records")
    }
    runs = {place[:-1] for place in times}
    for name, row in table.iterrows():
        ratios = [log(times[*run, name] / times[*run, "Mine"]) for run in runs]
        assert row["factor"] == pytest.approx(exp(fmean(ratios)))
        assert row["seeds_low"] < row["factor"] < row["seeds_high"]
    slow = findings(5 * BEST["FedAvg"])
    assert set(slow.against(slow.tuned)["verdict"]) == {"behind"}


@pytest.mark.parametrize("count", [1, 2, 3, 12])
def test_few_scenarios_decide_only_what_student_s_t_over_them_does(count: int) -> None:
    own = findings(0.8 * BEST["FedBuff"])
    here = own.tuned.within(np.arange(12) < count)
    verdicts, names = own.against(here)["verdict"], here.costs.strategies
    by_scenario = dict(zip(names, here.by_scenario, strict=True))
    for name, verdict in verdicts.items():
        ahead = by_scenario["Mine"] - by_scenario[str(name)]
        p = stats.ttest_1samp(ahead, 0).pvalue if count > 1 else 1.0
        assert verdict == ("ahead" if p < 0.05 / 3 else "not separated"), (name, p)


def test_the_claim_says_no_more_than_the_tables() -> None:
    claim = findings(BEST["FedBuff"]).claim()
    assert claim.index("not separated from FedBuff") < claim.index("ahead of ACE and FedAvg")
    assert "not told apart" not in claim  # from the reference, of which it is ahead
    close = findings(BEST["FedAvg"]).claim()
    assert "not separated from FedAvg" in close and "not told apart" in close
    assert "12 scenarios, 4 fresh seeds, 8 points" in claim and "other data, models" in claim
    slow = findings(1e6).claim()
    assert re.search(r"Mine is behind \w+, \w+ and \w+ \(", slow) and "ahead of none of them" in slow
    assert "missed the target in 48 of 48 runs" in slow and "it was at most 0." in slow


def test_a_reviewer_sees_what_is_open() -> None:
    points = {text: met for met, text in findings(BEST["FedBuff"]).checklist()}
    assert not points["5 fresh seeds or more: 4"] and points["More than one workload: 2"]
    assert not points["Ahead of every baseline, over seeds and scenarios"] and points[WORST]
    (ablation,) = (text for text in points if text.startswith("Ablation"))
    assert ablation == "Ablation: no field turns a part off" and not points[ablation]


def test_nothing_is_said_of_worst_clients_that_were_not_recorded() -> None:
    tables = board(**ENTRIES)
    tables.finals["worst_client"] = np.nan
    points = [text for _, text in Findings("FedBuff", tables, NO_ABLATION, {}).checklist()]
    assert "Ablation: no field turns a part off" in points and WORST not in points


class Parts(Strategy):
    """A strategy with parts that can be turned off."""

    title: ClassVar[str] = "Parts"

    damp: bool = True
    rule: str | None = "half"
    share: float = 0.5
    idle: bool = False

    def receive(self, server: Server, update: Update) -> None:
        server.step(update.delta)


def test_what_turns_a_part_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.leaderboard.ablation.with_parameters", _validated)
    assert switches(Parts(), scenario()) == {"damp": False, "rule": None, "share": 0}
    assert switches(FedAvg(take=3), scenario()) == {"take": None}


def _validated(strategy: Strategy, values: dict[str, object], _: object) -> Strategy:
    return type(strategy).model_validate(dict(strategy) | values)


class Fussy(Parts):
    """A strategy that needs clients whose jobs are exponential."""

    title: ClassVar[str] = "Fussy"

    def refuses(self, scenario: Scenario) -> str | None:
        fixed = scenario.timing.durations.name == "fixed"
        return "it needs jobs of random length" if fixed else None


def asked(folder: Path, strategy: str, **changed: object) -> Evidence:
    """What is asked of a small suite with two scenarios, changed so."""
    suite = {
        "name": "two",
        "seeds": 1,
        "problem": {"name": "digits", "clients": 2, "target": 0.5},
        "budget": {"time": 5, "target": 0.6},
        "strategies": [{"name": "fedavg", "label": "FedAvg"}],
        "grid": {"timing.durations": ["exponential", "two_speed"]},
        "tuning": {"trials": 2, "seeds": 1, "sampler": "sobol", "objective": "time_to_target"},
    }
    path = folder / "two.yaml"
    path.write_text(yaml.safe_dump(suite | changed))
    return Evidence(strategy, str(path), None, ())


def test_scenarios_that_the_strategy_refuses_are_listed_and_the_rest_goes_on(tmp_path: Path) -> None:
    three = {"timing.durations": ["fixed", "exponential", {"name": "exponential", "per_step": True}]}
    own = asked(tmp_path, f"{__name__}:Fussy", grid=three)
    assert len({study.scenario for study in own.campaign.studies}) == 2
    why = "Fussy is incompatible with this scenario: it needs jobs of random length"
    assert own.refused()["digits · i.i.d. · fixed"] == why
    with pytest.raises(UserError, match="every scenario is refused: Fussy is incompatible"):
        asked(tmp_path, f"{__name__}:Fussy", grid={"timing.durations": ["fixed"]}).campaign.check()


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        (
            {"problem": {"name": "quadratic", "clients": 2, "target": 0.5}},
            "quadratic · exponential: a leaderboard needs a metric between 0 and 1 .*, not distance",
        ),
        ({"grid": {"timing.durations": ["fixed"]}}, "digits has one scenario: .* name two"),
        ({"budget": {"time": 5}}, "exponential: a leaderboard needs .*budget.target"),
        (
            {"tuning": {"trials": 2, "sampler": "sobol", "metric": "test/loss", "budget": {"time": 5}}},
            "tuning.metric: .* needs test/accuracy",
        ),
    ],
)
def test_a_suite_that_gives_no_evidence_is_refused_before_anything_runs(
    tmp_path: Path, changed: dict[str, object], why: str
) -> None:
    with pytest.raises(UserError, match=why):
        _ = asked(tmp_path, "fedbuff", **changed).campaign


@pytest.mark.parametrize(
    ("written", "why"),
    [
        ("fedbufff", "STRATEGY: strategies.0: unknown strategy 'fedbufff'"),
        ("{name: fadas, concurrency: -1}", "STRATEGY: strategies.fadas.concurrency: must be"),
        ("{name: fadas", "STRATEGY: .*not valid YAML"),
    ],
)
def test_a_strategy_that_is_none_is_told_by_the_argument_it_was_given_as(
    tmp_path: Path, written: str, why: str
) -> None:
    with pytest.raises(UserError, match=f"^{why}"):
        _ = asked(tmp_path, written).campaign


def test_an_ablation_is_paired_by_scenario_and_seed(tmp_path: Path) -> None:
    """Without the part all runs take 1.5 times as long, whatever their seeds."""
    tables = board(**ENTRIES, Mine=entry("Mine", 15, RATES))
    whole = tables.finals.query(f"strategy == 'Mine' and ruleset == '{TUNED}'")
    without = pd.concat(
        whole.assign(part=part, time_hard=whole["time_hard"] * factor)
        for part, factor in (("damp", 1.5), ("rule", 1))
    )
    ablation = Ablation("Mine", {"damp": False, "rule": None}).factors(tables, without, {})
    np.testing.assert_allclose(ablation[["factor", "low", "high"]], [[1.5] * 3, [1] * 3])
    own = Findings("Mine", tables, ablation, {"Server optimisers": "it has a momentum of its own"})
    appendix.write(own, {"claim": own.claim()}, tmp_path)
    page, latex = ((tmp_path / name).read_text() for name in (appendix.PAGE, appendix.APPENDIX))
    assert "| damp | 1.5\u00a0× | [1.5,\u00a01.5] |" in page and own.claim() in page
    assert json.loads((tmp_path / appendix.MANIFEST).read_text()) == {"claim": own.claim()}
    named = re.findall(r"(?:includegraphics.*?|input)\{(files/.*?)\}", latex) + re.findall(
        r"\]\((files/.*?)\)", page
    )
    assert len(named) > 10 and all((tmp_path / name).is_file() for name in named)
    assert page.count("- [ ]") == latex.count("\\item Open") > 0


def test_a_part_without_which_it_fails_has_no_factor_and_is_open(tmp_path: Path) -> None:
    """Also where it fails in one scenario alone, whose runs the others do not stand for."""
    tables = board(**ENTRIES, Mine=entry("Mine", 15, RATES))
    whole = tables.finals.query(f"strategy == 'Mine' and ruleset == '{TUNED}'")
    runs = whole[whole["timing"] != "away"].assign(part="damp")
    errors = {"damp": {"a · away": "it broke", "b · away": "it broke", "b · alike": "too few"}}
    ablation = Ablation("Mine", {"damp": False}).factors(tables, runs, errors)
    assert ablation[["factor", "low", "high"]].isna().all(axis=None)
    own = Findings("Mine", tables, ablation, {})
    failed = "without damp it fails in a · away and b · away: it broke; b · alike: too few"
    assert (False, f"Ablation: damp: {failed}") in own.checklist()
    appendix.write(own, {}, tmp_path)
    page = (tmp_path / appendix.PAGE).read_text()
    assert "| damp | fails | – |" in page and f"Not measured: {failed}." in page
