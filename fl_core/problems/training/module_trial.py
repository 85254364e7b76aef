"""A trial of a user's module on a mini-batch: the loss may depend on parameters, batch and key only.

`UserWorld` runs it before a run, so that modules which cannot be reproduced are refused with a reason.

Free: texts, and which modules are refused. The trial leaves the module and the generators as they were.
"""

import random
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import FunctionType
from typing import Any

import numpy as np
import torch
from torch import Tensor

from fl_core.import_guard import place, text
from fl_core.lightning import pl
from fl_core.metrics import LOSS, name_fault
from fl_core.problems.flower_apps.generators import restored
from fl_core.problems.problem import InvalidProblemError, Report
from fl_core.problems.training.dropout import KeyedMasks
from fl_core.problems.training.module_state import Container, State, changes, same, state
from fl_core.problems.training.tasks import Batch
from fl_core.problems.training.user_task import Counted, UserTask
from fl_core.text import listed

CLIPPING = "configure_gradient_clipping"
HOOKS = (
    CLIPPING,
    *("prepare_data", "setup", "configure_model"),
    *("on_fit_start", "on_fit_end", "on_train_start", "on_train_end"),
    *("on_train_epoch_start", "on_train_epoch_end", "on_train_batch_start", "on_train_batch_end"),
    *("on_before_backward", "backward", "on_after_backward", "on_before_zero_grad", "optimizer_zero_grad"),
    *("on_before_optimizer_step", "optimizer_step", "lr_scheduler_step", "configure_callbacks"),
    *("on_before_batch_transfer", "transfer_batch_to_device", "on_after_batch_transfer"),
    *("validation_step", "on_validation_epoch_end", "on_test_epoch_start", "on_test_epoch_end"),
    *("train_dataloader", "test_dataloader"),
)
COUNTERS = ("current_epoch", "global_step")  # of a Trainer, and 0 without one


def ignored(module: pl.LightningModule) -> list[str]:
    """Return sentences on ignored hooks, and on counters constant at 0, if any."""
    kind = type(module)
    hooks = [name for name in HOOKS if getattr(kind, name) is not getattr(pl.LightningModule, name)]
    user_classes = kind.__mro__[: kind.__mro__.index(pl.LightningModule)]
    parts = [part for base in user_classes for part in vars(base).values()]
    read = {name for part in parts if isinstance(part, FunctionType) for name in part.__code__.co_names}
    counters = [name for name in COUNTERS if name in read]
    sentences = []
    if hooks:
        clip = "; to clip gradients, set local: {name: sgd, clip: 1.0}" if CLIPPING in hooks else ""
        sentences.append(
            f"ignores {listed(hooks)}: clients follow the loss of training_step without a Trainer{clip}"
        )
    if counters:
        sentences.append(f"reads {listed(counters)}, 0 at all times: clients train without a Trainer")
    return sentences


SHIFT = 0.01  # of all parameters: a second model, which shows modules that hold a copy of the first
DOUBLE = 1e-3  # largest distance from 2 of a ratio of losses that counts as 2


def tried(task: UserTask, make: Callable[[int], Batch], points: int, test: Iterable[Counted]) -> list[str]:
    """Raise InvalidProblemError, with the cause in a line, where a module cannot be trained reproducibly.

    Training and test step run twice each, at the first model and at another: results, the module's state and
    the states of the three global generators must be equal. Lists and dictionaries may grow, and are emptied
    after each step from then on. The trial also records in `task.drops` whether the module drops units.

    Args:
        task: The module, at the first model.
        make: Makes a mini-batch of training data, with each data point so many times.
        points: Number of data points of that mini-batch.
        test: Mini-batches of test data, each with its number of data points.

    Returns:
        Sentences for the user: on ignored hooks and logs, and on a loss that is a sum.
    """
    with restored():
        try:
            batch, test = make(1), list(test)
            initial = state(task.network)
            with KeyedMasks(None) as masks:
                task.step("training_step", batch, 0)
            task.drops = task.drops or masks.calls > 0
            metrics, grown = _repeated(task, batch, test, initial)
            with torch.no_grad():
                once, twice = float(task.loss(batch)), float(task.loss(make(2)))
        except InvalidProblemError:
            raise
        except Exception as error:
            reason = f"{type(error).__name__}: {' '.join(text(error).split()):.300}{place(error)}"
            raise InvalidProblemError(
                f"{task.called} failed on a mini-batch of {points}: {reason}"
            ) from error
    for name in metrics:
        if fault := name_fault(name):
            raise InvalidProblemError(f"{task.called}: the metric {fault}")
    for metric in getattr(type(task.network), "metrics", ()):
        if metric.name not in metrics and metric.name != LOSS.name:
            raise InvalidProblemError(
                f"{task.called} declares the metric {metric.name}, but its test_step does not log it"
            )
    remarks = ignored(task.network)
    if task.logged:
        remarks.append(
            f"logs {listed(list(task.logged))} in training_step, which is not recorded: use test_step"
        )
    if grown:
        names = listed([f"self.{path}" for path in grown])
        remarks.append(f"adds to {names} in its steps, which is emptied after each: clients have no epochs")
    if once and abs(twice / once - 2) < DOUBLE:
        remarks.append(
            "returns the sum of its data points' losses, not their mean: steps get longer with the mini-batch"
        )
    return remarks


