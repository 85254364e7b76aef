"""Tuned values: written by a campaign, used for the scenario that they were made for; the shipped ones."""

from pathlib import Path

import pytest
import yaml
from small import Make, Write, tune

from benchmarks.errors import UserError
from benchmarks.suite import tuned
from benchmarks.suite.suite import load
from benchmarks.tracking.store import Store
from tuning import results

pytestmark = pytest.mark.usefixtures("fork_server")


def test_tuned_values_are_used_for_the_scenario_they_were_made_for(
    write: Write, make: Make, store: Store
) -> None:
    strategies = ["fedavg", "asgd"]
    campaign = make(strategies=strategies)
    driver = tune(campaign, store)
    path = write(strategies=strategies)
    where = load(str(path)).tuned_values
    assert where == path.with_name("tuned-small.yaml")
    with pytest.raises(
        UserError, match=f"small is not tuned: there is no {where}; make it with asyncfl tune"
    ):
        load(str(path), tuned=True)

    tuned.write(where, results.found(campaign, driver.studies))
    suite = load(str(path), tuned=True)
    assert suite.name == "small-tuned"
    for study in driver.studies:
        best = study.best
        assert best is not None
        runs = [run for run in suite.runs() if run.strategy == study.plan.strategy]
        assert {run.experiment.strategy.local_lr for run in runs} == {best.parameters["local_lr"]}
    assert (
        load(str(write(strategies=strategies, lr="tuned"))).runs()[0].experiment == suite.runs()[0].experiment
    )

    named = [{"name": name, "label": f"my {name}"} for name in strategies]
    labelled = load(str(write(strategies=named)), tuned=True).runs()
    assert {run.strategy for run in labelled} == {"my fedavg", "my asgd"}
    assert [run.experiment for run in labelled] == [run.experiment for run in suite.runs()]

    for changed, line in (
        ({"budget": {"updates": 21}}, "budget of .*, not of 21 client updates"),
        ({"evaluations": 3, "problem": {"name": "quadratic", "noise": 0.7}}, "tuned for another scenario"),
        ({"strategies": ["fedbuff"]}, "nothing is tuned for FedBuff in quadratic"),
        ({"seeds": [0, 1001]}, "it was tuned on seed 1001"),
    ):
        with pytest.raises(UserError, match=line):
            load(str(write(**{"strategies": strategies, **changed})), tuned=True).runs()


def test_a_file_that_asyncfl_tune_did_not_write(write: Write) -> None:
    path = write()
    load(str(path)).tuned_values.write_text(yaml.safe_dump({"suite": "small", "tuned": []}))
    with pytest.raises(UserError, match="objective: is missing: not a file of asyncfl tune"):
        load(str(path), tuned=True)


def test_a_suite_with_tuned_rates_names_itself_and_the_missing_file(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text(
        "{name: a, seeds: 1, problem: {name: digits, clients: 4}, budget: {updates: 1}, strategies: [asgd], "
        "lr: tuned}"
    )
    with pytest.raises(UserError, match=f"{path}: lr: tuned: there is no {path.with_name('tuned-a.yaml')}"):
        load(str(path))


@pytest.mark.parametrize("name", sorted(path.stem for path in tuned.FOLDER.glob("*.yaml")))
def test_shipped_values_fit_their_suites(name: str) -> None:
    of, _, scale = name.partition("-")
    suite = load(of, scale=scale or None, tuned=True)
    assert suite.tuned is not None
    places = {(run.scenario, run.strategy) for run in suite.runs()}  # raises where a digest does not fit
    assert places == {(entry.scenario, entry.strategy) for entry in suite.tuned.spec.tuned}
