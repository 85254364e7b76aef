"""Mini-batches of any structure for a user's module, and clients named by a column."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset

from fl_core.execution.one_by_one import OneByOne
from fl_core.execution.stacked import AllInFlight
from fl_core.experiment import Experiment
from fl_core.lightning import pl
from fl_core.problems.problem import InvalidProblemError, Problem
from fl_core.recording.recorder import run

X = torch.randn(40, 3, generator=torch.Generator().manual_seed(0))
Y = X.sum(1)
LENGTHS = [1 + place % 4 for place in range(40)]


class Line(pl.LightningModule):
    """Squared error of a line; what its batches look like is up to `parts`."""

    def __init__(self) -> None:
        super().__init__()
        self.line = nn.Linear(3, 1)

    def parts(self, batch: Any) -> tuple[Tensor, Tensor]:
        x, y = batch
        return x, y

    def training_step(self, batch: Any, index: int) -> Tensor:
        x, y = self.parts(batch)
        return (self.line(x).squeeze(1) - y).square().mean()

    def test_step(self, batch: Any, index: int) -> None:
        self.log("test/mae", (self.line(self.parts(batch)[0]).squeeze(1) - self.parts(batch)[1]).abs().mean())


class Nested(Line):
    def parts(self, batch: Any) -> tuple[Tensor, Tensor]:
        (first, others), y = batch
        return torch.cat([first[:, None], others["rest"]], 1), y


class Named(Line):
    def parts(self, batch: Any) -> tuple[Tensor, Tensor]:
        assert set(batch) == {"x", "mask", "label"}
        assert batch["mask"].dtype is torch.bool
        return batch["x"] * batch["mask"], batch["label"].to(batch["x"].dtype)


class Padded(Line):
    """The mean of a sequence of vectors, of which there are 1 to 4."""

    def parts(self, batch: Any) -> tuple[Tensor, Tensor]:
        assert batch["names"][0].startswith("item")
        return batch["x"].sum(1) / batch["lengths"][:, None], batch["y"]


class Items(Dataset[Any]):
    def __init__(self, items: list[Any]) -> None:
        self.items = items

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, place: int) -> Any:
        return self.items[place]


class Endless(IterableDataset[Any]):
    def __iter__(self) -> Iterator[Any]:
        yield X[0], Y[0]


class Unsized(Dataset[Any]):
    def __getitem__(self, place: int) -> Any:
        return X[0], Y[0]


def pairs() -> Any:
    return X, Y


def nested() -> Any:
    return (X[:, 0], {"rest": X[:, 1:].numpy()}), Y


def nested_items() -> Any:
    return Items([((float(x[0]), {"rest": x[1:]}), y) for x, y in zip(X, Y, strict=True)])


def of(client: int) -> Any:
    return {
        "x": X,
        "mask": torch.ones(40, 3).bool(),
        "label": torch.arange(40) % 4,
        "client": client + Y.long(),
    }


def by_column() -> Any:
    """Ten data points of each of four clients, who have names."""
    return Items(
        [
            {"x": x, "mask": torch.ones(3).bool(), "label": place % 5, "client": f"town {place % 4}"}
            for place, x in enumerate(X)
        ]
    )


def halves_by_column() -> Any:
    halves = torch.arange(40) % 4, torch.arange(20) % 4
    return tuple(
        {"x": X[: len(who)], "mask": np.ones((len(who), 3), bool), "label": who, "client": 10 * who}
        for who in halves
    )


def by_list() -> Any:
    return [Items(nested_items().items[10 * client : 10 * client + 10]) for client in range(4)]


def by_name() -> Any:
    """Columns, and a list of names."""
    return {"x": X, "mask": torch.ones(40, 3), "label": Y, "client": [f"town {at % 4}" for at in range(40)]}


def by_list_and_test_data() -> Any:
    return by_list(), Items(nested_items().items[:6])


def ragged() -> Any:
    return Items([(f"item {n}", X[n : 2 * n], float(n)) for n in LENGTHS])


def pad(items: list[Any]) -> Any:
    names, sequences, targets = zip(*items, strict=True)
    return {
        "names": names,
        "x": pad_sequence(list(sequences), batch_first=True),
        "lengths": torch.tensor([len(sequence) for sequence in sequences]),
        "y": torch.tensor(targets),
    }


def fails(items: list[Any]) -> Any:
    raise KeyError("attention_mask")


FAULTY: dict[str, Any] = {
    "endless": Endless(),
    "loader": DataLoader(TensorDataset(X, Y)),
    "unsized": Unsized(),
    "empty": Items([]),
    "texts": Items([("a", 1.0), ("b", 2.0)]),
    "shapes": Items([(X[:1], 1.0), (X[:2], 2.0)]),
    "structures": Items([(X[0], 1.0), {"x": X[0]}]),
    "lengths": {"x": X, "y": Y[:30]},
    "nameless": {"x": X, "y": Y, "client": "a town"},
    "labels": (X, np.array(["cat", "dog"] * 20)),
    "some": {"x": X, "y": Y, "client": np.array([None, "a town"] * 20)},
    "unhashable": Items([{"x": 1.0, "client": [0]}, {"x": 2.0, "client": [1]}]),
    "nobody": [(X, Y)] * 3 + [(X[:0], Y[:0])],
    "clients": {"x": X, "y": Y, "client": torch.arange(40) % 3},
    "stranger": tuple({"x": X, "client": torch.arange(40) % clients} for clients in (4, 5)),
}


def __getattr__(name: str) -> Any:
    """The faulty data as functions."""
    if name not in FAULTY:
        raise AttributeError(name)
    return lambda: FAULTY[name]


def problem(module: str = "Line", data: str = "pairs", **fields: Any) -> Problem:
    paths = {"module": f"{__name__}:{module}", "data": f"{__name__}:{data}"}
    if "collate_fn" in fields:
        fields["collate_fn"] = f"{__name__}:{fields['collate_fn']}"
    return Problem.model_validate({"name": "own", "clients": 4, "dtype": "float64"} | paths | fields)


@pytest.mark.parametrize("data", ["nested", "nested_items"])
def test_a_nested_batch_holds_the_same_numbers_as_a_pair(data: str) -> None:
    """Gradients one by one and stacked, losses and metrics are those of the pair, bit for bit."""
    plain: Any = problem().world(0)
    w: Any = problem("Nested", data).world(0)
    model = plain.initial() + 0.3
    samples = torch.stack([plain.samples(client, 0, 1, 8)[0] for client in range(4)])
    for client, sample in enumerate(samples):
        assert torch.equal(w.samples(client, 0, 1, 8)[0], sample)
        torch.testing.assert_close(w.gradient(model, client, sample), plain.gradient(model, client, sample))
    assert w._stacks
    stacked = w.gradients(model.expand(4, -1), torch.arange(4), samples)
    torch.testing.assert_close(stacked, plain.gradients(model.expand(4, -1), torch.arange(4), samples))
    found, expected = w.evaluate(model), plain.evaluate(model)
    assert found.metrics == pytest.approx(expected.metrics)
    np.testing.assert_allclose(found.client_loss, expected.client_loss)


def test_items_of_other_lengths_are_collated() -> None:
    """The loss of a client by hand, from the items themselves; the same run in both executions."""
    described = problem("Padded", "ragged", collate_fn="pad")
    w: Any = described.world(0)
    model = w.initial()
    items = w.data.items.values
    for client, loss in enumerate(w.losses(model)):
        own = [items[w.data.x_train[place]] for place in w.shares.of(client)]
        errors = [float(x.double().mean(0) @ model[:3] + model[3] - y) for _, x, y in own]
        assert loss == pytest.approx(np.square(errors).mean())
    strategy = {"name": "fedbuff", "buffer": 2, "local_lr": 0.1, "local": {"name": "sgd", "batch": 4}}
    scenario = {"problem": described, "budget": {"updates": 8}}
    experiment = Experiment.model_validate({"scenario": scenario, "strategy": strategy})
    curves = [run(experiment, execution=execution()).curve for execution in (OneByOne, AllInFlight)]
    assert curves[0] == curves[1]
    assert curves[0][-1]["test/mae"] < curves[0][0]["test/mae"]


def test_a_column_says_whose_the_data_are() -> None:
    """A fifth of each client's ten for testing; labels are those of the dicts."""
    w: Any = problem("Named", "by_column").world(0)
    assert w.sizes.tolist() == [8] * 4
    for client in range(4):
        x = w.batch(torch.from_numpy(w.shares.of(client)))["x"]
        assert all((X[client::4].double() == row).all(1).any() for row in x)
    assert w.data.classes == 5
    given: Any = problem("Named", "halves_by_column").world(0)
    assert given.sizes.tolist() == [10] * 4
    assert np.bincount(given.shares.test_owners).tolist() == [5] * 4
    assert set(given.evaluate(given.initial()).client_metrics) == {"test/mae", "test/loss"}


