"""Partitions supplied with the data."""

from typing import ClassVar

import numpy as np

from fl_core.problems.data.data import Data
from fl_core.problems.partitions.iid import IID
from fl_core.problems.partitions.partition import Partition, check
from fl_core.problems.problem import InvalidProblemError


class Natural(Partition):
    """Each client holds the data of one owner, such as a role in a play (Caldas et al., LEAF, 2019)."""

    name: ClassVar[str] = "natural"
    by_owner: ClassVar[bool] = True

    def divide(self, data: Data, clients: int, seed: int) -> list[np.ndarray]:
        if data.owner_train is None:
            raise InvalidProblemError(
                "partition natural needs data with owners, and these have none: choose another"
            )
        owner = data.owner_train.numpy()
        owners = int(owner.max()) + 1
        if owners != clients:
            raise InvalidProblemError(
                f"partition natural: the data have {owners} owners, and there are {clients} clients"
            )
        parts = [np.flatnonzero(owner == client) for client in range(clients)]
        check(self, parts, len(owner), clients)
        return parts

    def deal(self, labels: np.ndarray, clients: int, seed: int) -> list[np.ndarray]:
        raise InvalidProblemError(
            "partition natural needs to know who made a data point; labels alone do not say"
        )


class Given(Natural):
    """Data given per client are kept so; one data set for all is dealt out at random, in equal shares."""

    name: ClassVar[str] = "given"

    def label(self) -> str:
        return "as given"

    def divide(self, data: Data, clients: int, seed: int) -> list[np.ndarray]:
        divided = IID() if data.owner_train is None else Natural()
        return divided.divide(data, clients, seed)