def _repeated(
    task: UserTask, batch: Batch, test: list[Counted], initial: State
) -> tuple[dict[str, float], list[str]]:
    """Run both steps twice at two models; return the metrics, and the paths of growing containers."""
    key = torch.tensor(0)
    grown: list[str] = []
    metrics: dict[str, float] = {}
    for shift in (SHIFT, 0.0):
        with _shifted(task, shift):
            _, paths = _twice(task, "training_step", lambda: _numbers(task, task.report(batch, key)))
            with torch.no_grad():
                metrics, more = _twice(task, "test_step", lambda: task.tested(test))
        grown += [*paths, *more]
    task.containers = [
        Container(initial[path].size if path in initial else 0, container.items)
        for path, container in state(task.network).items()
        if path in grown
    ]
    for container in task.containers:
        container.empty()
    return metrics, list(dict.fromkeys(grown))


def _numbers(task: UserTask, report: Report) -> dict[str, float]:
    """Return a report as floats; raise InvalidProblemError unless the loss is a number with a gradient."""
    loss = report["loss"]
    if not isinstance(loss, Tensor) or loss.numel() != 1 or not loss.requires_grad:
        shape = tuple(loss.shape) if isinstance(loss, Tensor) else type(loss).__name__
        raise InvalidProblemError(
            f"{task.called}: training_step must return the loss, one number with a gradient, not {shape}"
        )
    return {name: float(value.detach()) for name, value in report.items()}


@contextmanager
def _shifted(task: UserTask, shift: float) -> Iterator[None]:
    """Add a number to all trained parameters meanwhile."""
    trained = [parameter for parameter in task.network.parameters() if parameter.requires_grad]
    values = [parameter.detach().clone() for parameter in trained]
    with torch.no_grad():
        for parameter in trained if shift else ():
            parameter.add_(shift)
    try:
        yield
    finally:
        with torch.no_grad():
            for parameter, value in zip(trained, values, strict=True):
                parameter.copy_(value)


def _twice(
    task: UserTask, step: str, call: Callable[[], dict[str, float]]
) -> tuple[dict[str, float], list[str]]:
    """Return the repeatable results of `call`, and the paths of containers with added items.

    Raises:
        InvalidProblemError: The results differ, or the call draws at random or changes the module.
    """
    states = _generators()
    first = call()
    initial = state(task.network)
    second = call()
    for name, generator in _generators().items():
        if generator != states[name]:
            raise InvalidProblemError(
                f"{task.called}: its {step} draws from {name}, so runs could not be repeated: draw "
                "in the data function, and use torch's dropout"
            )
    changed, grown = changes(initial, state(task.network))
    if changed:
        raise InvalidProblemError(
            f"{task.called}: its {step} changes self.{changed[0]}, which clients share: compute the "
            "result from parameters and mini-batch only"
        )
    for name, value in first.items():
        if not same(value, second[name]):
            raise InvalidProblemError(
                f"{task.called}: its {step} gives {name} {value:g}, then {second[name]:g}, for the "
                "same parameters and mini-batch: it must neither draw random numbers nor remember "
                "earlier calls"
            )
    return first, grown


def _generators() -> dict[str, Any]:
    """Return the state of every global random generator, by the name known to users."""
    return {
        "torch's generator": torch.get_rng_state().tolist(),
        "NumPy's generator (np.random)": str(np.random.get_state(legacy=False)),  # noqa: NPY002
        "Python's generator (random)": random.getstate(),
    }
