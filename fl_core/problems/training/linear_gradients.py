"""Multinomial logistic regression by hand: gradients without autograd for many models at once, and logits.

`SupervisedWorld` uses it if it `fits` the task, which is three times as fast.
Inputs that are mostly zeros, such as the counts of words in a text, are a sparse matrix.

Fixed: gradients, bit for bit. A problem that `fits` or ceases to fit has other last digits.
"""

import warnings
from functools import lru_cache

import torch
from torch import Tensor, nn

from fl_core.problems.data.data import Data
from fl_core.problems.models.linear import UnitLength
from fl_core.problems.problem import Report
from fl_core.problems.training.tasks import Classifier, Task

MAX_NONZERO_SHARE = 0.1  # of inputs in a sparse matrix; with many more it is no gain


class LinearGradients:
    """Gradients of the mean cross-entropy of logits W x + b, for J models and a mini-batch each.

    Inputs of images are x = scale · u + shift with bytes u, so W x = scale · W u + shift · W 1: bytes enter
    the matrix products as they are, without normalisation. On a CPU it takes a third of the time of autograd
    under vmap. Images in colour are normalised, and word counts scaled to unit length, once for all runs.
    """

    def __init__(self, task: Task, data: Data) -> None:
        self.dtype, self.mean, self.std = next(task.parameters()).dtype, data.mean, data.std
        self.classes, self.labels = data.classes, data.y_train
        if len(data.mean) == 1:
            (mean,), (std,) = data.mean, data.std
            self.stored, self.scale, self.shift = data.x_train.flatten(1), 1 / std, -mean / std  # [N, D]
        else:
            self.stored = _inputs_once(data.x_train, self.dtype, self.mean, self.std)
            self.scale, self.shift = 1.0, 0.0

    @staticmethod
    def fits(task: Task, data: Data) -> bool:
        """Return whether a task is the cross-entropy of a linear layer on images or word counts, no keys."""
        layers = [type(layer) for layer in task.modules()]
        trained = [name for name, p in task.named_parameters() if p.requires_grad]
        first = nn.Flatten if data.mean else UnitLength
        linear = layers == [Classifier, nn.Sequential, first, nn.Linear]
        return linear and not task.keyed and trained == ["network.1.weight", "network.1.bias"]

    def __call__(self, models: Tensor, samples: Tensor, *, reports: bool = False) -> tuple[Tensor, Report]:
        """Return gradients [J, d] at models [J, d], each on a mini-batch of indices [J, B]."""
        (jobs, size), indices = samples.shape, samples.reshape(-1)
        u = self.stored.index_select(0, indices).to(self.dtype).view(jobs, size, -1)
        labels = self.labels.index_select(0, indices).view(jobs, 1, size)
        weight, bias = self._parts(models)
        # Classes before data points [J, classes, B]: product and softmax then run along the longer axis.
        constant = torch.add(bias, weight.sum(2), alpha=self.shift)[:, :, None]
        logits = torch.baddbmm(constant, weight, u.transpose(1, 2), alpha=self.scale)
        # The derivative of the mean loss with respect to the logits: (softmax − one-hot label) / B.
        error = logits.softmax(1)
        report: Report = {}
        if reports:
            report["loss"] = (logits.logsumexp(1, keepdim=True) - logits.gather(1, labels)).mean((1, 2))
        error.scatter_(1, labels, -1, reduce="add")
        error /= size
        gradient = torch.empty_like(models)
        by_weight, by_bias = self._parts(gradient)
        torch.sum(error, 2, out=by_bias)
        by_shift = by_bias[:, :, None].expand(by_weight.shape)
        torch.baddbmm(by_shift, error, u, alpha=self.scale, beta=self.shift, out=by_weight)
        return gradient, report

    def one(self, model: Tensor, sample: Tensor, *, reports: bool = False) -> tuple[Tensor, Report]:
        """Return the gradient [d] at a single model [d] on a mini-batch [B], with fewer calls."""
        u = self.stored.index_select(0, sample).to(self.dtype)
        labels = self.labels.index_select(0, sample)[None]
        weight, bias = model[: -self.classes].view(self.classes, -1), model[-self.classes :]
        constant = torch.add(bias, weight.sum(1), alpha=self.shift)[:, None]
        logits = torch.addmm(constant, weight, u.t(), alpha=self.scale)
        error = logits.softmax(0)
        report = {"loss": (logits.logsumexp(0) - logits.gather(0, labels)[0]).mean()} if reports else {}
        error.scatter_(0, labels, -1, reduce="add")
        error /= sample.shape[0]  # `len` of a tensor is slow
        gradient = torch.empty_like(model)
        by_weight = gradient[: -self.classes].view(self.classes, -1)
        by_bias = torch.sum(error, 1, out=gradient[-self.classes :])
        by_shift = by_bias[:, None].expand(by_weight.shape)
        torch.addmm(by_shift, error, u, alpha=self.scale, beta=self.shift, out=by_weight)
        return gradient, report

    def logits(self, model: Tensor, stored: Tensor) -> Tensor:
        """Return W x + b [B, classes] of a model [d] for stored data points [B, ...], not normalised."""
        (weight,), (bias,) = self._parts(model[None])
        u = _inputs(stored, self.dtype, self.mean, self.std)
        constant = torch.add(bias, weight.sum(1), alpha=self.shift)[:, None]
        return torch.addmm(constant, weight, u.t(), alpha=self.scale).t().contiguous()

    def _parts(self, models: Tensor) -> tuple[Tensor, Tensor]:
        """Return W [J, classes, D] and b [J, classes] as views of models [J, d]."""
        weight, bias = models[:, : -self.classes], models[:, -self.classes :]
        return weight.view(len(models), self.classes, -1), bias


def _inputs(stored: Tensor, dtype: torch.dtype, mean: tuple[float, ...], std: tuple[float, ...]) -> Tensor:
    """Return the linear layer's inputs [N, D]; inputs of grey images before normalisation."""
    x = stored.to(dtype)
    if not mean:
        return UnitLength()(x)
    if len(mean) > 1:
        x = (x - x.new_tensor(mean)[:, None, None]).div_(x.new_tensor(std)[:, None, None])
    return x.flatten(1)


_inputs_once = lru_cache(maxsize=1)(_inputs)  # shared by all worlds of a process


def sparse_inputs(task: Task, stored: Tensor) -> Tensor:
    """Return a linear layer's inputs for stored bytes as a sparse matrix [N, D], or unchanged if not smaller.

    The layer may follow one without parameters, such as a scaling, whose outputs are computed once.
    """
    layers = list(task.network) if type(task) is Classifier and type(task.network) is nn.Sequential else []
    if len(layers) != 2 or not isinstance(layers[1], nn.Linear) or layers[0].state_dict():
        return stored
    if stored.dtype is not torch.uint8 or stored.count_nonzero() > MAX_NONZERO_SHARE * stored.numel():
        return stored
    first, dtype = layers[0].eval(), layers[1].weight.dtype
    parts = [first(part.to(dtype)).to_sparse() for part in torch.split(stored, 128)]
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Sparse CSR tensor support is in beta state")
        return torch.cat(parts).to_sparse_csr()
