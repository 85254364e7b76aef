"""Tuned values: written by a campaign, used for the scenario that they were made for; the shipped ones."""

from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from small import Make, Write

from benchmarks.errors import UserError
from benchmarks.mlflow_store.run_result import RunResult, TrialResult
from benchmarks.suite import tuned
from benchmarks.suite.suite import load
from fl_core.recorded_names import Origin, TrialMetric
from tuning import results
from tuning.results import StudyResult
from tuning.study import Campaign


def trial(number: int, value: float, origin: Origin = Origin.SAMPLER, **values: object) -> TrialResult:
    """A trial of one seed with that objective."""
    metrics: dict[str, float] = {TrialMetric.OBJECTIVE: value}
    run = RunResult("", "", "FINISHED", 1, 2, "", {"asyncfl.status": "done"}, metrics=metrics)
    return TrialResult(number, origin, values, {1001: run}, seeds=(1001,))


def ended(campaign: Campaign) -> list[StudyResult]:
    """Studies of which the last of the first trials is best."""
    return [
        StudyResult(
            study,
            [trial(at, 1 / (1 + at), origin, **values) for at, (origin, values) in enumerate(study.first)],
        )
        for study in campaign.studies
    ]


def test_tuned_values_are_used_for_the_scenario_they_were_made_for(write: Write, make: Make) -> None:
    strategies = ["fedavg", "asgd"]
    campaign = make(strategies=strategies)
    studies = ended(campaign)
    path = write(strategies=strategies)
    where = load(str(path)).tuned_values
    assert where == path.with_name("tuned-small.yaml")
    with pytest.raises(UserError, match=str(where)):
        load(str(path), tuned=True)

    tuned.write(where, results.to_tuned_file(campaign, studies))
    suite = load(str(path), tuned=True)
    assert suite.name == "small-tuned"
    for study in studies:
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

    for changed, named in (
        ({"budget": {"updates": 21}}, "21 client updates"),
        ({"evaluations": 3, "problem": {"name": "quadratic", "noise": 0.7}}, "another scenario"),
        ({"strategies": ["fedbuff"]}, "FedBuff"),
        ({"seeds": [0, 1001]}, "1001"),
    ):
        with pytest.raises(UserError, match=named):
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
    write: Write, make: Make, strategies: list[object], space: dict[str, list[object]]
) -> None:
    campaign = make(strategies=strategies, tuning={"sampler": "grid", "seeds": 1, "space": space})
    found = results.to_tuned_file(campaign, ended(campaign))
    tuned.write(campaign.suite.tuned_values, found)
    pasted = yaml.safe_load("\n".join(results.pasteable(campaign, found)))
    assert pasted.keys() == ({"lr"} if len({*space}) == 1 else {"strategies"})
    expected = load(str(write(strategies=strategies)), tuned=True).runs()
    same = load(str(write(**{"strategies": strategies, **pasted}))).runs()
    assert [run.key for run in same] == [run.key for run in expected]
    given = {entry["label"] for entry in strategies if isinstance(entry, dict) and "label" in entry}
    assert given <= {run.strategy for run in same}


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
    with pytest.raises(UserError, match="objective: "):
        load(str(path), tuned=True)


def test_a_suite_with_tuned_rates_names_itself_and_the_missing_file(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text(
        "{name: a, seeds: 1, problem: quadratic, budget: {updates: 1}, strategies: [asgd], lr: tuned}"
    )
    with pytest.raises(UserError, match=f"{path}: lr: tuned: {path.with_name('tuned-a.yaml')}"):
        load(str(path))


@pytest.mark.parametrize("name", sorted(path.stem for path in tuned.FOLDER.glob("*.yaml")))
def test_shipped_values_fit_their_suites(name: str) -> None:
    of, _, scale = name.partition("-")
    suite = load(of, scale=scale or None, tuned=True)  # raises where seeds are those of the campaign
    assert suite.tuned is not None
    one_seed = load(of, ["seeds=1"], scale or None, tuned=False)
    runs = replace(one_seed, tuned=suite.tuned).runs()  # raises where a digest does not fit
    assert {(run.scenario, run.strategy) for run in runs} == {
        (entry.scenario, entry.strategy) for entry in suite.tuned.tuned
    }


def test_what_was_tuned_from_may_be_the_optimum(make: Make) -> None:
    """The value before tuning is 0 then, not unknown."""
    campaign = make()
    (study,) = campaign.studies
    origin, values = study.first[0]
    (entry,) = results.to_tuned_file(campaign, [StudyResult(study, [trial(0, 0.0, origin, **values)])]).tuned
    assert (entry.before, entry.value) == (0, 0)


def test_the_width_of_good_rates_by_hand(make: Make) -> None:
    """Objectives of at most 2 % above the best for rates of 0.01 to 0.49."""
    campaign = make(tuning={"sampler": "grid", "space": {"local_lr": [0.005, 0.01, 0.49, 0.5]}})
    (study,) = campaign.studies
    trials = [
        trial(at, value, Origin.GRID, local_lr=rate)
        for at, (rate, value) in enumerate({0.005: 1.1, 0.01: 1.0, 0.49: 1.01, 0.5: 1.03}.items())
    ]
    (entry,) = results.to_tuned_file(campaign, [StudyResult(study, trials)]).tuned
    assert entry.value == 1 and entry.width == pytest.approx(49)
