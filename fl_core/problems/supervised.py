"""Base classes of problems with data: `Supervised`, `Modelled` (a network by name) and `Classification`.

The problems of this folder derive from these; `world` puts data, partition and network together.
A *task* defines, from a network's outputs, the loss to minimise and the metrics, and the optimiser of the
pooled baseline. It is a LightningModule (`training/tasks.py`), so that the same module that clients
train can be given to `Trainer.fit`.

Fixed: names and defaults of fields (keys of all runs with data), and how data, split and first model follow
from the seed.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, ClassVar, Literal, Self

import torch
from pydantic import SerializeAsAny, model_validator

from fl_core.keys import digest
from fl_core.metrics import ACCURACY, LOSS, Metric
from fl_core.parts import FieldError
from fl_core.problems.data.client_data import Shares
from fl_core.problems.data.data import Data, half_tested, held_out
from fl_core.problems.models.linear import Logistic
from fl_core.problems.models.model import Model
from fl_core.problems.partitions import IID, Partition
from fl_core.problems.problem import CPU, InvalidProblemError, Precision, Problem
from fl_core.problems.training.network_check import hidden_state
from fl_core.streams import torch_stream

if TYPE_CHECKING:
    from fl_core.problems.training.tasks import Task
    from fl_core.problems.training.world import SupervisedWorld


class Supervised(Problem):
    """Base of the problems with data: a subclass defines `load` and `task`."""

    pooled_steps: ClassVar[int] = 1000  # of the centralised baseline, on mini-batches of 128

    partition: SerializeAsAny[Partition] = IID()  # how the data are split among clients
    dtype: Literal["float32", "float64"] = "float32"  # of parameters and data
    # Of matrix products and convolutions on a GPU: `tf32` rounds their inputs to 10 bits and is faster
    precision: Precision = "float32"
    # `validation`, for tuning: a tenth of the training data, held out from clients, replaces the test set.
    # Halves of the test set, cut for good, are for tuning on the one and final runs on the other.
    evaluate_on: Literal["test", "validation", "first_half", "second_half"] = "test"

    @model_validator(mode="after")
    def _rounds_single_precision_only(self) -> Self:
        """Refuse tf32 with float64, where it has no effect."""
        if self.precision == "tf32" and self.dtype != "float32":
            raise FieldError(
                "precision",
                f"tf32 applies to float32 only, but dtype is {self.dtype}: set dtype to float32, or "
                "leave out tf32",
            )
        return self

    def load(self) -> Data:
        """Return the data set, loaded once per process; raise DataMissingError or DataDamagedError."""
        raise NotImplementedError

    def task(self) -> Task:
        """Return the task with a network, parameters drawn from torch's global generator."""
        raise NotImplementedError

    def split(self) -> Data:
        """Return the data for clients and evaluation, chosen by `evaluate_on`."""
        data = self.load()
        if self.evaluate_on == "test":
            return data
        return held_out(data) if self.evaluate_on == "validation" else half_tested(data, self.evaluate_on)

    def check(self, seed: int) -> None:
        """Raise an error if the data are missing or damaged, or cannot be dealt out under the seed.

        Raises:
            DataMissingError: A file is not on this machine.
            DataDamagedError: A file differs from the published one.
            InvalidProblemError: The partition does not fit the data.
        """
        self.partition.divide(self.split(), self.clients, seed)

    def data_digest(self) -> str:
        """Return a digest of all data, changed by any change of a file or of a user's function."""
        return self.split().fingerprint

    def first_task(self, seed: int) -> Task:
        """Return the task with first parameters, drawn from the stream "init"."""
        with torch.random.fork_rng(devices=[]):
            # The initialisers of torch's layers use the global generator only.
            generator = torch_stream(seed, "init")
            torch.set_rng_state(generator.get_state())
            task = self.task()
            task.seeds_itself = torch.initial_seed() != generator.initial_seed()
        return task.to(getattr(torch, self.dtype))

    def shares(self, seed: int) -> Shares:
        """Return the data as dealt out under a seed."""
        data = self.split()
        parts = self.partition.divide(data, self.clients, seed)
        return Shares(data, parts, by_owner=self.partition.by_owner)

    def world(self, seed: int) -> SupervisedWorld:
        shares, task = self.shares(seed), self.first_task(seed)
        world = self.kind_of_world(task)(task, shares, self.weights(shares.sizes), seed)
        world.precision = self.precision
        return world

    def kind_of_world(self, task: Task) -> type[SupervisedWorld]:
        """Return the class of the world for training a task."""
        from fl_core.problems.training.keyed_world import KeyedWorld
        from fl_core.problems.training.user_task import UserTask
        from fl_core.problems.training.user_world import UserWorld
        from fl_core.problems.training.world import SupervisedWorld

        if isinstance(task, UserTask):
            return UserWorld
        return KeyedWorld if task.keyed else SupervisedWorld

    def pooled(self, seed: int, device: torch.device = CPU) -> dict[str, float]:
        from fl_core.problems.training.centralised_baseline import train

        world = self.world(seed).to(device)
        return world.evaluate(train(world, seed, self.pooled_steps)).metrics


