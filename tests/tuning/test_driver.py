"""Whole campaigns on quadratics: the best rate in closed form, counts after any end, what MLflow has."""

import itertools
import json
import re
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml
from mlflow import MlflowClient
from mlflow.entities import Run
from small import QUADRATIC, RATE, SUITE, Make, Write, tune

from benchmarks.engine import Local
from benchmarks.mlflow_store.delivery import Delivery
from benchmarks.mlflow_store.store import Store
from benchmarks.runs.messages import Finished
from benchmarks.suite import tuned
from benchmarks.suite.suite import load as load_suite
from fl_core.recorded_names import TrialState
from reports.records.suite_reader import load
from tests.databases import new_store
from tuning import results
from tuning.driver import Driver
from tuning.plan import plan
from tuning.progress import best_so_far
from tuning.storage import open_storage
from tuning.study import Campaign

pytestmark = pytest.mark.usefixtures("fork_server")


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory, fork_server: None) -> tuple[Driver, Store]:
    """A finished campaign of the suite, and its store, which no test changes."""
    folder = tmp_path_factory.mktemp("first")
    (folder / "small.yaml").write_text(yaml.safe_dump(SUITE))
    store = new_store(folder / "results")
    return tune(plan(load_suite(str(folder / "small.yaml"), tuned=False)), store), store


@pytest.fixture
def finished(first: tuple[Driver, Store], tmp_path: Path) -> Store:
    """A copy of that store, for a test to change."""
    return Store(Path(shutil.copytree(first[1].folder, tmp_path / "finished")))


def recorded(store: Store, kind: str, suite: str = "small") -> list[Run]:
    client = MlflowClient(store.tracking_uri)
    experiment = client.get_experiment_by_name(f"{suite}.tuning")
    assert experiment is not None
    where = f"tags.`asyncfl.kind` = '{kind}'"
    return list(client.search_runs([experiment.experiment_id], where, max_results=1000))


def current(store: Store) -> dict[tuple[int, int], Run]:
    """The runs of trials that count, by trial and seed; each is there once."""
    runs = [run for run in recorded(store, "trial") if "asyncfl.superseded" not in run.data.tags]
    by_place = {
        (int(run.data.tags["asyncfl.trial"]), int(run.data.tags["asyncfl.seed"])): run for run in runs
    }
    assert len(by_place) == len(runs)
    return by_place


def reasons(store: Store) -> set[str]:
    """Why runs ended in errors."""
    failed = [run for run in recorded(store, "trial") if run.data.tags["asyncfl.status"] == "error"]
    return {run.data.tags["asyncfl.reason"] for run in failed}


def test_the_best_rate_of_gradient_descent_is_found(make: Make, store: Store) -> None:
    # One step a round for both clients: θ − 1 shrinks by |1 − η λ| with λ = (2 + 6)/2, so η = 1/4 is best.
    driver = tune(make(tuning={"trials": 25, "seeds": 1, "batch": 2, "last": 1, "space": RATE}), store)
    (study,) = driver.studies
    best = study.best
    assert best is not None and best.parameters["local_lr"] == pytest.approx(0.25, rel=0.1)
    assert len(study.trials) == 25
    for trial in study.trials:
        rounds, worst = 10, 10.0  # 20 updates of two clients; ten times the first distance is where it is cut
        expected = min(abs(1 - 4 * trial.parameters["local_lr"]) ** rounds, worst)
        assert trial.value == pytest.approx(expected, rel=1e-9, abs=1e-15)


def test_progress_counts_the_trials_of_other_processes(first: tuple[Driver, Store], finished: Store) -> None:
    """A process that computed none of them tells the same best values."""
    driver, _ = first
    other = Driver(driver.campaign, open_storage(str(finished.folder / "tuning.journal")), finished)
    (line,) = best_so_far(other)
    assert [line] == list(best_so_far(driver))
    for study in driver.studies:
        assert study.best is not None
        assert f"{study.plan.strategy} {study.best.value:.4g}" in line