def test_a_list_has_a_data_set_of_items_for_each_client() -> None:
    w: Any = problem("Nested", "by_list").world(0)
    assert w.sizes.tolist() == [8] * 4
    for client in range(4):
        x, _ = Nested().parts(w.batch(torch.from_numpy(w.shares.of(client))))
        assert all((X[10 * client : 10 * client + 10].double() == row).all(1).any() for row in x)


def test_names_of_clients_may_be_a_list() -> None:
    data = problem(data="by_name").load()  # type: ignore[attr-defined]
    for client in range(4):
        rows = data.items.values["x"][data.x_train[data.owner_train == client]]
        assert len(rows) == 8
        assert all((X[client::4] == row).all(1).any() for row in rows)


def test_a_list_may_come_with_test_data_for_all() -> None:
    """Then nothing is held out."""
    w: Any = problem("Nested", "by_list_and_test_data").world(0)
    assert w.sizes.tolist() == [10] * 4
    assert len(w.data.x_test) == 6
    assert w.shares.test_owners is None


def test_items_are_split_by_label_and_held_out_for_tuning() -> None:
    partition = {"name": "classes_per_client", "classes": 1}
    w: Any = problem("Named", "by_column", clients=5, partition=partition).world(0)
    assert (np.count_nonzero(w.labels, axis=1) == 1).all()
    held: Any = problem("Named", "by_column", evaluate_on="validation").world(0)
    assert len(held.data.x_train) + len(held.data.x_test) == 32
    assert len(held.data.x_test) == 4
    assert not set(held.data.x_test.tolist()) & set(held.data.x_train.tolist())


@pytest.mark.parametrize("data", [*FAULTY, "ragged"])
def test_data_that_cannot_be_used_are_told_in_a_line(data: str) -> None:
    fields = {"collate_fn": "fails"} if data == "ragged" else {}
    with pytest.raises(InvalidProblemError) as told:
        problem(data=data, **fields).check(0)
    assert "\n" not in str(told.value)


def test_tensors_with_gradients_are_data_like_others(monkeypatch: pytest.MonkeyPatch) -> None:
    with_gradients = {"gradients": (X.clone().requires_grad_(), Y), "plain": (X, Y)}
    monkeypatch.setattr(sys.modules[__name__], "FAULTY", with_gradients)
    plain, found = (problem(data=name).world(0) for name in ("plain", "gradients"))
    assert found.fingerprint == plain.fingerprint and not found.data.x_train.requires_grad
