"""Validation data: the test set is never touched, no client holds them, they are the same for every seed."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from fl_core.experiment import Experiment
from fl_core.problems.data.data import Data, held_out
from fl_core.problems.digits import Digits
from fl_core.problems.partitions import Natural
from fl_core.scenario import Budget, Scenario
from fl_core.strategies.asgd import ASGD


def rows(images: torch.Tensor) -> set[bytes]:
    return {row.tobytes() for row in images.flatten(1).numpy()}


def numbered(labels: list[int], owners: list[int] | None = None) -> Data:
    """Data of which every point is its own number, so that it is recognised wherever it goes."""
    x = torch.arange(len(labels), dtype=torch.int64)[:, None]
    owner = None if owners is None else torch.tensor(owners)
    test = torch.full((3, 1), -1)
    return Data(x, torch.tensor(labels), test, torch.zeros(3, dtype=torch.long), 10, owner_train=owner)


def test_on_real_data_nothing_overlaps_and_nothing_is_lost() -> None:
    problem = Digits(evaluate_on="validation")
    published, split = Digits().load(), problem.split()
    training, validation, test = rows(split.x_train), rows(split.x_test), rows(published.x_test)
    assert not training & validation and not validation & test and not training & test
    assert training | validation == rows(published.x_train)
    assert len(split.y_test) == pytest.approx(0.1 * len(published.y_train), abs=5)
    counts = [torch.bincount(one.y_test if at else one.y_train) for at, one in enumerate((published, split))]
    assert (counts[1] - 0.1 * counts[0]).abs().max() <= 0.5  # of each class a tenth


@pytest.mark.parametrize("seed", [0, 7])
def test_no_client_holds_validation_data_and_the_world_is_judged_on_them(seed: int) -> None:
    problem = Digits(clients=10, evaluate_on="validation")
    world = problem.world(seed)
    held = rows(world.data.x_train[torch.from_numpy(world.held)])
    assert not held & rows(world.data.x_test)
    assert sorted(world.held) == list(range(len(world.data.y_train)))
    assert world.data.x_test is problem.world(seed + 1).data.x_test  # the same whatever the seed
    model = torch.randn(world.d, generator=torch.Generator().manual_seed(seed))  # no two logits are equal
    with torch.no_grad():
        logits = world.at(model)(world.normalise(world.data.x_test))
    right = float((logits.argmax(1) == world.data.y_test).float().mean())
    assert world.evaluate(model).metrics["test/accuracy"] == pytest.approx(right)


@given(st.lists(st.integers(0, 4), min_size=1, max_size=200))
def test_a_tenth_of_each_class(labels: list[int]) -> None:
    data = numbered(labels)
    split = held_out(data)
    assert sorted([*split.x_train[:, 0].tolist(), *split.x_test[:, 0].tolist()]) == list(range(len(labels)))
    for label in range(5):
        assert int((split.y_test == label).sum()) == int(0.1 * labels.count(label) + 0.5)
    assert torch.equal(split.y_train, data.y_train[split.x_train[:, 0]])


@given(st.lists(st.integers(1, 60), min_size=1, max_size=5))
def test_of_owned_data_every_owner_gives_its_last_tenth(sizes: list[int]) -> None:
    owners = np.repeat(np.arange(len(sizes)), sizes).tolist()
    split = held_out(numbered([0] * sum(sizes), owners))
    assert split.owner_train is not None and split.owner_test is not None
    for owner, size in enumerate(sizes):
        kept = split.x_train[split.owner_train == owner, 0].tolist()
        chosen = split.x_test[split.owner_test == owner, 0].tolist()
        assert len(chosen) == int(0.1 * size + 0.5) and kept
        assert not chosen or max(kept) < min(chosen)  # what comes later in a text is held out
    parts = Natural().divide(split, len(sizes), 0)
    assert sorted(np.concatenate(parts).tolist()) == list(range(len(split.y_train)))


def test_runs_that_are_judged_on_the_test_set_keep_their_keys() -> None:
    def key(problem: Digits) -> str:
        scenario = Scenario(problem=problem, budget=Budget(updates=3))
        return Experiment(scenario=scenario, strategy=ASGD(), seed=0).key

    assert key(Digits(evaluate_on="test")) == key(Digits()) != key(Digits(evaluate_on="validation"))
