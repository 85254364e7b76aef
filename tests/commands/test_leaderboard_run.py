"""Studies and final runs of a board, on digits: tables, what is missing, and the halves of the test data."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
import yaml
from click.testing import CliRunner
from shell import asyncfl

from benchmarks.commands.leaderboard import command
from benchmarks.errors import UserError
from benchmarks.leaderboard import board, targets
from benchmarks.leaderboard.board import StudyOfScale, missing, scales
from benchmarks.leaderboard.board import goals as goals_of
from benchmarks.leaderboard.evidence import Evidence
from benchmarks.leaderboard.sampler_pilot import best_of_study
from benchmarks.suite.suite import load
from fl_core.experiment import Experiment
from fl_core.recording import recorder
from reports.leaderboard.board_tables import BoardTables, numbers
from reports.leaderboard.scores import board_scores
from tuning.plan import plan

SUITE = {
    "name": "tiny",
    "seeds": 2,
    "problem": {
        "name": "digits",
        "clients": 4,
        "evaluate_on": "second_half",
        "target": 0.5,
        "target_marks": 3,
    },
    "budget": {"time": 12},
    "evaluations": 12,
    "local": {"steps": 2, "batch": 8},
    "strategies": [
        {"name": "fedavg", "label": "FedAvg"},
        {"name": "fedbuff", "concurrency": 4, "label": "FedBuff"},
    ],
    "tuning": {
        "trials": 4,
        "seeds": 2,
        "sampler": "sobol",
        "objective": "time_to_target",
        "budget": {"time": 12, "target": 0.5},
        "evaluate_on": "first_half",
        "declared": True,
        "space": {
            "local_lr": {"low": 0.01, "high": 1},
            "server.name": ["sgd", "adam"],
            "server_lr.sgd": [1],
            "server_lr.adam": {"low": 0.001, "high": 0.1},
        },
    },
    "scale": "alike",
    "scales": {
        "alike": {"timing": {"durations": {"name": "exponential", "per_step": True}}},
        "fixed": {"timing": {"durations": {"name": "fx", "per_step": True}}},
    },
}


@pytest.fixture
def suite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ASYNCFL_STORE", str(tmp_path / "store"))
    path = tmp_path / "tiny.yaml"
    path.write_text(yaml.safe_dump(SUITE))
    return path


def run(*words: object) -> str:
    result = CliRunner().invoke(command, list(map(str, words)), catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


@pytest.mark.slow
def test_a_study_is_tuned_and_run_once(suite: Path, tmp_path: Path) -> None:
    asked = ("run", "--suite", suite, "--scale", "alike", "--study", 2, "--out", tmp_path / "board")
    run(*asked, "--workers", 1)
    tables = BoardTables.load(tmp_path / "board")
    assert len(tables.trials) == 2 * 4 * 2 and len(tables.finals) == 2 * 2
    assert set(tables.finals["seed"]) == {20, 21} and set(tables.trials["seed"]) == {1020, 1021}
    assert (tables.trials.groupby("strategy")["best"].sum() == 2).all()  # the rows of one trial
    for row in tables.finals.to_dict("records"):
        times, values = numbers(row["times"]), numbers(row["values"])
        means = np.convolve(values, np.ones(3) / 3, "valid")
        met = np.flatnonzero(means >= 0.5 - 1e-4)
        assert row["time"] == (pytest.approx(times[met[0]], rel=1e-4) if len(met) else np.inf)
        assert times[-1] == pytest.approx(12, rel=0.2)  # final runs go on beyond the target
    for own in StudyOfScale(str(suite), "alike", 2).campaign().studies:
        best = tables.trials[(tables.trials["strategy"] == own.strategy) & (tables.trials["best"] == 1)]
        assert json.loads(best["values"].iloc[0]) == best_of_study("sobol", own)
        for adaptive in ("tpe", "gp"):
            assert own.space.holds(best_of_study(adaptive, own))
    written = {path.name: path.read_bytes() for path in (tmp_path / "board").iterdir()}
    tables.save(tmp_path / "again")
    assert {path.name: path.read_bytes() for path in (tmp_path / "again").iterdir()} == written
    assert run(*asked, "--dry-run").startswith("0 runs in 0 parts")
    for path in (tmp_path / "board").glob("*-finals.csv"):
        path.unlink()
    run(*asked)  # trials are there: final runs alone are computed, and are the same
    assert {path.name: path.read_bytes() for path in (tmp_path / "board").iterdir()} == written


def test_what_is_missing_is_known_from_the_tables(suite: Path) -> None:
    study, empty = StudyOfScale(str(suite), "fixed", 1), BoardTables.load(suite.parent / "none")
    (whole,) = missing(study, empty)
    assert [*whole.labels] == ["FedAvg", "FedBuff"] and whole.simulations(empty) == 2 * (4 * 2 + 2)
    (copies,) = missing(StudyOfScale(str(suite), "fixed", 5), empty)
    assert [*copies.labels] == ["FedBuff"] and copies.label("FedBuff") != "FedBuff"


def test_a_comparison_begins_with_empty_tables(suite: Path) -> None:
    empty = BoardTables.load(suite.parent / "none")
    asked = Evidence("{name: asgd, label: ASGD}", str(suite), ("fixed",), (), empty)
    compared = asked.compared(empty)
    assert [*compared.trials] == [*empty.trials] and [*compared.finals] == [*empty.finals]
    assert {label for study in asked.studies for label in study.labels} == {"ASGD", "FedAvg", "FedBuff"}
    assert asked.studies[0].winners(compared) == {}


def test_independent_studies_share_nothing_but_the_scenario(suite: Path) -> None:
    first, second = (StudyOfScale(str(suite), "fixed", number).campaign() for number in (1, 2))
    for one, other in zip(first.studies, second.studies, strict=True):
        assert one.strategy == other.strategy and one.space == other.space
        assert not {*one.seeds} & {*other.seeds} and one.identity != other.identity
        assert not [values for values in one.first if values in other.first]


def test_trials_and_final_runs_are_judged_on_different_halves(suite: Path) -> None:
    study = StudyOfScale(str(suite), "alike", 1)
    campaign = study.campaign()
    trial = campaign.studies[0].tried_on.problem.split()
    final = study.finals({"FedAvg": campaign.studies[0].first[0][1]}).runs()[0].problem.split()
    whole = campaign.studies[0].tried_on.problem.load()
    assert len(trial.y_test) + len(final.y_test) == len(whole.y_test)
    assert abs(len(trial.y_test) - len(final.y_test)) <= whole.classes
    both = np.concatenate([trial.x_test.flatten(1).numpy(), final.x_test.flatten(1).numpy()])
    assert sorted(map(bytes, both)) == sorted(map(bytes, whole.x_test.flatten(1).numpy()))
    assert len(trial.y_train) == len(whole.y_train)  # unlike validation data, no half is taken from clients


def test_final_runs_have_the_parameters_of_the_best_trial(suite: Path) -> None:
    study = StudyOfScale(str(suite), "alike", 1)
    campaign = study.campaign()
    for at in range(4):
        points = {own.strategy: {**own.first[at][1], "local.steps": 1} for own in campaign.studies}
        runs = {run.strategy: run.experiment.strategy for run in study.finals(points).runs()}
        for own in campaign.studies:
            assert runs[own.strategy] == own.space.apply(points[own.strategy], own.tried_on)


def test_a_strategy_of_the_users_is_an_entry_beside_the_suites(suite: Path) -> None:
    study = StudyOfScale(str(suite), "alike", 3, ("{name: fedavg, label: Mine}", "FedBuff"))
    (part,) = missing(study, BoardTables.load(suite.parent / "none"))
    tuned, other = part.campaign().studies
    theirs = StudyOfScale(str(suite), "alike", 3, ("FedAvg",)).campaign().studies[0]
    assert part.labels == ["Mine", "FedBuff"] and tuned.first == theirs.first and tuned.seeds == theirs.seeds
    assert other.strategy == "FedBuff"
    for entry in ("{name: [", "FedBuf", "nowhere:Mine"):
        with pytest.raises(UserError, match=re.escape(entry) + "|nowhere"):
            StudyOfScale(str(suite), "alike", 3, (entry,)).campaign()


def test_a_board_of_a_suite_without_scales_has_its_name(suite: Path) -> None:
    spec = {key: value for key, value in SUITE.items() if key not in ("scale", "scales")}
    suite.write_text(yaml.safe_dump(spec | {"timing": {"durations": "exponential"}}))
    assert scales(str(suite)) == [""] and StudyOfScale(str(suite), "", 1).place == "tiny"
    assert goals_of(str(suite), ["tiny"])["tiny"].target == 0.5
    with pytest.raises(UserError, match="no scale 'alike'"):
        goals_of(str(suite), ["alike"])


def test_a_scale_of_several_scenarios_is_refused(suite: Path) -> None:
    spec = SUITE | {"grid": {"problem.clients": [4, 5]}}
    suite.write_text(yaml.safe_dump(spec))
    with pytest.raises(UserError, match="2 scenarios"):
        StudyOfScale(str(suite), "alike", 1).campaign()


OWN = '''
"""Strategies whose place on a board is known."""

from typing import ClassVar

from asyncfl import Server, Strategy, Update


class Same(Strategy):
    """Asynchronous SGD under another name."""

    title: ClassVar[str] = "Same"
    sign: ClassVar[float] = 1.0

    def receive(self, server: Server, update: Update) -> None:
        server.step(self.sign * self.server_lr * update.delta)


class Flipped(Same):
    """Asynchronous SGD uphill."""

    title: ClassVar[str] = "Flipped"
    sign: ClassVar[float] = -1.0


class Motionless(Same):
    """A server that never moves."""

    title: ClassVar[str] = "Motionless"
    sign: ClassVar[float] = 0.0
'''


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_places_that_are_known_are_found(tmp_path: Path) -> None:
    """One algorithm twice, one uphill, and one without a step; then the runs are repeated."""
    (tmp_path / "own_entries.py").write_text(OWN)
    spec = SUITE | {"strategies": [{"name": "fedavg", "label": "FedAvg"}, "asgd"]}
    (tmp_path / "tiny.yaml").write_text(yaml.safe_dump(spec))
    own = [word for name in ("Same", "Flipped", "Motionless") for word in ("--entry", f"own_entries:{name}")]
    words = ("--suite", "tiny.yaml", "--scale", "fixed", "--study", "1", "--study", "2")
    to = ("--out", "board", "--store", "store", "--workers", "1")
    done = asyncfl(tmp_path, "leaderboard", "run", *words, "--entry", "FedAvg", "--entry", "ASGD", *own, *to)
    assert done.returncode == 0, done.stderr
    tables = BoardTables.load(tmp_path / "board")
    (scores,) = board_scores(tables, goals_of(str(tmp_path / "tiny.yaml"), ["fixed"])).values()
    assert scores.groups["Same"] == scores.groups["ASGD"] and not scores.never("ASGD")
    assert scores.never("Flipped") and scores.never("Motionless")
    assert {*scores.order()[-2:]} == {"Flipped", "Motionless"} and scores.met("Flipped") == 0
    for column in ("time", "values"):  # under the same seeds and points it is the same run
        same, asgd = (tables.finals[tables.finals["strategy"] == name] for name in ("Same", "ASGD"))
        assert [*same[column]] == [*asgd[column]]

    verify = ("leaderboard", "verify", "board", "--suite", "tiny.yaml", *own[:2], "--workers", "1")
    done = asyncfl(tmp_path, *verify)
    assert done.returncode == 0 and done.stdout.count(": equal") == 4, done.stdout + done.stderr
    worse = tables.finals.assign(updates=tables.finals["updates"] + 1)
    BoardTables(tables.trials, worse).save(tmp_path / "board")
    done = asyncfl(tmp_path, *verify)
    assert done.returncode == 1 and done.stdout.count("updates") == 4

    tables.save(tmp_path / "evidence")
    done = asyncfl(
        tmp_path, "evidence", "own_entries:Flipped", *words[:4], "--against", "ASGD", "--store", "store",
        "--workers", "1", "--out", "evidence",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    conclusion = json.loads((tmp_path / "evidence" / "manifest.json").read_text())["conclusion"]
    assert conclusion.startswith("Fixed speeds: most runs of Flipped never meet the target")


@pytest.mark.slow
def test_a_held_out_scale_takes_the_parameters_of_another(
    suite: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(board, "HELD_OUT", {"fixed": "alike"})
    words = ("--suite", suite, "--out", tmp_path / "out", "--study", 1, "--workers", 1)
    with pytest.raises(UserError, match="alike"):
        run("run", "--scale", "fixed", *words)
    run("run", *words)  # what is held out is not run by itself
    assert BoardTables.load(tmp_path / "out").scales == ["alike"]
    run("run", "--scale", "fixed", *words)
    tables = BoardTables.load(tmp_path / "out")
    assert {*tables.trials["scale"]} == {"alike"} and tables.scales == ["alike", "fixed"]
    study = StudyOfScale(str(suite), "fixed", 1)
    best = tables.best_trials("alike", 1)
    assert {*best} == {"FedAvg", "FedBuff"}
    for run_of_suite in study.finals(study.winners(tables)).runs():
        strategy, values = run_of_suite.experiment.strategy, best[run_of_suite.strategy]
        assert strategy.local_lr == values["local_lr"] and strategy.server.name == values["server.name"]


@pytest.mark.slow
def test_the_target_is_what_tuned_fedavg_holds_on_each_half(
    suite: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(targets, "POINTS", 4)
    monkeypatch.setattr(targets, "ROUNDS", 8)
    own = targets.goal(str(suite), "alike", processes=2)
    loaded = load(str(suite), [], "alike")
    space = plan(loaded).studies[0].space
    scenario = loaded.runs()[0].experiment.scenario
    for half, target in (("first_half", own.tuning_target), ("second_half", own.target)):
        problem = scenario.problem.model_copy(update={"evaluate_on": half})
        where = scenario.model_copy(update={"problem": problem, "budget": targets.length(loaded)})
        strategy = space.apply(own.best, where)
        ends = []
        for seed in targets.FINAL_SEEDS:
            record = recorder.run(Experiment(scenario=where, strategy=strategy, seed=seed), evaluate="test")
            ends.append(np.mean([row["test/accuracy"] for row in record.curve[-3:]]))
        assert target == pytest.approx(np.median(ends) - 0.03, abs=0.003)  # stacks differ in the last bits
    assert own.budget == float(f"{3 * own.time:.2g}") and 0 <= own.share <= 1
