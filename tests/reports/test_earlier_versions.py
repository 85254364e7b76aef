"""Stores that an earlier version recorded are read, and said to be older; they never mix with new runs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner
from synthetic import START, Fake, curve, records, write_store

from asyncfl.commands.group import asyncfl
from benchmarks.errors import UserError
from benchmarks.suite.suite import load as load_suite
from fl_core.schema import Status
from reports.records.store import load
from reports.sections.about.overview import remarks

OLD = [
    Fake(strategy=strategy, seed=seed, curve=curve([0.1, 0.5, 0.8 + seed / 100], [0, 10, 20]), outdated=True)
    for strategy in ("FedBuff", "ACE")
    for seed in range(3)
]
NEW = [
    replace(one, outdated=False, started=START + 60_000, curve=curve([0.1, 0.5, 0.95], [0, 10, 20]))
    for one in OLD[:2]
]
ALL_OLD = "Recorded by an earlier version of asyncfl: asyncfl run computes all of it anew."
LEFT_OUT = "Left out: 6 runs of an earlier version of asyncfl."


def invoke(*arguments: str) -> str:
    """What a command prints."""
    done = CliRunner().invoke(asyncfl, arguments)
    if done.exception:
        raise done.exception
    return done.output


def write(folder: Path, fakes: list[Fake]) -> str:
    """The address of a store with these runs as suite 'two'."""
    uri = f"sqlite:///{folder}/mlflow.db"
    write_store(uri, (folder / "two").as_uri(), "two", fakes)
    return uri


def test_an_older_store_is_read_and_said_to_be_older(tmp_path: Path) -> None:
    """By the page, the table and the comparison, each in one line."""
    uri = write(tmp_path, OLD)
    suite = load(uri, "two")
    assert len(suite.runs) == 6 and not suite.older
    assert remarks(suite) == [ALL_OLD]
    where = ("--store", str(tmp_path), "--tracking-uri", uri)
    table = invoke("report", "two", *where)
    assert table.count(ALL_OLD) == 1 and "FedBuff" in table
    assert ALL_OLD in (tmp_path / "reports" / "two.html").read_text(encoding="utf-8")
    compared = invoke("compare", "fedbuff", "ACE", "--suite", "two", *where)
    assert compared.startswith(f"{ALL_OLD}\n") and "seeds" in compared


@pytest.mark.parametrize("last", [NEW, OLD], ids=["renewed later", "whatever was begun last"])
def test_a_store_that_is_being_renewed_shows_new_runs_only(last: list[Fake]) -> None:
    """Also where a strategy has none yet: ACE, all of whose runs are of an earlier version."""
    others = OLD if last is NEW else NEW
    suite = records(*others, *(replace(one, started=START + 90_000) for one in last))
    assert [(run.strategy, run.seed) for run in suite.runs] == [("FedBuff", 0), ("FedBuff", 1)]
    assert [run.final("test/accuracy") for run in suite.runs] == [0.95, 0.95]
    assert remarks(suite) == [LEFT_OUT]
    assert len(suite.older) == 6


def test_a_new_store_says_nothing() -> None:
    suite = records(*NEW)
    assert suite.outdated == "" and remarks(suite) == []


def test_baselines_of_an_earlier_version_do_not_mix_either(tmp_path: Path) -> None:
    from mlflow import MlflowClient

    uri = write(tmp_path, OLD)
    client = MlflowClient(uri)
    experiment = client.get_experiment_by_name("two")
    assert experiment is not None

    def pooled(key: str, accuracy: float) -> None:
        tags = {"kind": "pooled", "problem": "digits", "seed": "0", "key": key}
        tags = {f"asyncfl.{name}": value for name, value in tags.items()}
        run = client.create_run(experiment.experiment_id, START, tags)
        client.log_metric(run.info.run_id, "test/accuracy", accuracy)

    pooled("c08ccf42bd4620ea", 0.9)
    assert [one.metrics["test/accuracy"] for one in load(uri, "two").pooled] == [0.9]
    pooled("2-c08ccf42bd4620ea", 0.8)
    assert [one.metrics["test/accuracy"] for one in load(uri, "two").pooled] == [0.8]


def test_a_baseline_of_an_earlier_version_is_refused_as_such(tmp_path: Path) -> None:
    from reports.gate.baseline import Baseline, BaselineRun, must_fit

    outcome = BaselineRun(
        scenario="quadratic",
        strategy="ASGD",
        seed=0,
        key="c08ccf42bd4620ea",
        status=Status.DONE,
        final=0.5,
        updates_to_target=3,
        schedule="",
        evaluations=1,
        loss=((0, 1.0), (9, 0.5)),
    )
    baseline = Baseline(suite="ci", commit="", versions={}, goals={}, runs=(outcome,))
    with pytest.raises(UserError, match=r"ci\.json: was written by an earlier version of asyncfl: "):
        must_fit(baseline, load_suite("ci").runs()[:1], tmp_path / "ci.json")
