"""Classification problems: a data set, shared out to clients, and a network."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal, Self

import torch
from pydantic import Field, SerializeAsAny, model_validator

from fl_core.problems.data import Data, held_out
from fl_core.problems.models.linear import Logistic
from fl_core.problems.models.model import Model
from fl_core.problems.partitions.iid import IID
from fl_core.problems.partitions.partition import Partition
from fl_core.problems.problem import CPU, Impossible, Problem

if TYPE_CHECKING:
    from fl_core.problems.training.world import ClassificationWorld


class Classification(Problem):
    """Base of the problems with a data set: a member says what the data are like, and loads them.

    `shape`, `classes` and `samples` are known without the data, so that what does not go together is refused
    before anything is loaded.
    """

    classes: ClassVar[int] = 10
    samples: ClassVar[int]  # training data points
    owned: ClassVar[bool] = False  # whether it is known who made a data point

    partition: SerializeAsAny[Partition] = IID()
    model: SerializeAsAny[Model] = Logistic()
    dtype: Literal["float32", "float64"] = "float32"
    # On `validation`, for tuning, a tenth of the training data, which no client gets, stands in for the test
    # set. A description mentions it only there.
    evaluate_on: Literal["test", "validation"] = Field("test", exclude_if=lambda value: value == "test")

    @property
    def shape(self) -> tuple[int, ...]:
        """Of one input: channels, height, width of an image; the length of a text or vector."""
        raise NotImplementedError

    def keyed(self) -> bool:
        """Whether training draws at random beside the mini-batches."""
        return self.augments() or self.model.keyed()

    def augments(self) -> bool:
        """Whether images are cropped and flipped at random in training."""
        return False

    @model_validator(mode="after")
    def _goes_together(self) -> Self:
        owners = (
            f"partition {self.partition.reference()} needs data with owners, and {self.reference()} has none"
        )
        reasons = (
            owners if self.partition.by_owner and not self.owned else None,
            self.partition.refuses(self.samples, self.classes, self.clients),
            self.model.refuses(self.shape, self.classes),
        )
        for reason in filter(None, reasons):
            raise ValueError(reason)
        return self

    def data(self) -> Data:
        """The data set, loaded once a process; raises DataMissing or DataDamaged."""
        raise NotImplementedError

    def split(self) -> Data:
        """What clients and evaluation get: data as published, or the training data with a tenth held out."""
        return self.data() if self.evaluate_on == "test" else held_out(self.data())

    def check(self, seed: int) -> None:
        """Raises DataMissing, DataDamaged, Impossible for data that cannot be dealt out under this seed."""
        if reason := self.model.lacks():
            raise Impossible(reason)
        self.partition.divide(self.split(), self.clients, seed)

    def world(self, seed: int) -> ClassificationWorld:
        from fl_core.problems.training.keyed import KeyedWorld
        from fl_core.problems.training.world import ClassificationWorld

        return KeyedWorld(self, seed) if self.keyed() else ClassificationWorld(self, seed)

    def pooled(self, seed: int, device: torch.device = CPU) -> dict[str, float]:
        from fl_core.problems.training.pooled import train

        world = self.world(seed).to(device)
        return world.evaluate(train(world, seed, self.model.pooled_steps)).metrics
