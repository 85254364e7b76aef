"""A user's LightningModule as a task: the loss of its `training_step`, and what its `test_step` logs."""

from collections.abc import Hashable, Iterable, Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor

from fl_core.lightning import pl, torchmetrics
from fl_core.problems.data.shares import Shares
from fl_core.problems.precision import forward, gradients
from fl_core.problems.problem import Evaluation
from fl_core.problems.training.task import Batch, Task
from fl_core.problems.training.trial import tried
from fl_core.problems.training.world import PASS, SupervisedWorld

PROBE = 4  # data points of the mini-batch that a module is tried on
Counted = tuple[Batch, int]  # a mini-batch, and the number of its data points


class OwnTask(Task):
    """A LightningModule with its own loss and logged metrics.

    Where the module stands in for the network of a problem, `judge`, the problem's task, scores its outputs.
    """

    network: pl.LightningModule

    def __init__(self, module: pl.LightningModule, judge: Task | None = None) -> None:
        super().__init__(module, lr=1e-3 if judge is None else judge.lr)
        self._judge = (judge,)  # in a tuple: it has the same network, which must not be registered twice
        self.scored: dict[str, list[Tensor]] = {}  # by the judge, a value for each data point
        self._logged: dict[str, Any] = {}
        self._points = 0  # of the mini-batch that is tested; 0 where logs are ignored
        module.log = self._note  # type: ignore[method-assign]

    @property
    def called(self) -> str:
        """The import path of the user's class."""
        return f"{type(self.network).__module__}:{type(self.network).__qualname__}"

    def loss(self, batch: Batch) -> Tensor:
        with forward(self.precision, batch[0].device):
            result: Any = self.network.training_step(batch, 0)
        return result["loss"] if isinstance(result, dict) else result

    def training_step(self, batch: Batch, index: int) -> Any:
        return self.network.training_step(batch, index)

    def configure_optimizers(self) -> Any:
        own = type(self.network).configure_optimizers is not pl.LightningModule.configure_optimizers
        return self.network.configure_optimizers() if own else super().configure_optimizers()

    def mean_loss(self, batches: Iterable[Counted]) -> float:
        """Return the mean loss of all data points; 0 without any."""
        losses = [(float(self.loss(batch)), points) for batch, points in batches]
        return _mean(losses) if losses else 0.0

    def tested(self, batches: Iterable[Counted]) -> dict[str, float]:
        """Return what `test_step` logs: torchmetrics as computed, numbers as means over data points."""
        self._logged, self.scored = {}, {}
        for child in self.modules():
            if isinstance(child, torchmetrics.Metric):
                child.reset()
        self.network.eval()
        for number, (batch, points) in enumerate(batches):
            self._points = points
            if type(self.network).test_step is not pl.LightningModule.test_step:
                self.network.test_step(batch, number)
            self._score(batch)
        self._points = 0
        self.network.train()
        scores = {name: float(torch.cat(values).double().mean()) for name, values in self.scored.items()}
        return scores | {name: self._of(entry) for name, entry in self._logged.items()}

    def _score(self, batch: Batch) -> None:
        (judge,) = self._judge
        if judge is not None:
            for name, values in judge.scores(self(batch[0]), batch[1]).items():
                self.scored.setdefault(name, []).append(values)

    def _note(self, name: str, value: Any, *_: Any, **__: Any) -> None:
        """Keep what the module logs; stands in for Lightning's `log`."""
        if not self._points:
            return
        if isinstance(value, torchmetrics.Metric):
            self._logged[name] = value
        else:
            self._logged.setdefault(name, []).append((float(value), self._points))

    @staticmethod
    def _of(entry: Any) -> float:
        if isinstance(entry, torchmetrics.Metric):
            return float(entry.compute())
        return _mean(entry)


def _mean(pairs: list[tuple[float, int]]) -> float:
    """Return the weighted mean of pairs of a value and its number of data points."""
    values, weights = zip(*pairs, strict=True)
    return float(np.average(values, weights=weights))