def test_a_trial_is_a_run_under_each_of_its_seeds(first: tuple[Driver, Store]) -> None:
    driver, store = first
    (result,), (study,), runs = driver.studies, recorded(store, "study"), current(store)
    tags, best = study.data.tags, result.best
    assert best is not None and best.value is not None
    assert tags["asyncfl.status"] == "finished" and study.info.status == "FINISHED"
    assert json.loads(tags["asyncfl.space"]) == {"local_lr": {"low": 1e-3, "high": 1.0, "log": True}}
    assert (tags["asyncfl.trials"], tags["asyncfl.seeds"]) == ("6", "[1001, 1002]")
    assert (tags["asyncfl.direction"], tags["asyncfl.budget"]) == ("minimize", "20 client updates")
    assert json.loads(tags["asyncfl.best"]) == best.parameters
    assert tags["asyncfl.best_trial"] == str(best.number)
    assert study.data.metrics == {"best_value": pytest.approx(best.value)}
    assert runs.keys() == {(number, seed) for number in range(6) for seed in (1001, 1002)}
    for trial in result.trials:
        for seed in (1001, 1002):
            run = runs[trial.number, seed]
            assert run.data.tags["mlflow.parentRunId"] == study.info.run_id
            assert run.data.tags["asyncfl.status"] == "done" and run.info.status == "FINISHED"
            assert float(run.data.params["local_lr"]) == trial.parameters["local_lr"]
            assert run.data.metrics["objective"] == trial.by_seed[seed]
    assert Counter(run.data.tags["asyncfl.from"] for run in runs.values()) == {"paper": 4, "sampler": 8}
    client = MlflowClient(store.tracking_uri)
    curve = client.get_metric_history(runs[0, 1001].info.run_id, "distance")
    # 0.01 · λ = 0.04: ten rounds of two updates, marks every second; the end is there twice
    assert [point.step for point in curve][:6] == [0, 2, 4, 6, 8, 10]
    values = [point.value for point in curve][:6]
    assert values == pytest.approx([0.96**rounds for rounds in (0, 2, 4, 6, 8, 10)])


def test_a_finished_campaign_computes_nothing_and_what_is_made_anew_replaces_it(
    make: Make, first: tuple[Driver, Store], finished: Store
) -> None:
    (driver, _), store = first, finished
    again = tune(make(), store)
    assert again.finished_earlier == driver.ended == 6 and len(recorded(store, "trial")) == 12
    values = [trial.value for trial in driver.studies[0].trials]
    assert [trial.value for trial in again.studies[0].trials] == values
    (store.folder / "tuning.journal").unlink()
    anew = tune(make(), store)  # the same trials are drawn, and found
    assert [trial.value for trial in anew.studies[0].trials] == values
    assert len(recorded(store, "trial")) == 12 == len(current(store))


def test_an_edit_makes_another_study_and_marks_the_one_before(make: Make, finished: Store) -> None:
    store = finished
    tune(make(budget={"updates": 30}), store)
    superseded = Counter("asyncfl.superseded" in run.data.tags for run in recorded(store, "trial"))
    assert superseded == {True: 12, False: 12}
    assert sorted("asyncfl.superseded" in run.data.tags for run in recorded(store, "study")) == [False, True]
    tune(make(), store)  # and back: nothing is computed, and the first counts once more
    assert len(recorded(store, "trial")) == 24
    assert {
        run.data.tags["asyncfl.budget"]
        for run in recorded(store, "study")
        if "asyncfl.superseded" not in run.data.tags
    } == {"20 client updates"}


def test_a_pilot_stands_beside_the_campaign(write: Write, finished: Store) -> None:
    store = finished
    settings = ["budget.updates=12"]
    pilot = plan(load_suite(str(write()), settings, tuned=False), pilot=True)
    tune(pilot, store)
    assert not any("asyncfl.superseded" in run.data.tags for run in recorded(store, "trial"))
    assert {run.data.tags["asyncfl.budget"] for run in recorded(store, "study")} == {"20 client updates"}
    (study,) = recorded(store, "study", "small.pilot")
    assert study.data.tags["asyncfl.budget"] == "12 client updates"
    assert [study.budget for study in load(store.tracking_uri, "small").studies] == ["20 client updates"]
    assert [study.budget for study in load(store.tracking_uri, "small.pilot").studies] == [
        "12 client updates"
    ]


