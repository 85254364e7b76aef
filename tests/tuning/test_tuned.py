"""Tuned values: written by a campaign, used for the scenario that they were made for; the shipped ones."""

from pathlib import Path

import pytest
import yaml
from small import Make, Write, tune

from benchmarks.errors import UserError
from benchmarks.suite import tuned
from benchmarks.suite.suite import load
from benchmarks.tracking.run_result import RunResult, TrialResult
from benchmarks.tracking.store import Store
from fl_core.schema import Origin, TrialMetric
from tuning import results
from tuning.results import StudyResult

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
        UserError, match=f"small is not tuned: {where} does not exist. Create it with asyncfl tune"
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
        ({"strategies": ["fedbuff"]}, "no tuned values for FedBuff in quadratic"),
        ({"seeds": [0, 1001]}, "tuned on seed 1001"),
    ):
        with pytest.raises(UserError, match=line):
            load(str(write(**{"strategies": strategies, **changed})), tuned=True).runs()


@pytest.mark.parametrize(
    ("strategies", "space"),
    [
        (["fedavg", "asgd"], {"local_lr": [0.01, 0.1]}),
        (
            [{"name": "fedbuff", "max_staleness": 3, "label": "Mine"}, "asgd"],
            {"local_lr": [0.01, 0.1], "fedbuff.buffer": [1, 2]},
        ),
        (["fedavg"], {"local_lr": [0.1], "server.name": ["momentum"]}),
    ],
)
def test_tuned_values_can_be_pasted_into_a_suite(
    write: Write, make: Make, store: Store, strategies: list[object], space: dict[str, list[object]]
) -> None:
    campaign = make(strategies=strategies, tuning={"sampler": "grid", "seeds": 1, "space": space})
    found = results.found(campaign, tune(campaign, store).studies)
    tuned.write(campaign.suite.tuned_values, found)
    pasted = yaml.safe_load("\n".join(results.pasteable(campaign, found)))
    assert pasted.keys() == ({"lr"} if len({*space}) == 1 else {"strategies"})
    expected = load(str(write(strategies=strategies)), tuned=True).runs()
    same = load(str(write(**{"strategies": strategies, **pasted}))).runs()
    assert [run.key for run in same] == [run.key for run in expected]
    given = {entry["label"] for entry in strategies if isinstance(entry, dict) and "label" in entry}
    assert given <= {run.strategy for run in same}


def trial(number: int, value: float, origin: Origin = Origin.SAMPLER, **values: object) -> TrialResult:
    """A trial of one seed with that objective."""
    metrics: dict[str, float] = {TrialMetric.OBJECTIVE: value}
    run = RunResult("", "", "FINISHED", 1, 2, "", {"asyncfl.status": "done"}, metrics=metrics)
    return TrialResult(number, origin, values, {1001: run}, seeds=(1001,))


@pytest.mark.parametrize(
    ("best", "origin", "search", "words"),
    [
        ({"local_lr": 0.1, "buffer": 5}, Origin.SAMPLER, (30, "tpe"), []),
        ({"local_lr": 0.0011, "buffer": 5}, Origin.SAMPLER, (30, "tpe"), ["local_lr lower"]),
        ({"local_lr": 0.1, "buffer": 10}, Origin.SAMPLER, (30, "tpe"), ["buffer upper"]),
        ({"local_lr": 0.1, "buffer": 1}, Origin.SAMPLER, (30, "tpe"), ["buffer is 1"]),
        ({"local_lr": 0.1, "buffer": 5}, Origin.PAPER, (30, "tpe"), ["defaults"]),
        ({"local_lr": 0.1, "buffer": 5}, Origin.SAMPLER, (12, "tpe"), ["few for tpe"]),
        ({"local_lr": 0.1, "buffer": 5}, Origin.SAMPLER, (12, "random"), []),
    ],
)
def test_caveats_of_best_values(
    make: Make, best: dict[str, object], origin: Origin, search: tuple[int, str], words: list[str]
) -> None:
    space = {"local_lr": {"low": 0.001, "high": 1}, "buffer": [1, 5, 10]}
    trials, sampler = search
    tuning = {"trials": trials, "sampler": sampler, "seeds": 1, "space": space}
    (study,) = make(strategies=["fedbuff"], tuning=tuning).studies
    ended = [trial(0, 0.5, local_lr=0.2, buffer=5), trial(1, 0.1, origin, **best)]
    said = results.caveats([StudyResult(study, ended)])
    assert len(said) == len(words) and all(word in line for word, line in zip(words, said, strict=True))


def test_a_file_that_asyncfl_tune_did_not_write(write: Write) -> None:
    path = write()
    load(str(path)).tuned_values.write_text(yaml.safe_dump({"suite": "small", "tuned": []}))
    with pytest.raises(UserError, match="objective: is missing: not written by asyncfl tune"):
        load(str(path), tuned=True)


def test_a_suite_with_tuned_rates_names_itself_and_the_missing_file(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text(
        "{name: a, seeds: 1, problem: {name: digits, clients: 4}, budget: {updates: 1}, strategies: [asgd], "
        "lr: tuned}"
    )
    with pytest.raises(
        UserError, match=f"{path}: lr: tuned: {path.with_name('tuned-a.yaml')} does not exist"
    ):
        load(str(path))


@pytest.mark.parametrize("name", sorted(path.stem for path in tuned.FOLDER.glob("*.yaml")))
def test_shipped_values_fit_their_suites(name: str) -> None:
    of, _, scale = name.partition("-")
    suite = load(of, scale=scale or None, tuned=True)
    assert suite.tuned is not None
    places = {(run.scenario, run.strategy) for run in suite.runs()}  # raises where a digest does not fit
    assert places == {(entry.scenario, entry.strategy) for entry in suite.tuned.tuned}
