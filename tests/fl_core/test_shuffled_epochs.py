"""Local work on shuffled epochs: each data point once before any is used twice."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from fl_core.execution.stacked import AllInFlight
from fl_core.experiment import Experiment
from fl_core.local_work import SGD
from fl_core.problems.data.data import Data
from fl_core.problems.problem import Problem, World
from fl_core.recording.recorder import run
from fl_core.server.jobs import Job
from fl_core.streams import stream

DIGITS = {
    "name": "digits",
    "clients": 12,
    "partition": {"name": "class_dirichlet", "alpha": 0.3},
    "dtype": "float64",
}
WORLD: World = Problem.model_validate(DIGITS).world(0)


def held(client: int) -> np.ndarray:
    """A client's data points."""
    start = int(WORLD.sizes[:client].sum())
    return WORLD.held[start : start + WORLD.sizes[client]]  # type: ignore[attr-defined]


@given(st.integers(0, 11), st.integers(0, 10**6), st.integers(1, 40), st.sampled_from([1, 7, 64, 500]))
def test_every_epoch_holds_each_data_point_once(client: int, job: int, steps: int, batch: int) -> None:
    """Cut at multiples of n_i, the sequence is permutations of the client's data, the last one begun."""
    drawn, own = WORLD.shuffled(client, job, steps, batch), held(client)
    assert drawn.shape == (steps, batch) and drawn.dtype == torch.int64
    sequence = drawn.flatten().numpy()
    for first in range(0, len(sequence), len(own)):
        epoch = sequence[first : first + len(own)]
        expected = stream(0, "batches", client, job, first // len(own)).permutation(own)
        assert epoch.tolist() == expected[: len(epoch)].tolist()
        assert len(set(epoch.tolist())) == len(epoch)


def test_jobs_are_shuffled_afresh_and_the_beginning_does_not_depend_on_the_end() -> None:
    short, long = (WORLD.shuffled(3, 5, steps, 8) for steps in (2, 30))
    assert torch.equal(short, long[:2])
    assert not torch.equal(short, WORLD.shuffled(3, 6, 2, 8))
    epochs = WORLD.shuffled(3, 5, 2, int(WORLD.sizes[3]))
    assert not torch.equal(epochs[0], epochs[1])
    assert torch.equal(epochs[0].sort().values, epochs[1].sort().values)


def test_only_by_epochs_is_each_data_point_drawn_once() -> None:
    """As many draws as the client has data points: all of them, or, with replacement, hardly ever."""
    size, model = int(WORLD.sizes[3]), WORLD.initial()
    job = Job(3, 0, 0, model, {}, size, 0.1, 0)
    drawn = {how: SGD(sampling=how, batch=1).samples(WORLD, job) for how in ("epochs", "replacement")}
    assert sorted(drawn["epochs"].flatten().tolist()) == sorted(held(3).tolist())
    assert size > 20 and len(set(drawn["replacement"].flatten().tolist())) < size


def test_a_batch_of_all_data_is_the_full_gradient() -> None:
    """B = 2 n_i: two epochs a step, each data point twice; with replacement that is never so."""
    model = WORLD.initial() + 0.01
    [sample] = WORLD.shuffled(2, 0, 1, 2 * int(WORLD.sizes[2]))
    torch.testing.assert_close(WORLD.gradient(model, 2, sample), WORLD.full_gradient(model, 2))


def test_clients_without_data_draw_nothing() -> None:
    few = {**DIGITS, "clients": 40, "partition": {"name": "class_dirichlet", "alpha": 0.01, "min_size": 0}}
    world = Problem.model_validate(few).world(0)
    empty = int(np.argmin(world.sizes))
    assert world.sizes[empty] == 0
    assert WORLD.shuffled(0, 0, 1, 4).min() >= 0
    assert (world.shuffled(empty, 0, 3, 4) == -1).all()


def test_keys_travel_with_shuffled_data() -> None:
    class Small(type(Problem.model_validate("cifar10"))):  # type: ignore[misc]
        """Colour noise in the shape of CIFAR-10."""

        samples = 30

        def load(self) -> Data:
            x = torch.from_numpy(np.random.default_rng(0).integers(0, 256, (30, 3, 32, 32), np.uint8))
            y = torch.arange(30) % 10
            return Data(x, y, x, y, 10, (120.0,) * 3, (60.0,) * 3)

    world = Small(clients=3, augment=True, partition="iid").world(0)
    samples = world.shuffled(1, 4, 3, 5)
    assert samples.shape == (3, 5, 2)
    assert samples[:2, :, 0].unique().numel() == 10  # one epoch of ten data points
    assert samples[..., 1].unique().numel() == 15
    assert torch.equal(samples[..., 1], world.samples(1, 4, 3, 5)[..., 1])


@pytest.mark.parametrize("name", ["adamw", "scaffold"])
def test_runs_stacked_and_one_by_one(name: str) -> None:
    """Jobs of unequal clients still share a stack; curves agree to 1e-9 in float64."""
    where = {"problem": DIGITS, "budget": {"updates": 60}, "evaluations": 3}
    local, rate = {"name": name, "steps": 4, "batch": 16}, 0.001 if name == "adamw" else 0.01
    curves = {}
    for sampling in ("replacement", "epochs"):
        described = Experiment.model_validate(
            {
                "scenario": where,
                "strategy": {"name": "asgd", "local_lr": rate, "local": {**local, "sampling": sampling}},
            }
        )
        plain, stacked = run(described, WORLD), run(described, WORLD, AllInFlight())
        for one, other in zip(plain.curve, stacked.curve, strict=True):
            assert one == pytest.approx(other, rel=1e-9)
        assert plain.curve[-1]["test/loss"] < plain.curve[0]["test/loss"]
        curves[sampling] = plain.curve[-1]["fp/loss"]
    assert curves["replacement"] != curves["epochs"]
