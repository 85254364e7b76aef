"""Whole campaigns on quadratics: the best rate in closed form, counts after any end, what MLflow has."""

import itertools
import json
import os
import re
import shutil
import signal
import subprocess
from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from mlflow import MlflowClient
from mlflow.entities import Run
from patience import PATIENCE, eventually
from small import QUADRATIC, RATE, Make, Write, tune

from benchmarks.engine import Local
from benchmarks.suite import tuned
from benchmarks.tracking.store import Store
from tuning import results
from tuning.campaign import Driver
from tuning.locks import FileLocks
from tuning.records import WRITING
from tuning.storage import open_storage
from tuning.study import Campaign

ROOT = Path(__file__).parents[2]
PROGRAM = "from asyncfl.cli import main; main()"

pytestmark = pytest.mark.usefixtures("fork_server")


def recorded(store: Store, kind: str, suite: str = "small") -> list[Run]:
    client = MlflowClient(store.tracking_uri)
    experiment = client.get_experiment_by_name(f"{suite}.tuning")
    assert experiment is not None
    where = f"tags.`asyncfl.kind` = '{kind}'"
    return list(client.search_runs([experiment.experiment_id], where, max_results=1000))


def test_the_best_rate_of_gradient_descent_is_found(make: Make, store: Store) -> None:
    # One step a round for both clients: θ − 1 shrinks by |1 − η λ| with λ = (2 + 6)/2, so η = 1/4 is best.
    driver = tune(make(tuning={"trials": 25, "seeds": 1, "batch": 2, "last": 1, "space": RATE}), store)
    (ledger,) = driver.ledgers
    best = ledger.best()
    assert best is not None and best.params["local_lr"] == pytest.approx(0.25, rel=0.1)
    for trial in ledger.ended():
        rounds, worst = 10, 10.0  # 20 updates of two clients; ten times the first distance is where it is cut
        expected = min(abs(1 - 4 * trial.params["local_lr"]) ** rounds, worst)
        assert trial.value == pytest.approx(expected, rel=1e-9, abs=1e-15)


def test_every_strategy_gets_the_same_counted_from_the_storage(make: Make, store: Store) -> None:
    campaign = make(strategies=["fedavg", "asgd", "fedbuff"], tuning={"trials": 5, "seeds": 2, "batch": 2})
    driver = tune(campaign, store, workers=2)
    assert [len(ledger.ended()) for ledger in driver.ledgers] == [5, 5, 5]
    for ledger in driver.ledgers:
        assert [len(one.user_attrs["result"]["by_seed"]) for one in ledger.trials()] == [2] * 5
    assert len(recorded(store, "trial")) == 15 and len(recorded(store, "study")) == 3


def test_mlflow_and_the_storage_name_each_other(make: Make, store: Store) -> None:
    (ledger,) = tune(make(), store).ledgers
    (study,) = recorded(store, "study")
    trials = {run.data.tags["asyncfl.trial"]: run for run in recorded(store, "trial")}
    tags, best = study.data.tags, ledger.best()
    assert best is not None
    assert tags["asyncfl.status"] == "finished" and study.info.status == "FINISHED"
    assert json.loads(tags["asyncfl.space"]) == {"local_lr": {"low": 1e-3, "high": 1.0, "log": True}}
    assert (tags["asyncfl.trials"], tags["asyncfl.seeds"]) == ("6", "[1001, 1002]")
    assert (tags["asyncfl.direction"], tags["asyncfl.budget"]) == ("minimize", "20 client updates")
    assert json.loads(tags["asyncfl.best"]) == best.params
    assert tags["asyncfl.best_trial"] == best.user_attrs["mlflow_run"]
    assert study.data.metrics == {"best_value": best.value}
    assert best.value == min(trial.data.metrics["objective"] for trial in trials.values())
    for one in ledger.ended():
        run = trials[str(one.number)]
        assert run.info.run_id == one.user_attrs["mlflow_run"]
        assert run.data.tags["mlflow.parentRunId"] == study.info.run_id
        assert run.data.tags["asyncfl.state"] == "complete"
        assert float(run.data.params["local_lr"]) == one.params["local_lr"]
        assert run.data.metrics["objective"] == pytest.approx(one.value)
    assert Counter(run.data.tags["asyncfl.from"] for run in trials.values()) == {"paper": 2, "sampler": 4}
    client = MlflowClient(store.tracking_uri)
    run = trials["0"].info.run_id
    assert [point.step for point in client.get_metric_history(run, "objective/seed")] == [1001, 1002]
    curve = client.get_metric_history(
        run, "value"
    )  # 0.01 · λ = 0.04: ten rounds of two updates, marks every second
    assert [point.step for point in curve] == [0, 2, 4, 6, 8, 10]
    assert [point.value for point in curve] == pytest.approx([0.96**rounds for rounds in (0, 2, 4, 6, 8, 10)])


