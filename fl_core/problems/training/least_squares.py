"""The world of linear regression, with the optimum in closed form."""

from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from fl_core.metrics import DISTANCE, EXCESS_LOSS
from fl_core.problems.data.shares import Shares
from fl_core.problems.problem import Evaluation
from fl_core.problems.training.tasks import Task
from fl_core.problems.training.world import SupervisedWorld


class LeastSquaresWorld(SupervisedWorld):
    """A world of squared error and an affine layer: θ* [d] minimises Σ p_i L_i on the training data."""

    def __init__(self, task: Task, shares: Shares, p: np.ndarray, seed: int) -> None:
        super().__init__(task, shares, p, seed)
        self.optimum = torch.from_numpy(self._solved()).to(self.first.dtype)
        self.least = float(p @ self._on_training(self.optimum))

    def _solved(self) -> np.ndarray:
        """Return θ with Σ p_i/n_i X_iᵀ(X_i θ − y_i) = 0, of least norm if not unique."""
        inputs = self.data.x_train.double().numpy()
        design = np.column_stack([inputs, np.ones(len(inputs))])  # the layer's bias is its last parameter
        weight = np.zeros(len(design))
        for client in range(self.n):
            weight[self.shares.of(client)] += self.p[client] / max(self.sizes[client], 1)
        right = design.T @ (weight * self.data.y_train.numpy())
        solution: np.ndarray = np.linalg.lstsq(design.T @ (weight[:, None] * design), right)[0]
        return solution

    def _on_test(self, model: Tensor) -> Evaluation:
        """Evaluate a model, including training losses for the excess loss."""
        evaluation, losses = super()._on_test(model), self._on_training(model)
        excess = float(self.p @ losses) - self.least
        distance = float((model - self.optimum).norm())
        metrics = {**evaluation.metrics, DISTANCE.name: distance, EXCESS_LOSS.name: excess}
        return replace(evaluation, metrics=metrics, client_loss=losses)