def test_runs_of_trials_that_are_lost_are_computed_again(
    make: Make, first: tuple[Driver, Store], finished: Store
) -> None:
    (before, _), store = first, finished
    client = MlflowClient(store.tracking_uri)
    lost = [run for place, run in current(store).items() if place in {(0, 1001), (3, 1002)}]
    for run in lost:
        client.delete_run(run.info.run_id)
    after = tune(make(), store)
    assert len(current(store)) == 12
    assert [trial.value for trial in after.studies[0].trials] == [
        trial.value for trial in before.studies[0].trials
    ]


def test_runs_that_ended_before_an_interruption_are_not_computed_again(make: Make, store: Store) -> None:
    campaign = make(tuning={"trials": 4, "seeds": 3, "batch": 4, "space": RATE})
    interrupted_after(8, campaign, store, killed=False)
    before = {run.data.tags["asyncfl.key"] for run in current(store).values()}
    assert 0 < len(before) < 12
    driver = Driver(campaign, open_storage(str(store.folder / "tuning.journal")), store)
    see, ended = driver._handle, []

    def seen(job: Any, event: Any, *rest: Any) -> None:
        ended.extend([job.key] if isinstance(event, Finished) else [])
        see(job, event, *rest)

    driver._handle = seen  # type: ignore[method-assign]
    driver.run(Local(1), lambda _: None)
    after = {run.data.tags["asyncfl.key"] for run in current(store).values()}
    assert len(after) == 12 and sorted(ended) == sorted(after - before)


@pytest.mark.slow
def test_what_mlflow_missed_is_brought_there_by_the_next_one(make: Make, store: Store) -> None:
    away = tune(make(), Store(store.folder, "http://127.0.0.1:9"))
    assert away.finished and away.outage
    back = tune(make(), store)
    assert back.finished_earlier == 6 and not back.outage
    assert Counter(run.data.tags["asyncfl.status"] for run in current(store).values()) == {"done": 12}


@pytest.mark.slow
def test_gaussian_processes_draw_rates(make: Make, store: Store) -> None:
    (study,) = tune(make(tuning={"trials": 12, "seeds": 1, "sampler": "gp", "space": RATE}), store).studies
    assert len({trial.parameters["local_lr"] for trial in study.trials}) == 12


@pytest.mark.parametrize(
    ("pruner", "seeds"),
    [
        ("median", 2),
        pytest.param("wilcoxon", 6, marks=pytest.mark.slow),
        pytest.param("hyperband", 2, marks=pytest.mark.slow),
    ],
)
def test_pruned_trials_count_and_are_never_best(make: Make, store: Store, pruner: str, seeds: int) -> None:
    problem = {**QUADRATIC, "noise": 0.3}
    tuning = {"trials": 12, "seeds": seeds, "batch": 2, "pruner": pruner, "sampler": "random", "space": RATE}
    driver = tune(make(problem=problem, evaluations=10, tuning=tuning), store)
    (study,) = driver.studies
    states = Counter(trial.state for trial in study.trials)
    assert sum(states.values()) == 12 and states[TrialState.PRUNED] > 0 and study.best is not None
    assert study.best.state is TrialState.COMPLETE
    (page,) = load(store.tracking_uri, "small").studies
    assert Counter(trial.state for trial in page.trials) == states


def test_diverged_trials_are_finite_and_counted(make: Make, store: Store) -> None:
    campaign = make(
        budget={"updates": 600},  # 300 rounds: 19 ** 300 is infinite
        tuning={"trials": 3, "sampler": "grid", "space": {"local_lr": [0.1, 5.0, 9.0]}},
    )
    (study,) = tune(campaign, store).studies
    diverged = {trial.parameters["local_lr"]: trial.diverged for trial in study.trials}
    assert diverged == {0.1: 0, 5.0: 3, 9.0: 3}
    assert study.best is not None and study.best.parameters == {"local_lr": 0.1}
    assert {trial.value for trial in study.trials if trial.parameters["local_lr"] > 1} == {10.0}


def test_a_failing_strategy_fails_its_trials_and_no_others(make: Make, store: Store) -> None:
    broken = {"name": "broken:Broken"}
    campaign = make(strategies=["asgd", broken], tuning={"trials": 2, "space": RATE})
    driver = tune(campaign, store)
    states = [Counter(trial.state for trial in study.trials) for study in driver.studies]
    assert states == [{TrialState.COMPLETE: 2}, {TrialState.FAILED: 2}]
    entries = results.to_tuned_file(campaign, driver.studies).tuned
    assert [entry.strategy for entry in entries] == ["ASGD"]
    (reason,) = reasons(store)
    assert re.fullmatch(r"RuntimeError: it is broken \(\S*broken\.py:\d+\)", reason)
    assert [study.errors() for study in driver.studies] == [[], [reason] * 2]


