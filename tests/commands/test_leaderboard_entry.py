"""An entry of version 1.0, from its design to verified tables, on digits; budgets and targets of a pilot."""

import re
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml
from click.testing import CliRunner

from benchmarks.commands.leaderboard import command
from benchmarks.engine import Local
from benchmarks.errors import UserError
from benchmarks.leaderboard.entry import STRATEGIES, strategies
from benchmarks.suite.suite import load
from benchmarks.tracking.run_result import Columns
from benchmarks.tracking.store import Store
from fl_core.schema import ITERATION, TIME
from reports.leaderboard.goals import Configuration, Goals, goals
from reports.leaderboard.held_out import scores
from reports.leaderboard.rules import FILE, Rules, digest
from reports.leaderboard.tables import Tables
from reports.leaderboard.workloads import place
from tuning.campaign import Driver
from tuning.plan import plan
from tuning.storage import open_storage

pytestmark = pytest.mark.slow

SUITE = {
    "name": "tiny",
    "seeds": 2,
    "problem": {"name": "digits", "clients": 4, "target": 0.3},
    "budget": {"time": 12, "target": 0.4},
    "evaluations": 6,
    "local": {"steps": 2, "batch": 8},
    "strategies": [{"name": "fedavg", "label": "FedAvg"}, {"name": "fedbuff", "concurrency": 3}],
    "grid": {
        "problem.partition": ["iid", {"name": "class_dirichlet", "alpha": 0.5}],
        "timing": [{"durations": {"name": "exponential", "per_step": True}}],
    },
    "tuning": {
        "trials": 4,
        "seeds": 1,
        "again": {"share": 0.25, "seeds": 1},
        "sampler": "sobol",
        "objective": "time_to_target",
        "budget": {"time": 12, "target": 0.6},  # final runs have their own
        "declared": True,
        "space": {"local.steps": [1, 4]},
    },
    "scale": "small",
    "scales": {
        "small": {},
        "small_held_out": {
            "problem.clients": 8,
            "grid.problem.partition": [{"name": "class_dirichlet", "alpha": 0.9}],
            "grid.timing": [{"durations": {"name": "two_speed", "per_step": True}}],
        },
    },
}


def called(*words: str) -> str:
    """The output of `asyncfl leaderboard …`."""
    return CliRunner().invoke(command, list(words), catch_exceptions=False).output


