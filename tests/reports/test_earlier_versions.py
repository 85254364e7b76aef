"""Stores that an earlier version made are refused, in one line and by name."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner
from mlflow import MlflowClient
from synthetic import START, Fake, curve, write_store

from benchmarks.commands.group import asyncfl
from benchmarks.errors import UserError
from reports.records.suite_reader import load

EARLIER = "c08ccf42bd4620ea"


@pytest.fixture
def uri(tmp_path: Path) -> str:
    """The address of a store with two runs of the suite 'two'."""
    uri = f"sqlite:///{tmp_path}/mlflow.db"
    fakes = [Fake(seed=seed, curve=curve([0.1, 0.5, 0.8], [0, 10, 20])) for seed in range(2)]
    write_store(uri, (tmp_path / "two").as_uri(), "two", fakes)
    return uri


def experiment_of(client: MlflowClient) -> str:
    experiment = client.get_experiment_by_name("two")
    assert experiment is not None
    return str(experiment.experiment_id)


@pytest.mark.parametrize(
    ("key", "command"),
    [(EARLIER, ["report", "two"]), (f"1-{EARLIER}", ["compare", "fedbuff", "ACE", "--suite", "two"])],
)
def test_a_store_with_a_run_of_an_earlier_version_is_refused(
    uri: str, tmp_path: Path, key: str, command: list[str]
) -> None:
    client = MlflowClient(uri)
    run, *_ = client.search_runs([experiment_of(client)], "tags.`asyncfl.seed` = '1'")
    client.set_tag(run.info.run_id, "asyncfl.key", key)
    done = CliRunner().invoke(asyncfl, [*command, "--store", str(tmp_path), "--tracking-uri", uri])
    assert isinstance(done.exception, UserError)
    (line,) = done.exception.lines
    assert line.startswith(f"{uri}: made by an earlier version") and "--store" in line
    assert not (tmp_path / "reports").exists()


def test_a_baseline_of_an_earlier_version_is_refused_too(uri: str) -> None:
    client = MlflowClient(uri)
    tags = {"kind": "pooled", "problem": "digits", "seed": "0", "key": EARLIER}
    tags = {f"asyncfl.{name}": value for name, value in tags.items()}
    client.create_run(experiment_of(client), START, tags)
    with pytest.raises(UserError, match="made by an earlier version"):
        load(uri, "two")
