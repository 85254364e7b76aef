"""Regression problems: real data, and a synthetic problem with known optimum."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import torch
from pydantic import Field, SerializeAsAny

from fl_core.metrics import DISTANCE, EXCESS_LOSS, LOSS, Metric
from fl_core.parts import Count
from fl_core.problems.data.data import Data, deciles, drawn
from fl_core.problems.models.linear import Affine
from fl_core.problems.models.model import Model
from fl_core.problems.partitions import Natural, Partition
from fl_core.problems.supervised import Modelled
from fl_core.streams import stream

if TYPE_CHECKING:
    from fl_core.problems.training.tasks import Task
    from fl_core.problems.training.world import SupervisedWorld

MAE = Metric("test/mae", "Test mean absolute error", higher=False)
R2 = Metric("test/r2", "Test R²", higher=True)


class Regression(Modelled):
    """Base of regression problems: squared error; partitions by label use the deciles of the target."""

    task_name: ClassVar[str] = "Regressor"

    metric: str = "test/mae"
    model: SerializeAsAny[Model] = Affine()

    @property
    def outputs(self) -> int:
        return 1

    def metrics(self) -> tuple[Metric, ...]:
        return MAE, LOSS, R2

    def client_metrics(self) -> tuple[Metric, ...]:
        return (MAE,)


class Diabetes(Regression):
    """Progression of diabetes after a year, ten measurements, 353 + 89 patients (Efron et al., 2004).

    Bundled with scikit-learn. Measurements and progression are in standard deviations of the training data.
    For partitions by label the label is the decile of the progression. A fifth of each decile is kept for
    testing, the same for every seed.
    """

    name: ClassVar[str] = "diabetes"
    shape: ClassVar[tuple[int, ...]] = (10,)
    samples: ClassVar[int] = 353

    def load(self) -> Data:
        return _diabetes()


class LinearRegression(Regression):
    """Linear regression with known optimum, clients of different coefficients and inputs, drawn at random.

    Client i has x ~ N(m_i, I) and y = x·w_i + noise, w_i = w + skew · N(0, I) and m_i = skew · N(0, I), all
    from streams of their own: the same for every seed. The optimum is that of Σ p_i L_i on the training data.
    """

    name: ClassVar[str] = "linear_regression"
    owned: ClassVar[bool] = True

    partition: SerializeAsAny[Partition] = Natural()
    features: Count = 10  # inputs of each data point
    points: int = Field(50, ge=5)  # of each client for training; a fifth as many for testing
    skew: float = Field(0.5, ge=0)  # how much coefficients and inputs differ among clients
    noise: float = Field(0.1, ge=0)  # standard deviation of the targets' noise

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.features,)

    @property
    def samples(self) -> int:  # type: ignore[override]
        """Training data points of all clients."""
        return self.clients * self.points

    def metrics(self) -> tuple[Metric, ...]:
        with_optimum = (DISTANCE, EXCESS_LOSS) if isinstance(self.model, Affine) else ()
        return *super().metrics(), *with_optimum

    def load(self) -> Data:
        return _linear(self.clients, self.features, self.points, self.skew, self.noise)

    def kind_of_world(self, task: Task) -> type[SupervisedWorld]:
        from fl_core.problems.training.world import LeastSquaresWorld

        return LeastSquaresWorld if isinstance(self.model, Affine) else super().kind_of_world(task)


@functools.cache
def _diabetes() -> Data:
    """Return scikit-learn's data in standard deviations of the training data."""
    from sklearn.datasets import load_diabetes

    bundle = load_diabetes(scaled=False)
    x, y = torch.from_numpy(bundle.data), torch.from_numpy(bundle.target)
    kinds = deciles(y)
    test = drawn(kinds, 0.2, "diabetes")
    x, y = ((part - part[~test].mean(0)) / part[~test].std(0) for part in (x, y))
    return Data(x[~test], y[~test], x[test], y[test], 10, kind_train=kinds[~test], kind_test=kinds[test])


@functools.cache
def _linear(clients: int, features: int, points: int, skew: float, noise: float) -> Data:
    """Return the drawn data of `LinearRegression`, client by client."""
    common = stream(0, "linear_regression").normal(size=features)
    train, test = [], []  # a table for each client: inputs, and the target in the last column
    for client in range(clients):
        random = stream(0, "linear_regression", client)
        w, mean = common + skew * random.normal(size=features), skew * random.normal(size=features)
        x = random.normal(size=(points + points // 5, features)) + mean
        table = np.column_stack([x, x @ w + noise * random.normal(size=len(x))])
        train.append(torch.from_numpy(table[:points]))
        test.append(torch.from_numpy(table[points:]))
    owners = [torch.arange(clients).repeat_interleave(len(half[0])) for half in (train, test)]
    (x_train, y_train), (x_test, y_test) = (
        (rows[:, :-1].contiguous(), rows[:, -1].contiguous()) for rows in map(torch.cat, (train, test))
    )
    return Data(
        x_train,
        y_train,
        x_test,
        y_test,
        classes=10,
        owner_train=owners[0],
        owner_test=owners[1],
        kind_train=deciles(y_train),
        kind_test=deciles(y_test, among=y_train),
    )