@pytest.fixture(scope="module")
def entered(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of an entry of two strategies, beside its suite and store."""
    folder = tmp_path_factory.mktemp("board")
    path, store = folder / "tiny.yaml", Store(folder / "store", None)
    path.write_text(yaml.safe_dump(SUITE))
    campaign = plan(load(str(path), tuned=False))
    Driver(campaign, open_storage(str(store.folder / "tuning.journal")), store).run(Local(1), lambda _: None)
    words = ["enter", str(path), "--store", str(store.folder), "--workers", "1", "--out", str(folder / "out")]
    said = called(*words)
    assert "2 scenarios, " in said and "1 scenario, 4 runs" in said  # final runs, held-out runs
    return folder / "out"


def test_an_entry_has_all_of_its_runs_and_is_scored(entered: Path) -> None:
    tables, suite = Tables.load(entered), load(str(entered.parent / "tiny.yaml"), tuned=False)
    assert len(tables.design) == 2 * 2 * (4 + 1) and len(tables.finals) == 2 * 2 * 2 * 2
    assert tables.finals[["accuracy", "worst_client", "updates"]].notna().all(axis=None)
    assert (tables.finals["worst_client"] <= tables.finals["accuracy"]).all()
    for runs, target in ((tables.design, 0.6), (tables.finals, 0.4)):  # runs end where they meet it
        met = runs["accuracy"] >= target
        assert met.any() and (np.isfinite(runs["time_hard"]) == met).all()
    assert [*tables.scenarios] == [place(run) for run in suite.runs()[:: 2 * 2]]
    suite = load(str(entered.parent / "tiny.yaml"), (), "small_held_out", tuned=False)
    assert [*tables.held_out_scenarios] == [place(suite.runs()[0])] and len(tables.held_out) == 2 * 2
    assert scores(tables)["FedAvg"] == 0 and set(scores(tables).index) == set(tables.entries)
    assert [line.split()[0] for line in called("score", str(entered)).splitlines()[-2:]].count("FedAvg") == 1
    page = entered.parent / "page"
    said = called("score", str(entered))
    assert said.startswith("Leaderboard ") and "sooner than tuned FedAvg each strategy meets" in said
    called("score", str(entered), "--markdown", str(page))
    text = (page / "leaderboard.md").read_text()
    assert text.startswith("# Leaderboard 1.0\n") and "## Held-out scenarios" in text
    assert "| Scenario | Soonest | Sooner | Place of " in text and "two-speed" in text
    figures = re.findall(r"\]\((leaderboard-\w+\.svg)\)", text)
    assert len(figures) >= 3 and all((page / name).is_file() for name in figures)


def test_held_out_runs_are_made_for_what_was_entered_elsewhere(entered: Path, tmp_path: Path) -> None:
    """Without the store of the design: points and parameters are those of the tables."""
    out = shutil.copytree(entered, tmp_path / "out")
    (out / "small-held_out.csv").unlink()
    suite, store = str(entered.parent / "tiny.yaml"), str(tmp_path / "store")
    said = called("enter", suite, "--store", store, "--workers", "1", "--out", str(out))
    assert "1 scenario, 4 runs" in said and "2 scenarios" not in said
    assert {path.name: digest(path) for path in out.iterdir()} == {
        path.name: digest(path) for path in entered.iterdir()
    }
    with pytest.raises(
        UserError, match=r"no scenario of tiny-small is tuned to its end: asyncfl tune .*tiny\.yaml"
    ):
        called("enter", suite, "--store", store, "--out", str(tmp_path / "new"))


def test_its_runs_are_made_again_and_an_altered_number_is_found(entered: Path, tmp_path: Path) -> None:
    words = ("--seed", "0")
    assert called("verify", str(entered), *words).endswith(" runs made again (--seed 0); 0 faults\n")
    altered = shutil.copytree(entered, tmp_path / "altered")
    for name in ("small-design.csv", "small-finals.csv", "small-held_out.csv"):
        table = pd.read_csv(altered / name)
        table["accuracy"] += 0.02
        table.to_csv(altered / name, index=False)
    assert "not the table of the rules' digest" in called("verify", str(altered), *words)
    with pytest.raises(UserError, match=r"small-design\.csv: missing, or not the table of the rules' digest"):
        called("score", str(altered))
    rules = Rules.load(altered)  # as one who covers it up would
    files = {name: digest(altered / name) for name in rules.files}
    easier = rules.scenarios[0].model_copy(update={"hard": 0.35}), *rules.scenarios[1:]
    other = rules.model_copy(update={"files": files, "scenarios": easier})
    (altered / FILE).write_text(yaml.safe_dump(other.model_dump(mode="json")))
    said = called("verify", str(altered), *words)
    assert "digest" not in said and "accuracy" in said and "0 faults" not in said
    assert said.count("the rules have another budget or targets than the suite") == 1


def test_runs_that_cannot_be_made_again_are_faults(entered: Path, tmp_path: Path) -> None:
    """Of a strategy that the folder does not describe, and of one without its points."""
    damaged = shutil.copytree(entered, tmp_path / "damaged")
    listed = yaml.safe_load((damaged / STRATEGIES).read_text())["strategies"]
    (damaged / STRATEGIES).write_text(yaml.safe_dump({"strategies": listed[:1]}))
    points = pd.read_csv(damaged / "small-points.csv")
    points[(points["point"] == 0) | (points["strategy"] != "FedAvg")].to_csv(
        damaged / "small-points.csv", index=False
    )
    said = called("verify", str(damaged), "--seed", "0")
    assert re.search(
        r"FedBuff.* · point \d · seed \d+: no suite of the rules has this strategy there\n", said
    )
    assert re.search(r"FedAvg · point [1-3] · seed \d+: the tables have no such point\n", said)


def test_folders_stand_beside_each_other_unless_entries_or_rules_clash(entered: Path, tmp_path: Path) -> None:
    with pytest.raises(Exception, match="there is an entry 'FedAvg' already"):
        called("score", str(entered), str(entered))
    other = shutil.copytree(entered, tmp_path / "other")
    rules = yaml.safe_load((other / FILE).read_text())
    rules["scenarios"][0]["hard"] = 0.71
    (other / FILE).write_text(yaml.safe_dump(rules))
    with pytest.raises(Exception, match=r"i\.i\.d\., exponential per step has another budget or targets"):
        called("score", str(entered), str(other))


def test_the_suites_strategies_come_back_and_populations_are_added_without_any_change() -> None:
    suite = load("leaderboard", tuned=False)
    again = load("leaderboard", [f"strategies={yaml.safe_dump(strategies(suite))}"], tuned=False)
    assert again.spec.strategies == suite.spec.strategies
    timings = [*suite.grid["timing"], {"durations": {"name": "two_speed", "per_step": True}}]
    before = plan(suite).studies
    other = ["budget.target=0.8", "problem.target=0.7", f"grid.timing={yaml.safe_dump(timings)}"]
    more = plan(load("leaderboard", other, tuned=False)).studies
    assert len(more) == 2 * len(before)
    assert [(s.name, s.first, s.definition()) for s in more[: len(before)]] == [
        (s.name, s.first, s.definition()) for s in before
    ]


def curve(*values: float, rounds: float = 1) -> Columns:
    """A learning curve with an evaluation each unit of time."""
    times = np.arange(len(values))
    return {TIME: times, ITERATION: rounds * times, "a": np.array(values)}


@pytest.mark.parametrize(("rounds", "expected"), [(1, 30), (10, 12), (0.1, None)])
def test_goals_in_closed_form(rounds: float, expected: float | None) -> None:
    """The best rises to .8 at once; the reference by .2 a unit, so that .72 is reached after 4 units."""
    best = Configuration([curve(0, *[0.8] * 60)] * 3, "a")
    slow = [min(0.8, 0.2 * time) for time in range(61)]
    reference = Configuration([curve(*slow, rounds=rounds)] * 3, "a")
    worse = Configuration([curve(*[0.1] * 61)], "a")
    own = goals([worse, reference], [best], 60)
    assert own == (expected and Goals(expected, 0.72, 0.784))
