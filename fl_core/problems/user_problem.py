"""A problem of the user's: a LightningModule and a data function, by import path (problem `own`)."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import torch
from pydantic import Field, SerializeAsAny, field_validator

from fl_core.import_guard import in_a_line
from fl_core.metrics import LOSS, Metric
from fl_core.parts import imported
from fl_core.problems.data import user_data
from fl_core.problems.data.data import Data
from fl_core.problems.partitions import Given, Partition
from fl_core.problems.problem import InvalidProblemError
from fl_core.problems.supervised import Supervised
from fl_core.problems.training.network_check import hidden_state

if TYPE_CHECKING:
    from fl_core.problems.training.tasks import Task

ImportPath = Annotated[str, Field(pattern=r"^[\w.]+:\w+$")]  # package.module:name


class UserProblem(Supervised):
    """Your own data and LightningModule, with the module's loss, metrics, and optimiser for the baseline.

    `training_step` returns the loss of a mini-batch, a mean over its data points. The metrics that
    `test_step` logs are recorded; the class attribute `metrics` declares them as a tuple of
    `asyncfl.Metric`. `data` is called without arguments; `user_data` lists what it may return.
    """

    name: ClassVar[str] = "own"

    module: ImportPath  # the LightningModule, package.module:Class
    data: ImportPath  # the function that returns data, package.module:function
    collate_fn: ImportPath | None = None  # makes a mini-batch of a list of items, where these differ in shape
    partition: SerializeAsAny[Partition] = Given()
    metric: str = "test/loss"

    @field_validator("module")
    @classmethod
    def _can_be_trained(cls, path: str) -> str:
        """Refuse a class that is no LightningModule, or cannot be trained here."""
        if reason := _fault(path):
            raise ValueError(reason)
        return path

    @field_validator("data", "collate_fn")
    @classmethod
    def _can_be_called(cls, path: str | None) -> str | None:
        """Refuse a path to no function."""
        if path is not None and not callable(imported(path)):
            raise ValueError(f"'{path}' is not a function")
        return path

    def metrics(self) -> tuple[Metric, ...]:
        declared = tuple(getattr(imported(self.module), "metrics", ()))
        return *declared, *([] if LOSS.name in (metric.name for metric in declared) else [LOSS])

    def client_metrics(self) -> tuple[Metric, ...]:
        return self.metrics()  # recorded where each client has test data of its own

    def load(self) -> Data:
        return user_data.load(self.data, self.clients, self.collate_fn)

    def task(self) -> Task:
        from fl_core.problems.training.user_task import UserTask

        task = UserTask(imported(self.module)())
        task.architecture = self.module
        return task

    @property
    def has_baseline(self) -> bool:
        """True if the module defines an optimiser for training."""
        return _trains_itself(self.module)

    def check(self, seed: int) -> None:
        world = self.world(seed)
        worst = {metric.worst_client.name: metric.name for metric in self.client_metrics()}
        if self.metric in worst and worst[self.metric] not in world.evaluate(world.first).client_metrics:
            raise InvalidProblemError(
                f"metric {self.metric} needs test data of each client, but {self.data} returns one "
                "test set for all"
            )

    def remarks(self, seed: int) -> list[str]:
        from fl_core.problems.training.user_world import UserWorld

        world = self.world(seed)
        assert isinstance(world, UserWorld)
        return [f"{self.module} {sentence}" for sentence in world.remarks]


@functools.cache
def _trains_itself(path: str) -> bool:
    """Return whether the module at `path` has an optimiser, as a module asking for a Trainer does."""
    from fl_core.lightning import pl

    module = imported(path)
    if module.configure_optimizers is pl.LightningModule.configure_optimizers:
        return False
    try:
        with torch.random.fork_rng(devices=[]):
            return module().configure_optimizers() is not None
    except Exception:  # noqa: BLE001 - a user's class may need its Trainer
        return True


@functools.cache
def _fault(path: str) -> str | None:
    """Return the reason why the class at `path` cannot be trained here, or None."""
    from fl_core.lightning import pl

    module = imported(path)
    if not (isinstance(module, type) and issubclass(module, pl.LightningModule)):
        return f"'{path}' is not a LightningModule"
    if module.training_step is pl.LightningModule.training_step:
        return f"'{path}' has no training_step, which gives the loss"
    declared: Any = getattr(module, "metrics", ())
    if not isinstance(declared, tuple | list) or not all(isinstance(entry, Metric) for entry in declared):
        return f"'{path}': its attribute `metrics` must be a tuple of asyncfl.Metric"
    try:
        with torch.random.fork_rng(devices=[]):
            network = module()
    except Exception as error:  # noqa: BLE001 - a user's class may fail in any way
        return f"'{path}' cannot be made without arguments: {in_a_line(error)}"
    if not any(p.requires_grad for p in network.parameters()):
        return f"'{path}' has no parameters to train"
    by_hand = (
        f"'{path}' optimises by hand: clients take the steps, so training_step must return the loss alone"
    )
    return hidden_state(network) if network.automatic_optimization else by_hand