def test_a_finished_campaign_computes_nothing_and_a_deleted_study_is_superseded(
    make: Make, store: Store
) -> None:
    first = tune(make(), store)
    again = tune(make(), store)
    assert again.before == first.ended == 6 and len(recorded(store, "trial")) == 6
    (store.folder / "tuning.journal").unlink()
    tune(make(), store)
    superseded = Counter("asyncfl.superseded" in run.data.tags for run in recorded(store, "trial"))
    assert superseded == {True: 6, False: 6}
    assert sorted("asyncfl.superseded" in run.data.tags for run in recorded(store, "study")) == [False, True]


@pytest.mark.slow
def test_what_mlflow_missed_is_brought_there_by_the_next_one(make: Make, store: Store) -> None:
    away = tune(make(), Store(store.folder, "http://127.0.0.1:9"))
    assert away.finished and away.records.away
    back = tune(make(), store)
    assert back.before == 6 and not back.records.away
    assert Counter(run.data.tags["asyncfl.state"] for run in recorded(store, "trial")) == {"complete": 6}


@pytest.mark.parametrize("written", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_a_trial_made_twice_is_there_once(make: Make, store: Store, *, written: bool) -> None:
    """A request to make its run was carried out, but its answer was lost, and it was made again."""
    tune(make(), store)
    client = MlflowClient(store.tracking_uri)
    wanted = {run.data.tags["asyncfl.trial"]: run.data.metrics for run in recorded(store, "trial")}
    for run in recorded(store, "trial"):
        tags = {name: value for name, value in run.data.tags.items() if name != "asyncfl.state"}
        for _ in range(2):
            client.create_run(run.info.experiment_id, run.info.start_time, tags)
        if not written:
            client.delete_run(run.info.run_id)
    assert len(recorded(store, "trial")) == 6 * (2 + written)
    tune(make(), store)
    found = recorded(store, "trial")
    assert len(found) == 6 and {run.info.status for run in found} == {"FINISHED"}
    assert {run.data.tags["asyncfl.trial"]: run.data.metrics for run in found} == wanted


def test_what_is_missing_is_looked_for_and_brought_under_one_lock(
    make: Make, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else two processes that end together would both find a lost trial missing, and both bring it."""
    taken: list[str] = []
    held = FileLocks.held

    def seen(locks: FileLocks, name: str) -> AbstractContextManager[None]:
        taken.append(name)
        return held(locks, name)

    monkeypatch.setattr(FileLocks, "held", seen)
    tune(make(), store)
    assert taken.count(WRITING) == 2  # at the beginning, and at the end


def test_a_grid_is_tried_exactly_once_each(make: Make, store: Store) -> None:
    grid = [0.01, 0.1, 0.2, 0.4]
    campaign = make(tuning={"sampler": "grid", "batch": 3, "space": {"local_lr": grid}})
    (ledger,) = tune(campaign, store, workers=2).ledgers
    assert sorted(one.params["local_lr"] for one in ledger.ended()) == grid
    assert {run.data.tags["asyncfl.from"] for run in recorded(store, "trial")} == {"grid"}


def test_the_width_of_good_rates_by_hand(make: Make, store: Store) -> None:
    """Ten rounds end at |1 − 4λ|¹⁰: 0.96¹⁰ for rates of 0.01 and 0.49, more for 0.005 and 0.5."""
    campaign = make(tuning={"sampler": "grid", "space": {"local_lr": [0.005, 0.01, 0.49, 0.5]}})
    (entry,) = results.found(campaign, tune(campaign, store).ledgers).tuned
    assert entry.value == pytest.approx(0.96**10) and entry.width == pytest.approx(49)


@pytest.mark.parametrize("sampler", ["random", "gp"])
def test_other_samplers_by_name(make: Make, store: Store, sampler: str) -> None:
    (ledger,) = tune(
        make(tuning={"trials": 12, "seeds": 1, "sampler": sampler, "space": RATE}), store
    ).ledgers
    assert len({one.params["local_lr"] for one in ledger.ended()}) == 12


@pytest.mark.parametrize(
    ("pruner", "seeds"),
    [("median", 2), pytest.param("wilcoxon", 6, marks=pytest.mark.slow), ("hyperband", 2)],
)
def test_pruned_trials_count_and_are_never_best(make: Make, store: Store, pruner: str, seeds: int) -> None:
    problem = {**QUADRATIC, "noise": 0.3}
    tuning = {"trials": 12, "seeds": seeds, "batch": 2, "pruner": pruner, "sampler": "random", "space": RATE}
    (ledger,) = tune(make(problem=problem, evaluations=10, tuning=tuning), store).ledgers
    states = Counter(one.state.name for one in ledger.ended())
    best = ledger.best()
    assert sum(states.values()) == 12 and states["PRUNED"] > 0 and best is not None
    assert best.state.name == "COMPLETE"
    assert Counter(run.data.tags["asyncfl.state"] for run in recorded(store, "trial")) == {
        "complete": states["COMPLETE"],
        "pruned": states["PRUNED"],
    }


def test_diverged_trials_are_finite_and_counted(make: Make, store: Store) -> None:
    campaign = make(
        budget={"updates": 2000},
        tuning={"trials": 3, "sampler": "grid", "space": {"local_lr": [0.1, 5.0, 9.0]}},
    )
    driver = tune(campaign, store)
    (ledger,) = driver.ledgers
    diverged = {one.params["local_lr"]: one.user_attrs["result"]["diverged"] for one in ledger.ended()}
    assert diverged == {0.1: 0, 5.0: 3, 9.0: 3} and ledger.best().params == {"local_lr": 0.1}
    assert {one.value for one in ledger.ended() if one.params["local_lr"] > 1} == {10.0}


def test_a_failing_strategy_fails_its_trials_and_no_others(make: Make, store: Store) -> None:
    broken = {"name": "broken:Broken"}
    campaign = make(strategies=["asgd", broken], tuning={"trials": 3, "space": RATE})
    driver = tune(campaign, store)
    states = [Counter(one.state.name for one in ledger.ended()) for ledger in driver.ledgers]
    assert states == [{"COMPLETE": 3}, {"FAIL": 3}]
    entries = results.found(campaign, driver.ledgers).tuned
    assert [entry.strategy for entry in entries] == ["ASGD"]
    reasons = {run.data.tags.get("asyncfl.reason") for run in recorded(store, "trial")}
    (reason,) = reasons - {None}
    assert re.fullmatch(r"RuntimeError: it is broken \(\S*broken\.py:\d+\)", reason)
    assert [ledger.errors() for ledger in driver.ledgers] == [[], [reason] * 3]


def test_a_trial_without_a_value_says_why(make: Make, store: Store) -> None:
    """A diverged seed counts by the first model's value, which is none here."""
    problem = {"name": "broken:Blind", "centres": [[1.0], [1.0]]}
    (ledger,) = tune(make(problem=problem, tuning={"trials": 2, "space": RATE}), store).ledgers
    assert {trial.state.name for trial in ledger.ended()} == {"FAIL"}
    assert ledger.errors() == ["distance of the first model is not finite"] * 2
    reasons = {run.data.tags.get("asyncfl.reason") for run in recorded(store, "trial")}
    assert reasons == {"distance of the first model is not finite"}


def test_a_trial_that_kills_its_workers_fails_alone(make: Make, store: Store) -> None:
    deadly = {"name": "broken:Deadly", "fatal": 0.1}
    grid = [0.01, 0.1, 0.2]
    campaign = make(strategies=[deadly], tuning={"sampler": "grid", "batch": 3, "space": {"local_lr": grid}})
    (ledger,) = tune(campaign, store).ledgers
    states = {one.params["local_lr"]: one.state.name for one in ledger.trials()}
    assert states == {0.01: "COMPLETE", 0.1: "FAIL", 0.2: "COMPLETE"}
    (reason,) = {run.data.tags.get("asyncfl.reason") for run in recorded(store, "trial")} - {None}
    assert reason == f"its worker process died 3 times (killed by SIGKILL); see {store.log}"
    assert store.log.is_file()


def interrupted_after(messages: int, campaign: Campaign, store: Store, *, killed: bool) -> None:
    """Tune until workers have told so much; a killed driver has no time to bring anything to MLflow."""
    driver = Driver(campaign, open_storage(str(store.folder / "tuning.journal")), store)
    take_in, told = driver._take_in, itertools.count(1)

    def interrupted(*message: Any) -> bool:
        ended = take_in(*message)
        if next(told) == messages:
            raise KeyboardInterrupt
        return ended

    driver._take_in = interrupted  # type: ignore[method-assign]
    if killed:
        driver.records.close = lambda *_: driver.records._thread.shutdown()  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt):
        driver.run(Local(1), lambda _: None)


@pytest.mark.parametrize(
    ("pruner", "killed"), [("none", True), pytest.param("median", False, marks=pytest.mark.slow)]
)
def test_an_interrupted_campaign_writes_what_an_undisturbed_one_writes(
    make: Make, store: Store, tmp_path: Path, empty_database: Path, pruner: str, *, killed: bool
) -> None:
    """The same file, and each trial once in MLflow; with TPE, which draws from what came before."""
    tuning = {"trials": 14, "seeds": 2, "batch": 3, "pruner": pruner, "space": RATE}
    campaign = make(problem={**QUADRATIC, "noise": 0.3}, tuning=tuning)
    whole = Store(tmp_path / "undisturbed")
    whole.folder.mkdir()
    shutil.copy(empty_database, whole.database)
    for messages in (1, 20, 43, 90):
        interrupted_after(messages, campaign, store, killed=killed)
    written = []
    for place in (whole, store):
        driver = tune(campaign, place)
        tuned.write(place.folder / "tuned.yaml", results.found(campaign, driver.ledgers))
        trials = {run.data.tags["asyncfl.trial"]: run for run in recorded(place, "trial")}
        assert len(recorded(place, "trial")) == len(trials) == 14
        assert {run.info.status for run in trials.values()} == {"FINISHED"}
        assert {run.data.tags["asyncfl.status"] for run in recorded(place, "study")} == {"finished"}
        metrics = {
            number: [run.data.params, run.data.metrics.get("objective"), run.data.tags["asyncfl.from"]]
            for number, run in trials.items()
        }  # the curve of a pruned trial ends when its worker hears of that
        written.append(((place.folder / "tuned.yaml").read_text(), metrics))
    assert "before: null" not in written[0][0]
    assert written[0] == written[1]


def test_what_was_tuned_from_may_be_the_optimum(make: Make, store: Store) -> None:
    """One step of 1/4 ends at it exactly: the value before tuning is 0, not unknown."""
    campaign = make(lr=0.25, tuning={"trials": 2, "seeds": 1, "space": RATE})
    (entry,) = results.found(campaign, tune(campaign, store).ledgers).tuned
    assert (entry.before, entry.value) == (0, 0)


Start = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def start(start: Start) -> Start:
    """Starts `asyncfl tune`."""
    return partial(start, "tune")


@pytest.mark.slow
@pytest.mark.usefixtures("sluggish")
@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGKILL])
def test_interrupted_and_continued_it_has_what_was_planned(
    write: Write, store: Store, start: Start, tmp_path: Path, end: signal.Signals
) -> None:
    """Two workers do two batches, of two trials on two seeds each; in a third it ends."""
    go, waits = store.folder / "go", store.folder / "go.waits"
    slow = {"name": "sluggish:Held", "go": str(go), "at": 5, "free": 8}
    suite = write(strategies=[slow], tuning={"trials": 8, "seeds": 2, "batch": 2, "space": RATE})
    file = store.folder / "tuned.yaml"
    command = (str(suite), "--store", str(store.folder), "--workers", "2", "--out", str(file))

    first = start(*command)
    assert eventually(waits.exists), first.communicate()[0]
    os.kill(first.pid, end)
    said = first.communicate(timeout=PATIENCE)[0]
    assert first.returncode == (130 if end is signal.SIGINT else -end), said
    if end is signal.SIGINT:
        assert "trials finished; trials in progress will be retried." in said

    go.touch()
    second = start(*command)
    said = second.communicate(timeout=PATIENCE)[0]
    assert second.returncode == 0, said
    assert "small: 1 study, 8 trials in" in said and "finished before" in said

    third = start(*command)
    assert "1 study, 8 trials: all finished already; nothing to do." in third.communicate(timeout=PATIENCE)[0]

    states = Counter(run.data.tags["asyncfl.state"] for run in recorded(store, "trial"))
    assert states == {"complete": 8}
    undisturbed = start(
        *command[:-1], str(tmp_path / "undisturbed.yaml"), "--storage", str(tmp_path / "other")
    )
    assert undisturbed.wait(PATIENCE) == 0
    assert (tmp_path / "undisturbed.yaml").read_text() == file.read_text()
