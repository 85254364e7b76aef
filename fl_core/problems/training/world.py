"""The world of a supervised problem: data, split and first model under a seed; gradients and evaluations.

`Supervised.world` builds it; `KeyedWorld` and `UserWorld` derive from it.

Fixed: the streams of first model and mini-batches, and gradients and metrics, bit for bit.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Self, TypeVar

import numpy as np
import torch
from torch import Tensor
from torch.func import functional_call, grad_and_value, vmap

from fl_core.flat import Flat
from fl_core.lightning import torchmetrics
from fl_core.metrics import DISTANCE, EXCESS_LOSS
from fl_core.problems.data.client_data import Shares, StratifiedSample
from fl_core.problems.data.data import placed
from fl_core.problems.problem import CPU, Evaluation, Report, World
from fl_core.problems.training.linear_gradients import LinearGradients, sparse_inputs
from fl_core.problems.training.tasks import Batch, Task, TaskReport
from fl_core.streams import Streams

CHUNK = 256  # data points of a full gradient at a time
# Data points of an evaluation at a time: few enough for a network's activations to stay in the cache (with
# the CNNs 256 take 1.4 times as long), enough to hide the calls. One linear layer has no activations to keep,
# and those of dense layers on vectors stay in the cache.
PASS, PASS_DENSE, PASS_GPU = 128, 1024, 2048

Judgement = TypeVar("Judgement")


class SupervisedWorld(World):
    """The world of a supervised problem: data dealt out to clients, and a task.

    Bytes stay bytes in memory and are normalised when they are used. A sample is a mini-batch: indices [B]
    into the training data, drawn with replacement. A client without data has loss and gradient 0.
    """

    by_sample = True

    def __init__(self, task: Task, shares: Shares, p: np.ndarray, seed: int) -> None:
        self.task, self.shares = task, shares
        self.flat = Flat(task)
        super().__init__(p, self.flat.d)
        data = self.data = shares.data
        self.sizes, self.labels = shares.sizes, shares.labels
        self.held, self.starts = shares.held, shares.starts
        self._counts: list[int] = shares.sizes.tolist()  # numbers of Python, which are faster to look up
        self.fingerprint = dict(shares.fingerprint)
        self.first = self.flat.vector(task)
        held = (self.first.dtype, data.fingerprint, self._untrained())
        self.kind = (type(task), task.architecture, *held)
        self._report = TaskReport(task)
        fits = LinearGradients.fits(task, data)
        self._by_hand = LinearGradients(task, data) if fits else None
        self._by_autograd = vmap(grad_and_value(self._loss, has_aux=True))
        self._seed, self._batches = seed, Streams(seed, "batches")
        self._samples: dict[int, StratifiedSample] = {}  # by size
        # (x − mean) / std as x · scale + shift
        self._scale = torch.tensor([1 / std for std in data.std], dtype=self.first.dtype)[:, None, None]
        self._shift = torch.tensor(
            [-mean / std for mean, std in zip(data.mean, data.std, strict=True)], dtype=self.first.dtype
        )[:, None, None]
        self._place(CPU)

    @property
    def blocks(self) -> list[int]:
        return self.flat.sizes

    def to(self, device: torch.device) -> Self:
        """Move data and task to a device; labels and owners for counting stay on the CPU as well."""
        if device != self.device:
            self.data = placed(self.data, device)
        self.task.to(device)
        super().to(device)
        if self._by_hand:
            self._by_hand = LinearGradients(self.task, self.data)
        self._place(device)
        return self

    def _place(self, device: torch.device) -> None:
        """Bind the task's parameters to a vector, and prepare the inputs, on a device."""
        self.device = device
        self._bound = self.flat.bind(self.task)  # [d]; writing here sets the task's parameters
        self._parameters = self.flat.parameters(self.task)
        fast = self.task.channels_last and device.type == "cpu" and self.first.dtype is torch.float32
        self._format = torch.channels_last if fast else torch.preserve_format
        self.memory_format = "channels last" if fast else "contiguous"
        # The stored data, or a linear layer's inputs as a sparse matrix
        dense = device.type != "cpu" or bool(self.data.mean)
        self._train_inputs, self._test_inputs = (
            stored if dense else sparse_inputs(self.task, stored)
            for stored in (self.data.x_train, self.data.x_test)
        )
        self._judged: dict[tuple[str, str], tuple[Tensor, Any]] = {}  # by data set, and first or last model

    def at(self, model: Tensor) -> Task:
        """Return the task with `model` [d] as parameters; valid until the next call of any method."""
        self._bound.copy_(model)
        return self.task

    def samples(self, client: int, job: int, steps: int, batch: int) -> Tensor:
        """Return the mini-batches [steps, batch] of a job: indices into the training data, with replacement.

        A single draw per job; the first k rows do not depend on the number of steps. A client with fewer data
        points than a mini-batch repeats them; a client without data draws −1.
        """
        size, start = self._counts[client], self.starts[client]
        if not size:
            return torch.full((steps, batch), -1)
        drawn = self._batches.at(client, job).integers(0, size, (steps, batch))
        return torch.from_numpy(self.held[start : start + size][drawn])

    def shuffled(self, client: int, job: int, steps: int, batch: int) -> Tensor:
        """Return the mini-batches [steps, batch] of a job: the client's data, reshuffled every epoch and cut.

        Epoch e is shuffled by the stream ("batches", client, job, e). A mini-batch may begin at the end of an
        epoch and end in the next.
        """
        size = int(self.sizes[client])
        if not size:
            return torch.full((steps, batch), -1)
        epochs = range(-(-steps * batch // size))
        drawn = [self._batches.at(client, job, epoch).permutation(size) for epoch in epochs]
        places = self.starts[client] + np.concatenate(drawn)[: steps * batch]
        return torch.from_numpy(self.held[places]).view(steps, batch)

    def gradient(self, model: Tensor, client: int, sample: Tensor) -> Tensor:
        """Return the gradient [d] of the mean loss on a mini-batch [B]."""
        if self._by_hand and self._counts[client]:
            return self._by_hand.one(model, sample)[0]
        return self.gradient_and_report(model, client, sample)[0]

    def gradient_and_report(self, model: Tensor, client: int, sample: Tensor) -> tuple[Tensor, Report]:
        """Return the gradient [d] of the mean loss on a mini-batch [B], and the "loss" []."""
        if not self.sizes[client]:
            return torch.zeros_like(model), {"loss": model.new_zeros(())}
        if self._by_hand:
            return self._by_hand.one(model, sample, reports=True)
        loss = self.at(model).loss(self.batch(sample))
        slopes = torch.autograd.grad(loss, self._parameters, materialize_grads=True)
        return self.flat.join(slopes), {"loss": loss.detach()}

    def gradients(self, models: Tensor, clients: Tensor, samples: Tensor) -> Tensor:
        """Return the gradients of stacked jobs: models [J, d], samples [J, B] → [J, d]."""
        return self._together(self._by_hand or self._vectorised, models, samples)[0]

    def gradients_and_reports(
        self, models: Tensor, clients: Tensor, samples: Tensor
    ) -> tuple[Tensor, Report]:
        """Return the gradients [J, d] of stacked jobs, models [J, d] and samples [J, B], and "loss" [J]."""
        by_hand = self._by_hand and partial(self._by_hand, reports=True)
        return self._together(by_hand or self._vectorised, models, samples)

    def _together(
        self, compute: Callable[[Tensor, Tensor], Any], models: Tensor, samples: Tensor
    ) -> tuple[Tensor, Report]:
        """Return the results of `compute` for stacked jobs, with zeros for clients without data."""
        # Not looked up by client: jobs may come from several worlds.
        without_data = samples < 0
        # Checking whether there are any would wait for a GPU, where the fill costs next to nothing.
        if self.device.type == "cpu" and not without_data.any():
            stacked, report = compute(models, samples)
            return stacked, report
        stacked, report = compute(models, samples.clamp(min=0))
        empty = without_data.flatten(1)[:, 0]
        filled = {name: values.masked_fill(empty, 0) for name, values in report.items()}
        return stacked.masked_fill(empty[:, None], 0), filled

    def full_gradient(self, model: Tensor, client: int) -> Tensor:
        """Return the gradient [d] of a client's loss on all of the client's data."""
        size = int(self.sizes[client])
        held = torch.from_numpy(self.shares.of(client)).to(self.device)
        total = torch.zeros_like(model)
        for chunk in torch.split(held, CHUNK) if size else ():
            total += self.gradient(model, client, chunk) * (len(chunk) / size)
        return total

    def evaluate(self, model: Tensor) -> Evaluation:
        """Return the metrics on the test data, and every client's training loss and value of each score.

        The first model, where all runs of a world begin, and the last, needed twice at the end of a run, are
        evaluated once.
        """
        test = self.test(model)
        return test if test.client_loss is not None else replace(test, client_loss=self.losses(model))

    def test(self, model: Tensor) -> Evaluation:
        """Return the metrics on the test data alone, without a pass over the training data."""
        return self._once("test", model, self._on_test)

    def estimate(self, model: Tensor, points: int) -> Evaluation:
        """Return the metrics, training losses on a fixed sample of about `points` data points."""
        test = self.test(model)
        if test.client_loss is not None:
            return test
        losses, errors = self._once(f"{points} points", model, lambda model: self._on_sample(model, points))
        return replace(test, client_loss=losses, client_error=errors)

    def losses(self, model: Tensor) -> np.ndarray:
        """Return L_i(θ) [n] of a model [d], in a pass over the training data alone."""
        return self._once("training", model, self._on_training)

    def _once(self, data: str, model: Tensor, judge: Callable[[Tensor], Judgement]) -> Judgement:
        """Return an evaluation, cached for the first and the latest model."""
        key = data, "first" if torch.equal(model, self.first) else "last"
        if key not in self._judged or not torch.equal(model, self._judged[key][0]):
            self._judged[key] = model.clone(), judge(model)
        return self._judged[key][1]

    def _on_test(self, model: Tensor) -> Evaluation:
        """Evaluate a model on the test data, without the clients' training losses."""
        data, task = self.data, self.at(model)
        wholes = {
            name: metric.set_dtype(torch.float64).to(self.device) for name, metric in task.wholes().items()
        }
        with torch.inference_mode():
            test = self._judge(task, self._test_inputs, data.y_test, wholes)
            means = {name: float(metric.compute()) for name, metric in wholes.items()}
        loss = test.pop("loss")
        metrics = {name: float(values.mean()) for name, values in test.items()}
        of_clients = {name: self.shares.on_test(values) for name, values in test.items()}
        return Evaluation({**metrics, "test/loss": float(loss.mean()), **means}, None, of_clients)

    def _on_training(self, model: Tensor) -> np.ndarray:
        """Return L_i [n] on each client's training data."""
        data, task = self.data, self.at(model)
        with torch.inference_mode():
            train = self._judge(task, self._train_inputs, data.y_train, {})
        return self.shares.on_training(train["loss"])

    def _on_sample(self, model: Tensor, points: int) -> tuple[np.ndarray, np.ndarray]:
        """Return L_i [n] on a sample of each client's training data, and the standard errors [n]."""
        if points not in self._samples:
            self._samples[points] = StratifiedSample(self.shares, points, self._seed)
        sample, data, task = self._samples[points], self.data, self.at(model)
        places = torch.from_numpy(sample.points).to(self.device)
        with torch.inference_mode():
            train = self._judge(task, data.x_train[places], data.y_train[places], {})
        return sample.estimate(train["loss"])

    def batch(self, indices: Tensor) -> Batch:
        """Return normalised training data [B, ...] and targets [B, ...]."""
        data = self.data
        inputs, targets = data.x_train.index_select(0, indices), data.y_train.index_select(0, indices)
        return self.normalise(inputs), self.target(targets)

    def normalise(self, stored: Tensor) -> Tensor:
        """Return stored bytes or numbers as the network's inputs; int64 is left alone."""
        if not self.data.mean:
            return stored if stored.dtype is torch.int64 else stored.to(self.first.dtype)
        # The inputs' layout is enough: the layers pass it on, whatever the layout of weights.
        return stored.to(self.first.dtype, memory_format=self._format).mul_(self._scale).add_(self._shift)

    def target(self, stored: Tensor) -> Tensor:
        """Return stored labels unchanged, and numbers in the model's precision."""
        return stored.to(self.first.dtype) if stored.is_floating_point() else stored

    def _untrained(self) -> str:
        """Return a digest of the network's state besides trained parameters: buffers, frozen parameters."""
        digest = hashlib.sha256()
        for name, value in sorted(self.task.state_dict().items()):
            if name not in self.flat.names:
                digest.update(f"{name}{value.dtype}{tuple(value.shape)}".encode())
                digest.update(np.ascontiguousarray(value.numpy()).data)
        return digest.hexdigest()[:16]

    def _vectorised(self, models: Tensor, samples: Tensor) -> tuple[Tensor, Report]:
        """Return gradients [J, d] and reports of stacked jobs by autograd under `vmap`."""
        jobs, size = samples.shape[:2]
        parts = self.batch(samples.flatten(0, 1))
        return self._derived(models, tuple(part.view(jobs, size, *part.shape[1:]) for part in parts))

    def _derived(self, models: Tensor, *batches_and_keys: Any) -> tuple[Tensor, Report]:
        slopes, (_, report) = self._by_autograd(models, *batches_and_keys)
        return slopes, report

    def _loss(self, model: Tensor, *batch_and_key: Any) -> tuple[Tensor, Report]:
        """Return the loss of a batch as a function of the model [d], for `torch.func`."""
        views = {TaskReport.PREFIX + name: view for name, view in self.flat.views(model).items()}
        report: Report = functional_call(self._report, views, batch_and_key)
        return report["loss"], report

    def _outputs(self, task: Task, stored: Tensor) -> Tensor:
        """Return the network's outputs for stored data points [B, ...]."""
        if stored.layout is torch.sparse_csr:  # inputs of the linear layer, after the one without parameters
            return task.network.get_submodule("1")(stored)
        return self._by_hand.logits(self._bound, stored) if self._by_hand else task(self.normalise(stored))

    def _judge(
        self, task: Task, stored: Tensor, targets: Tensor, wholes: Mapping[str, torchmetrics.Metric]
    ) -> dict[str, np.ndarray]:
        """Return loss and scores of each data point, as float64; update `wholes` with all outputs."""
        scores: dict[str, list[Tensor]] = {}
        passes = self._passes(stored)
        for x, target in zip(passes, torch.split(targets, [len(x) for x in passes]), strict=True):
            outputs, y = self._outputs(task, x), self.target(target)
            for name, values in {"loss": task.losses(outputs, y), **task.scores(outputs, y)}.items():
                scores.setdefault(name, []).append(values)
            for metric in wholes.values():
                metric.update(*task.for_torchmetrics(outputs, y))
        return {name: torch.cat(values).double().cpu().numpy() for name, values in scores.items()}

    def _passes(self, stored: Tensor) -> Sequence[Tensor]:
        """Return stored data points, as many at a time as are evaluated fastest."""
        if stored.layout is torch.sparse_csr:
            return [stored]
        vectors = stored.dim() == 2 and stored.is_floating_point()
        on_cpu = PASS_DENSE if self._by_hand or vectors else PASS
        return torch.split(stored, on_cpu if self.device.type == "cpu" else PASS_GPU)


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