class OwnWorld(SupervisedWorld):
    """The world of a user's LightningModule, which is first tried on one mini-batch."""

    task: OwnTask

    def __init__(self, task: Task, shares: Shares, p: np.ndarray, seed: int, architecture: Hashable) -> None:
        super().__init__(task, shares, p, seed, architecture)
        sample = torch.from_numpy(self.held[:PROBE])
        test = self._tests(torch.arange(min(PROBE, len(self.data.x_test))))
        tried(self.at(self.first), self.batch(sample), len(sample), test)
        self._stacks = self._stacked_as_alone(sample)

    def at(self, model: Tensor) -> OwnTask:
        super().at(model)
        return self.task

    def gradients(self, models: Tensor, clients: Tensor, samples: Tensor) -> Tensor:
        """Return the gradients [J, d] of J jobs, by `vmap` if the module allows it, else one by one."""
        if self._stacks:
            return super().gradients(models, clients, samples)
        with gradients(self.task.precision, self.device):
            return torch.stack([self._own(*job) for job in zip(models, samples, strict=True)])

    def _own(self, model: Tensor, sample: Tensor) -> Tensor:
        if sample.flatten()[0] < 0:  # of a client without data
            return torch.zeros_like(model)
        loss = self.at(model).loss(self.batch(sample))
        return self.flat.join(torch.autograd.grad(loss, self._parameters, materialize_grads=True))

    def estimate(self, model: Tensor, points: int) -> Evaluation:
        """Evaluate exactly: a module's loss is of a mini-batch, which does not show how data points vary."""
        return self.evaluate(model)

    def _on_test(self, model: Tensor) -> Evaluation:
        task, data = self.at(model), self.data
        everything = torch.arange(len(data.x_test))
        with torch.inference_mode():
            metrics = self._tested(everything)
            scored = {name: torch.cat(values).double().cpu().numpy() for name, values in task.scored.items()}
            own = self._own_tests(metrics)
        of_clients = {name: self.shares.on_test(values) for name, values in scored.items()}
        return Evaluation(metrics, None, own | of_clients)

    def _on_training(self, model: Tensor) -> np.ndarray:
        task = self.at(model)
        with torch.inference_mode():
            return np.array([task.mean_loss(self._trains(client)) for client in range(self.n)])

    def _tested(self, rows: Tensor) -> dict[str, float]:
        metrics = self.task.tested(self._tests(rows))
        if "test/loss" not in metrics:
            metrics["test/loss"] = self.task.mean_loss(self._tests(rows))
        return metrics

    def _own_tests(self, whole: dict[str, float]) -> dict[str, np.ndarray]:
        """Return each client's metrics on its test data; the overall metrics for clients without."""
        owners = self.shares.test_owners
        if owners is None:
            return {}
        by_client = []
        for client in range(self.n):
            rows = torch.from_numpy(np.flatnonzero(owners == client))
            by_client.append({**whole, **(self._tested(rows) if len(rows) else {})})
        return {name: np.array([metrics[name] for metrics in by_client]) for name in whole}

    def _tests(self, rows: Tensor) -> Iterator[Counted]:
        for chunk in torch.split(rows.to(self.device), PASS) if len(rows) else ():
            test = self.normalise(self.data.x_test[chunk]), self.target(self.data.y_test[chunk])
            yield test, len(chunk)

    def _trains(self, client: int) -> Iterator[Counted]:
        held = torch.from_numpy(self.shares.of(client)).to(self.device)
        for chunk in torch.split(held, PASS) if len(held) else ():
            yield self.batch(chunk), len(chunk)

    def _stacked_as_alone(self, sample: Tensor) -> bool:
        alone = self._own(self.first, sample)
        try:
            both = self._vectorised(self.first.expand(2, -1), sample.expand(2, -1))
        except Exception:  # noqa: BLE001 - whatever `vmap` cannot do is done one after the other
            return False
        return bool(torch.allclose(both[1], alone, rtol=1e-3, atol=1e-5))
