"""A user's module tried on a mini-batch: its loss must depend on parameters, batch and key alone."""

import random
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from fl_core.import_guard import place, text
from fl_core.lightning import torchmetrics
from fl_core.metrics import LOSS
from fl_core.problems.problem import InvalidProblemError, Report
from fl_core.problems.training.dropout import KeyedMasks
from fl_core.problems.training.ignored import ignored
from fl_core.problems.training.own_task import Counted, OwnTask
from fl_core.problems.training.task import Batch
from fl_core.text import listed

SAME = 1e-6  # relative difference of two losses that may be rounding
DOUBLE = 1e-3  # distance from 2 of the ratio of two losses of which one is twice the other


def tried(task: OwnTask, make: Callable[[int], Batch], points: int, test: Iterable[Counted]) -> list[str]:
    """Raise InvalidProblemError, with the cause in a line, where a module cannot be trained reproducibly.

    Training and test step run twice each: the results, what the module remembers and the states of the three
    global generators must be the same. It also notes whether the module drops units.

    Args:
        task: The module, at the first model.
        make: Makes a mini-batch of training data, with each data point so many times.
        points: Number of data points of that mini-batch.
        test: Mini-batches of test data, each with its number of data points.

    Returns:
        What the user should know: sentences on what is ignored, and on a loss that is a sum.
    """
    with _generators_restored():
        try:
            batch, test = make(1), list(test)
            with KeyedMasks(None) as masks:
                task.step("training_step", batch, 0)
            task.drops = task.drops or masks.calls > 0
            key = torch.tensor(0)
            _twice(task, "training_step", lambda: _numbers(task, task.report(batch, key)))
            with torch.no_grad():
                metrics = _twice(task, "test_step", lambda: task.tested(test))
                once, twice = float(task.loss(batch)), float(task.loss(make(2)))
        except InvalidProblemError:
            raise
        except Exception as error:
            reason = f"{type(error).__name__}: {' '.join(text(error).split()):.300}{place(error)}"
            raise InvalidProblemError(
                f"{task.called} failed on a mini-batch of {points}: {reason}"
            ) from error
    for metric in getattr(type(task.network), "metrics", ()):
        if metric.name not in metrics and metric.name != LOSS.name:
            raise InvalidProblemError(
                f"{task.called} declares {metric.name}, and its test_step does not log it"
            )
    remarks = ignored(task.network)
    if task.logged:
        remarks.append(
            f"logs {listed(list(task.logged))} in training_step, which is not recorded: use test_step"
        )
    if once and abs(twice / once - 2) < DOUBLE:
        remarks.append(
            "returns the sum of its data points' losses, not their mean: steps get longer with the mini-batch"
        )
    return remarks


def _numbers(task: OwnTask, report: Report) -> dict[str, float]:
    """Return what a step reports; raise InvalidProblemError unless the loss is one number with a gradient."""
    loss = report["loss"]
    if not isinstance(loss, Tensor) or loss.numel() != 1 or not loss.requires_grad:
        shape = tuple(loss.shape) if isinstance(loss, Tensor) else type(loss).__name__
        raise InvalidProblemError(
            f"{task.called}: training_step must return the loss, one number with a gradient, not {shape}"
        )
    return {name: float(value.detach()) for name, value in report.items()}


def _twice(task: OwnTask, step: str, call: Callable[[], dict[str, float]]) -> dict[str, float]:
    """Return what `call` returns twice alike; raise InvalidProblemError if it differs, draws or remembers."""
    states = _generators()
    first = call()
    remembered = _remembered(task.network)
    second = call()
    for name, state in _generators().items():
        if state != states[name]:
            raise InvalidProblemError(
                f"{task.called}: its {step} draws from {name}, so that no run could be repeated: "
                "draw in the data function, and drop units by torch's dropout"
            )
    for name, value in _remembered(task.network).items():
        if not _same(value, remembered.get(name)):
            raise InvalidProblemError(
                f"{task.called}: its {step} changes self.{name}, which clients that work at the same time "
                "cannot share: the result must follow from parameters and mini-batch"
            )
    for name, value in first.items():
        if not _same(value, second[name]):
            raise InvalidProblemError(
                f"{task.called}: its {step} gives {name} {value:g}, then {second[name]:g}, for the same "
                "parameters and mini-batch: it must neither draw at random nor remember earlier calls"
            )
    return first


def _generators() -> dict[str, Any]:
    """The state of every global random generator, by the name that users know."""
    return {
        "torch's generator": torch.get_rng_state().tolist(),
        "NumPy's generator (np.random)": str(np.random.get_state(legacy=False)),  # noqa: NPY002
        "Python's generator (random)": random.getstate(),
    }


@contextmanager
def _generators_restored() -> Iterator[None]:
    states = torch.get_rng_state(), np.random.get_state(), random.getstate()  # noqa: NPY002
    try:
        yield
    finally:
        torch.set_rng_state(states[0])
        np.random.set_state(states[1])  # noqa: NPY002
        random.setstate(states[2])


def _remembered(network: nn.Module) -> dict[str, Any]:
    """Numbers and tensors that are attributes of the module or its layers, metrics left out."""
    metrics = [layer for layer in network.modules() if isinstance(layer, torchmetrics.Metric)]
    of_metrics = {id(layer) for metric in metrics for layer in metric.modules()}
    return {
        f"{prefix}.{name}" if prefix else name: value.detach().clone() if isinstance(value, Tensor) else value
        for prefix, layer in network.named_modules()
        if id(layer) not in of_metrics
        for name, value in {**vars(layer), **dict(layer.named_buffers(recurse=False))}.items()
        if isinstance(value, int | float | Tensor)
    }


def _same(first: Any, second: Any) -> bool:
    if isinstance(first, Tensor) and isinstance(second, Tensor):
        return first.shape == second.shape and torch.allclose(
            first.double(), second.double(), rtol=SAME, atol=0, equal_nan=True
        )
    if isinstance(first, Tensor) or isinstance(second, Tensor) or second is None:
        return False
    return bool(np.isclose(first, second, rtol=SAME, atol=0, equal_nan=True))
