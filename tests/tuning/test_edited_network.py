"""A campaign on the user's own network, which is edited: rates and trials of the old one do not count."""

import json
from pathlib import Path

import numpy as np
import pytest
import yaml
from mlflow import MlflowClient
from shell import asyncfl

from benchmarks.mlflow_store.store import Store

NETWORK = """
import torch
from pytorch_lightning import LightningModule
from torch import nn
from torchmetrics import MeanAbsoluteError

from asyncfl import Metric


class Net(LightningModule):
    metrics = (Metric("test/mae", "Mean absolute error", higher=False),)

    def __init__(self):
        super().__init__()
        self.line, self.mae = nn.Linear(5, 1), MeanAbsoluteError()

    def predict(self, x):
        return self.line(x).squeeze(1) * {scale}

    def training_step(self, batch, index):
        return nn.functional.huber_loss(self.predict(batch[0]), batch[1])

    def test_step(self, batch, index):
        self.mae(self.predict(batch[0]), batch[1])
        self.log("test/mae", self.mae)

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), 0.05)


def data():
    x = torch.randn(4, 30, 5, generator=torch.Generator().manual_seed(0))
    return [(one, one.sum(1)) for one in x]
"""
SUITE = {
    "name": "edited",
    "problem": {"name": "own", "module": "mine:Net", "data": "mine:data", "clients": 4, "metric": "test/mae"},
    "budget": {"updates": 12},
    "evaluations": 3,
    "seeds": 1,
    "strategies": ["asgd"],
    "tuning": {"sampler": "grid", "seeds": 1, "space": {"local_lr": [0.01, 0.1]}},
}


@pytest.mark.slow
def test_an_edited_network_is_tuned_anew(tmp_path: Path, store: Store) -> None:
    """From another folder than the suite's, beside which the module lies."""
    folder, elsewhere = tmp_path / "suites", tmp_path / "elsewhere"
    folder.mkdir()
    elsewhere.mkdir()
    (folder / "edited.yaml").write_text(yaml.safe_dump(SUITE))
    (folder / "mine.py").write_text(NETWORK.replace("{scale}", "1"))
    words = (str(folder / "edited.yaml"), "--store", str(store.folder), "--quiet")

    def done(*arguments: str) -> str:
        ended = asyncfl(elsewhere, *arguments)
        assert ended.returncode == 0, ended.stderr
        return ended.stderr

    assert done("tune", *words) == ""
    first = (folder / "tuned-edited.yaml").read_text()
    assert done("run", *words, "--tuned", "--no-report") == ""

    (folder / "mine.py").write_text(NETWORK.replace("{scale}", "10"))
    edited = done("run", *words, "--tuned", "--no-report")
    assert "tuned-edited.yaml: tuned before mine:Net, mine:data was edited" in edited
    assert "code changed, so tuning starts anew; 2 earlier trials no longer count" in done("tune", *words)
    assert (folder / "tuned-edited.yaml").read_text() != first

    client = MlflowClient(store.tracking_uri)
    experiment = client.get_experiment_by_name("edited.tuning")
    assert experiment is not None
    for kind, count in (("study", 1), ("trial", 2)):
        where = f"tags.`asyncfl.kind` = '{kind}'"
        found = client.search_runs([experiment.experiment_id], where)
        current = client.search_runs(
            [experiment.experiment_id], f"{where} AND tags.`asyncfl.superseded` IS NULL"
        )
        assert (len(found), len(current)) == (2 * count, count)
    assert "tuned before" not in done("run", *words, "--tuned", "--no-report")


@pytest.mark.slow
def test_edited_data_count_for_runs_and_trials(tmp_path: Path, store: Store) -> None:
    """The code stays; another seed does not join runs of the old data, nor trials the old study."""
    (tmp_path / "edited.yaml").write_text(yaml.safe_dump(SUITE))
    values = "torch.frombuffer(bytearray(open('numbers', 'rb').read()), dtype=torch.float32)"
    read = f"{values}.reshape(4, 30, 5)"
    drawn = "torch.randn(4, 30, 5, generator=torch.Generator().manual_seed(0))"
    (tmp_path / "mine.py").write_text(NETWORK.replace("{scale}", "1").replace(drawn, read))
    words = ("edited.yaml", "--store", str(store.folder), "--quiet")

    def done(seed: int, *arguments: str) -> str:
        numbers = np.random.default_rng(seed).normal(size=(4, 30, 5)).astype(np.float32)
        (tmp_path / "numbers").write_bytes(numbers.tobytes())
        ended = asyncfl(tmp_path, *arguments)
        assert ended.returncode == 0, ended.stderr
        return ended.stderr

    assert done(1, "run", *words, "--no-report", "--no-baselines") == ""
    assert done(1, "tune", *words) == ""
    changed = "your code or data changed after 1 run were recorded, which will be computed again"
    assert changed in done(2, "run", *words, "--no-report", "--no-baselines", "--set", "seeds=2")
    assert "data changed, so tuning starts anew; 2 earlier trials no longer count" in done(2, "tune", *words)

    client = MlflowClient(store.tracking_uri)
    for name, kind, count in (("edited", "run", 2), ("edited.tuning", "trial", 2)):
        experiment = client.get_experiment_by_name(name)
        assert experiment is not None
        current = f"tags.`asyncfl.kind` = '{kind}' AND tags.`asyncfl.superseded` IS NULL"
        found = client.search_runs([experiment.experiment_id], current)
        assert len(found) == count
        assert len({json.loads(run.data.tags["asyncfl.data"])["data"] for run in found}) == 1
