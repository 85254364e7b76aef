"""The world of a user's LightningModule: gradients of the module's loss, and logged metrics.

`Supervised.kind_of_world` chooses it for a `UserTask`. Jobs are stacked if `vmap` can run the module.

Fixed: names of metrics, and gradients of jobs one by one, bit for bit; stacked jobs may differ by rounding.
"""

from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor
from torch.utils._pytree import tree_map, tree_map_only

from fl_core.problems.data.client_data import Shares
from fl_core.problems.problem import Evaluation, Report
from fl_core.problems.training.keyed_world import KeyedWorld
from fl_core.problems.training.module_trial import tried
from fl_core.problems.training.tasks import Batch
from fl_core.problems.training.user_task import Counted, UserTask
from fl_core.problems.training.world import PASS

PROBE = 4  # data points of the mini-batch for the trial of a module


class UserWorld(KeyedWorld):
    """The world of a user's LightningModule, first tried on a mini-batch."""

    task: UserTask

    def __init__(self, task: UserTask, shares: Shares, p: np.ndarray, seed: int) -> None:
        super().__init__(task, shares, p, seed)
        sample = torch.from_numpy(self.held[:PROBE])
        test = self._tests(torch.arange(min(PROBE, len(self.data.x_test))))
        self.remarks = tried(
            self.at(self.first), lambda times: self.batch(sample.repeat(times)), len(sample), test
        )
        if task.seeds_itself:
            self.remarks.append(
                "sets the seed of torch's generator where it is made: all seeds begin at one model, so that "
                "their spread lacks that of first models"
            )
        self.keyed, self.drops = task.keyed, False  # masks follow from one key, which no mini-batch holds
        tensors_only = self.data.items is None or self.data.items.collate is None
        self._stacks = tensors_only and self._stacked_as_alone(self._with_keys(sample, 0, 0))

    def at(self, model: Tensor) -> UserTask:
        super().at(model)
        return self.task

    def batch(self, indices: Tensor) -> Batch:
        """Return training data [B, ...] in the structure of the user's items, in the model's precision."""
        if self.data.items is None:
            return super().batch(indices)
        return self._of_items(self.data.x_train[indices if indices.ndim == 1 else indices[:, 0]])

    def _of_items(self, places: Tensor) -> Batch:
        """Return items as a mini-batch on the world's device."""
        assert self.data.items is not None
        return tree_map_only(Tensor, self._number, self.data.items[places])

    def _number(self, part: Tensor) -> Tensor:
        as_is = not part.is_floating_point() and part.dtype is not torch.uint8
        return part.to(self.device, part.dtype if as_is else self.first.dtype)

    def gradient_and_report(self, model: Tensor, client: int, sample: Tensor) -> tuple[Tensor, Report]:
        """Return the gradient [d] of a mini-batch's loss, [B] or [B, 2] with keys, and the report."""
        gradient, report = self._alone(model, sample.clamp(min=0))  # −1 for a client without data
        if not self.sizes[client]:
            return torch.zeros_like(model), {name: torch.zeros_like(value) for name, value in report.items()}
        return gradient, report

    def _alone(self, model: Tensor, sample: Tensor) -> tuple[Tensor, Report]:
        """Return gradient [d] and report of a mini-batch of a client with data."""
        report = self.at(model).report(self.batch(sample), sample[0, 1] if sample.ndim > 1 else None)
        slopes = torch.autograd.grad(report["loss"], self._parameters, materialize_grads=True)
        gradient = self.flat.join(slopes)
        return gradient, {name: value.detach().reshape(()) for name, value in report.items()}

    def gradients(self, models: Tensor, clients: Tensor, samples: Tensor) -> Tensor:
        """Return the gradients [J, d], stacked by `vmap` where the module allows, or in turn."""
        return self.gradients_and_reports(models, clients, samples)[0]

    def gradients_and_reports(
        self, models: Tensor, clients: Tensor, samples: Tensor
    ) -> tuple[Tensor, Report]:
        """Return gradients [J, d] and reports, [J] each, stacked where the module allows."""
        if self._stacks:
            return super().gradients_and_reports(models, clients, samples)
        return self._together(self._in_turn, models, samples)

    def _in_turn(self, models: Tensor, samples: Tensor) -> tuple[Tensor, Report]:
        """Return gradients [J, d] and reports, [J] each, computed in turn."""
        slopes, reports = zip(*map(self._alone, models, samples), strict=True)
        report = {name: torch.stack([entry[name] for entry in reports]) for name in reports[0]}
        return torch.stack(slopes), report

    def _vectorised(self, models: Tensor, samples: Tensor) -> tuple[Tensor, Report]:
        jobs, size = samples.shape[:2]
        batch = self.batch(samples.flatten(0, 1))
        batches = tree_map(lambda part: part.view(jobs, size, *part.shape[1:]), batch)
        return self._derived(models, batches, *([samples[:, 0, 1]] if samples.ndim > 2 else []))

    def estimate(self, model: Tensor, points: int) -> Evaluation:
        """Evaluate exactly, since a loss by mini-batch does not show the variance of data points."""
        return self.evaluate(model)

    def _on_test(self, model: Tensor) -> Evaluation:
        task, data = self.at(model), self.data
        everything = torch.arange(len(data.x_test))
        with torch.no_grad():  # not `inference_mode`: a metric of the module's may count in training, too
            metrics = self._tested(everything)
            scored = {name: torch.cat(values).double().cpu().numpy() for name, values in task.scored.items()}
            by_client = self._own_tests(metrics)
        of_clients = {name: self.shares.on_test(values) for name, values in scored.items()}
        return Evaluation(metrics, None, by_client | of_clients)

    def _on_training(self, model: Tensor) -> np.ndarray:
        task = self.at(model)
        with torch.no_grad():
            return np.array([task.mean_loss(self._trains(client)) for client in range(self.n)])

    def _tested(self, rows: Tensor) -> dict[str, float]:
        metrics = self.task.tested(self._tests(rows))
        if "test/loss" not in metrics:
            metrics["test/loss"] = self.task.mean_loss(self._tests(rows))
        return metrics

    def _own_tests(self, overall: dict[str, float]) -> dict[str, np.ndarray]:
        """Return each client's metrics on own test data; the overall metrics for clients without."""
        owners = self.shares.test_owners
        if owners is None:
            return {}
        by_client = []
        for client in range(self.n):
            rows = torch.from_numpy(np.flatnonzero(owners == client))
            by_client.append({**overall, **(self._tested(rows) if len(rows) else {})})
        return {name: np.array([metrics[name] for metrics in by_client]) for name in overall}

    def _tests(self, rows: Tensor) -> Iterator[Counted]:
        """Yield mini-batches of test data, each with the number of data points."""
        for chunk in torch.split(rows.to(self.device), PASS) if len(rows) else ():
            x, y = self.data.x_test[chunk], self.data.y_test[chunk]
            plain = self.data.items is None
            yield (self.normalise(x), self.target(y)) if plain else self._of_items(x), len(chunk)

    def _trains(self, client: int) -> Iterator[Counted]:
        """Yield mini-batches of a client's training data, each with the number of data points."""
        held = torch.from_numpy(self.shares.of(client)).to(self.device)
        for chunk in torch.split(held, PASS) if len(held) else ():
            yield self.batch(chunk), len(chunk)

    def _stacked_as_alone(self, sample: Tensor) -> bool:
        """Return whether the module gives equal gradients stacked by `vmap` and alone."""
        alone = self.gradient(self.first, 0, sample)
        try:
            pair, _ = self._vectorised(self.first.expand(2, -1), sample.expand(2, *sample.shape))
        except Exception:  # noqa: BLE001 - whatever `vmap` cannot do is done one after the other
            return False
        return bool(torch.allclose(pair[1], alone, rtol=1e-3, atol=1e-5))