def test_a_trial_without_a_value_says_why(make: Make, store: Store) -> None:
    """A diverged seed counts by the first model's value, which is none here."""
    problem = {"name": "broken:Blind", "centres": [[1.0], [1.0]]}
    (study,) = tune(make(problem=problem, tuning={"trials": 2, "space": RATE}), store).studies
    assert {trial.state for trial in study.trials} == {TrialState.FAILED}
    assert all("distance of the first model is not finite" in error for error in study.errors())
    assert reasons(store) == set(study.errors())


def test_a_trial_that_kills_its_workers_fails_alone(make: Make, store: Store) -> None:
    deadly = {"name": "broken:Deadly", "fatal": 0.1}
    grid = [0.01, 0.1, 0.2]
    campaign = make(strategies=[deadly], tuning={"sampler": "grid", "batch": 3, "space": {"local_lr": grid}})
    (study,) = tune(campaign, store).studies
    states = {trial.parameters["local_lr"]: trial.state for trial in study.trials}
    assert states == {0.01: TrialState.COMPLETE, 0.1: TrialState.FAILED, 0.2: TrialState.COMPLETE}
    (reason,) = reasons(store)
    assert reason == f"its worker process died 3 times (killed by SIGKILL); see {store.log}"
    assert store.log.is_file()


def interrupted_after(messages: int, campaign: Campaign, store: Store, *, killed: bool) -> None:
    """Tune until workers have told so much; a killed driver has no time to bring anything to MLflow."""
    driver = Driver(campaign, open_storage(str(store.folder / "tuning.journal")), store)
    see, told = driver._handle, itertools.count(1)

    def interrupted(*message: Any) -> None:
        see(*message)
        if next(told) == messages:
            raise KeyboardInterrupt

    driver._handle = interrupted  # type: ignore[method-assign]
    with pytest.MonkeyPatch.context() as patch:
        if killed:
            patch.setattr(Delivery, "close", lambda self: self._thread.shutdown())
        with pytest.raises(KeyboardInterrupt):
            driver.run(Local(1), lambda _: None)


@pytest.mark.parametrize(
    ("pruner", "ends"),
    [
        ("none", (20, 43)),
        pytest.param("none", (1, 20, 43, 20), marks=pytest.mark.slow),
        pytest.param("median", (1, 5, 9, 14), marks=pytest.mark.slow),
    ],
)
def test_an_interrupted_campaign_writes_what_an_undisturbed_one_writes(
    make: Make, store: Store, pruner: str, ends: tuple[int, ...]
) -> None:
    """The same file, and each run once in MLflow; with TPE, which draws from what came before."""
    tuning = {"trials": 13, "seeds": 2, "batch": 3, "pruner": pruner, "space": RATE}
    campaign = make(problem={**QUADRATIC, "noise": 0.3}, tuning=tuning)
    whole = Store(Path(shutil.copytree(store.folder, store.folder.with_name("undisturbed"))))
    for messages in ends:
        interrupted_after(messages, campaign, store, killed=pruner == "none")
    written = []
    for place in (whole, store):
        driver = tune(campaign, place)
        tuned.write(place.folder / "tuned.yaml", results.to_tuned_file(campaign, driver.studies))
        runs = current(place)
        assert {number for number, _ in runs} == set(range(13))
        assert {run.info.status for run in runs.values()} == {"FINISHED"}
        assert {run.data.tags["asyncfl.status"] for run in recorded(place, "study")} == {"finished"}
        metrics = {
            at: [run.data.params, run.data.metrics["objective"], run.data.tags["asyncfl.from"]]
            for at, run in runs.items()
            if "objective" in run.data.metrics
        }  # the curve of a pruned trial ends when its worker hears of that
        written.append(((place.folder / "tuned.yaml").read_text(), metrics if pruner == "none" else {}))
    assert "before: null" not in written[0][0]
    assert written[0] == written[1]
