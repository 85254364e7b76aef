"""A user's LightningModule as a task: the loss of `training_step`, and the metrics of `test_step`.

Problem `own` and models given as LightningModules are trained as one; `UserWorld` is their world.

Fixed: losses, and names of metrics, which are recorded. Free: texts, and which modules are refused.
"""

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from inspect import Parameter, signature
from math import nan
from typing import Any

import numpy as np
import torch
from torch import Tensor

from fl_core.lightning import pl, torchmetrics
from fl_core.problems.problem import InvalidProblemError, Report
from fl_core.problems.training.dropout import KeyedMasks
from fl_core.problems.training.module_state import Container, metrics
from fl_core.problems.training.tasks import Batch, Task

Counted = tuple[Batch, int]  # a mini-batch, and the number of its data points
LOG = signature(pl.LightningModule.log)


def _mean(values: list[float], weights: list[int]) -> float:
    """Return the weighted mean; NaN without weights."""
    total = sum(weights)
    return float(np.average(values, weights=weights)) if total else nan


# How values that are logged for mini-batches become one, as in Lightning, by the name of `reduce_fx`
REDUCTIONS: dict[str, Callable[[list[float], list[int]], float]] = {
    "mean": _mean,
    "avg": _mean,
    "sum": lambda values, _: float(np.sum(values)),
    "max": lambda values, _: float(np.max(values)),
    "min": lambda values, _: float(np.min(values)),
}


class UserTask(Task):
    """A LightningModule with a loss and logged metrics.

    If the module is the network of a problem, the problem's task, `judge`, scores its outputs.
    """

    network: pl.LightningModule

    def __init__(self, module: pl.LightningModule, judge: Task | None = None) -> None:
        super().__init__(module, lr=1e-3 if judge is None else judge.lr)
        self._judge = (judge,)  # in a tuple: it has the same network, which must not be registered twice
        self.scored: dict[str, list[Tensor]] = {}  # the judge's scores, a value for each data point
        self.logged: dict[str, None] = {}  # names of logs in training, in order
        self._logged: dict[str, Any] = {}  # logs of the test step, by name
        self._points = 0  # data points of the tested mini-batch; 0 outside of tests, where logs are ignored
        self._metrics = metrics(module)
        self.containers: list[Container] = []  # lists and dicts that grow in steps, emptied after each step
        module.log = self._note  # type: ignore[method-assign]
        self._indexed = {name for name in ("training_step", "test_step") if _indexed(getattr(module, name))}

    @property
    def called(self) -> str:
        """The import path of the user's class."""
        return f"{type(self.network).__module__}:{type(self.network).__qualname__}"

    def loss(self, batch: Batch, key: Tensor | None = None) -> Tensor:
        """Return the loss of a mini-batch; `key` determines the dropped units, none without a key."""
        return self.report(batch, key)["loss"]

    def report(self, batch: Batch, key: Tensor | None = None) -> Report:
        """Return the "loss" of a mini-batch, and the other single numbers from `training_step`."""
        with self._masks(key):
            returned: Any = self.step("training_step", batch, 0)
        loss = returned.get("loss") if isinstance(returned, dict) else returned
        if loss is None:
            raise InvalidProblemError(
                f"{self.called}: training_step returned no loss for a mini-batch. Return a loss for "
                "every mini-batch, such as 0 * loss"
            )
        if not isinstance(returned, dict):
            return {"loss": loss}
        numbers = {
            name: torch.as_tensor(value, dtype=torch.float64, device=self.device).detach().reshape(())
            for name, value in returned.items()
            if isinstance(value, int | float) or (isinstance(value, Tensor) and value.numel() == 1)
        }
        return {**numbers, "loss": loss}

    def training_step(self, batch: Batch, index: int) -> Any:
        """Return the loss of a step of the pooled baseline, with the step's number as dropout key."""
        with self._masks(torch.tensor(self.global_step, device=self.device)):
            return self.step("training_step", batch, index)

    def step(self, name: str, batch: Batch, index: int) -> Any:
        """Return the result of a step of the module; as in Lightning, the index is optional."""
        step = getattr(self.network, name)
        returned = step(batch, index) if name in self._indexed else step(batch)
        for container in self.containers:
            container.empty()
        return returned

    def _masks(self, key: Tensor | None) -> AbstractContextManager[Any]:
        return KeyedMasks(key) if self.drops else nullcontext()

    def configure_optimizers(self) -> Any:
        has_optimizer = type(self.network).configure_optimizers is not pl.LightningModule.configure_optimizers
        return self.network.configure_optimizers() if has_optimizer else super().configure_optimizers()

    def mean_loss(self, batches: Iterable[Counted]) -> float:
        """Return the mean loss of all data points; 0 without any."""
        losses = [(float(self.loss(batch)), points) for batch, points in batches]
        return _mean(*map(list, zip(*losses, strict=True))) if losses else 0.0

    def tested(self, batches: Iterable[Counted]) -> dict[str, float]:
        """Return the logs of `test_step`: torchmetrics as computed, numbers reduced by `reduce_fx`."""
        self._logged, self.scored = {}, {}
        for metric in self._metrics:
            metric.reset()
        training = {layer: layer.training for layer in self.network.modules()}  # frozen layers stay so
        self.network.eval()
        for number, (batch, points) in enumerate(batches):
            self._points = points
            if type(self.network).test_step is not pl.LightningModule.test_step:
                self.step("test_step", batch, number)
            self._score(batch)
        self._points = 0
        for layer, mode in training.items():
            layer.training = mode
        scores = {name: float(torch.cat(values).double().mean()) for name, values in self.scored.items()}
        return scores | {name: self._of(entry) for name, entry in self._logged.items()}

    def _score(self, batch: Batch) -> None:
        """Add the judge's scores of a mini-batch."""
        (judge,) = self._judge
        if judge is not None:
            for name, values in judge.scores(self(batch[0]), batch[1]).items():
                self.scored.setdefault(name, []).append(values)

    def _note(self, *arguments: Any, **options: Any) -> None:
        """Keep the module's logs, in place of Lightning's `log`."""
        bound_arguments = LOG.bind(self.network, *arguments, **options).arguments
        name, value = bound_arguments["name"], bound_arguments["value"]
        if not self._points:
            self.logged[name] = None
            return
        if isinstance(value, torchmetrics.Metric):
            self._logged[name] = value
        else:
            reduction = bound_arguments.get("reduce_fx", "mean")
            reduction = getattr(reduction, "__name__", reduction)
            if reduction not in REDUCTIONS:
                raise InvalidProblemError(
                    f"{self.called}: {name} is logged with reduce_fx={reduction!r}: use mean, sum, max or min"
                )
            size = bound_arguments.get("batch_size")
            _, values, sizes = self._logged.setdefault(name, (reduction, [], []))
            values.append(float(value))
            sizes.append(self._points if size is None else int(size))

    @staticmethod
    def _of(entry: Any) -> float:
        """Return the value of a log: a metric as computed, numbers reduced."""
        if isinstance(entry, torchmetrics.Metric):
            return float(entry.compute())
        reduction, values, sizes = entry
        return REDUCTIONS[reduction](values, sizes)


def _indexed(step: Callable[..., Any]) -> bool:
    """Return whether a step takes the batch index: a second parameter, or any number."""
    takes = signature(step).parameters.values()
    return len(takes) > 1 or any(parameter.kind is Parameter.VAR_POSITIONAL for parameter in takes)