class Modelled(Supervised):
    """Base of problems with a network chosen by name.

    `shape`, `classes` and `samples` are known without the data, so that incompatible choices are refused
    before any data are loaded.
    """

    classes: ClassVar[int] = 10
    samples: ClassVar[int]  # training data points
    owned: ClassVar[bool] = False  # whether the owners of data points are known
    task_name: ClassVar[str] = "Classifier"  # class in `training/tasks.py`, a module that imports Lightning

    model: SerializeAsAny[Model] = Logistic()  # the network that is trained

    @property
    def shape(self) -> tuple[int, ...]:
        """Return an input's shape: channels, height, width of an image; the length of a text or vector."""
        raise NotImplementedError

    @property
    def outputs(self) -> int:
        """The number of outputs of the network: a logit for each class."""
        return self.classes

    @property
    def pooled_steps(self) -> int:  # type: ignore[override]
        """The steps of the centralised baseline, set by the model."""
        return self.model.pooled_steps

    def task(self) -> Task:
        from fl_core.lightning import pl
        from fl_core.problems.training import tasks
        from fl_core.problems.training.user_task import UserTask

        network = self.model.build(self.shape, self.outputs)
        task: Task = getattr(tasks, self.task_name)(network, self.model.pooled_lr, self.outputs)
        if isinstance(network, pl.LightningModule):
            task = UserTask(network, task)
        task.architecture, task.channels_last = (self.model, self.dtype), self.model.channels_last
        task.augments, task.takes_keys = self.augments(), self.model.keyed()
        if task.takes_keys and (isinstance(task, UserTask) or task.drops):
            raise InvalidProblemError(
                f"{self.reference()}: a network that is a LightningModule or has nn.Dropout takes no keys: "
                "its model must not be keyed"
            )
        return task

    def augments(self) -> bool:
        """Return whether images are cropped and flipped at random in training."""
        return False

    @model_validator(mode="after")
    def _goes_together(self) -> Self:
        """Refuse partitions and networks that do not fit the data."""
        owners = (
            f"partition {self.partition.reference()} needs data with owners, and {self.reference()} has none"
        )
        reasons: tuple[str | None, ...] = (
            owners if self.partition.by_owner and not self.owned else None,
            self.partition.refuses(self.samples, self.classes, self.clients),
            self.model.refuses(self.shape, self.outputs),
        )
        for reason in filter(None, reasons):
            raise ValueError(reason)
        if ":" in self.model.reference() and (fault := _fault(self.model, self.shape, self.outputs)):
            raise FieldError("model", f"{fault}")
        return self

    def check(self, seed: int) -> None:
        if reason := self.model.lacks():
            raise InvalidProblemError(reason)
        super().check(seed)

    def split(self) -> Data:
        data = super().split()
        if tuple(data.x_train.shape[1:]) != self.shape or data.classes != self.classes:
            loaded = f"{tuple(data.x_train.shape[1:])}, {data.classes} classes"
            raise InvalidProblemError(
                f"{self.reference()}: data are {loaded}, not {self.shape}, {self.classes}"
            )
        return data

    def world(self, seed: int) -> SupervisedWorld:
        world = super().world(seed)
        if origin := self.model.origin():
            world.fingerprint["weights"] = f"{origin}, {digest(world.initial().numpy().data)}"
        return world


class Classification(Modelled):
    """Base of classification problems: a subclass defines the shape of the data and `load`."""

    metric: str = "test/accuracy"

    def metrics(self) -> tuple[Metric, ...]:
        return ACCURACY, LOSS

    def client_metrics(self) -> tuple[Metric, ...]:
        return (ACCURACY,)


@functools.cache
def _fault(model: Model, shape: tuple[int, ...], outputs: int) -> str | None:
    """Return the reason why a user's network cannot be trained here, or None."""
    with torch.random.fork_rng(devices=[]):
        return hidden_state(model.build(shape, outputs))
