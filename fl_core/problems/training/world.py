"""The world of a classification problem: data, split and first model under one seed."""

from __future__ import annotations

import hashlib
from collections.abc import Hashable
from typing import TYPE_CHECKING, Self

import numpy as np
import torch
from torch import Tensor
from torch.func import functional_call, grad, vmap
from torch.nn.functional import cross_entropy

from fl_core.flat import Flat
from fl_core.problems.data import placed
from fl_core.problems.problem import CPU, Evaluation, Impossible
from fl_core.problems.training.classifier import Batch, Classifier, Loss
from fl_core.problems.training.linear import LinearGradients
from fl_core.streams import Streams, torch_stream

if TYPE_CHECKING:
    from fl_core.problems.classification import Classification

CHUNK = 256  # data points a pass: small enough for the cache, large enough to hide the calls
CHUNK_GPU = 2048  # likewise; only where no gradients keep the way forward


def first_module(problem: Classification, seed: int) -> Classifier:
    """The problem's module with its first parameters, drawn from the stream "init"."""
    with torch.random.fork_rng(devices=[]):
        # The initialisers of torch's layers know no other generator than the global one.
        torch.set_rng_state(torch_stream(seed, "init").get_state())
        network = problem.model.build(problem.shape, problem.classes)
    return Classifier(network, problem.model.pooled_lr).to(getattr(torch, problem.dtype))


class ClassificationWorld:
    """Labelled data shared out to clients, and a network's cross-entropy.

    Data stay bytes in memory and are normalised when they are used. A sample is a mini-batch: indices [B]
    into the training data, drawn with replacement. A client without data has loss and gradient 0.
    """

    kind: Hashable
    labels: np.ndarray | None  # [n, classes]

    def __init__(self, problem: Classification, seed: int) -> None:
        data = self.data = problem.split()
        if tuple(data.x_train.shape[1:]) != problem.shape or data.classes != problem.classes:
            found = f"{tuple(data.x_train.shape[1:])}, {data.classes} classes"
            raise Impossible(
                f"{problem.reference()}: data are {found}, not {problem.shape}, {problem.classes}"
            )
        labels = data.y_train.numpy()
        parts = problem.partition.divide(data, problem.clients, seed)
        self.n = problem.clients
        self._by_owner = problem.partition.by_owner
        self.sizes = np.array([len(part) for part in parts])
        self.held = np.concatenate(parts)  # [Σ n_i], client after client
        self.starts = (np.cumsum(self.sizes) - self.sizes).tolist()
        self.p = problem.weights(self.sizes)
        counts = np.stack([np.bincount(labels[part], minlength=data.classes) for part in parts])
        self.labels = counts
        # Who evaluates looks up on the CPU what a test label is and whose.
        self._test_labels = data.y_test.numpy()
        self._test_owners = None if data.owner_test is None else data.owner_test.numpy()
        self._tested = np.bincount(self._test_labels, minlength=data.classes)
        self._mix = counts * (self._tested > 0)
        split = hashlib.sha256(self.sizes.astype("<i8").tobytes() + self.held.astype("<i8").tobytes())
        self.fingerprint = {"data": data.fingerprint, "partition": split.hexdigest()[:16]}

        self.module = first_module(problem, seed)
        self.flat = Flat(self.module)
        self.d = self.flat.d
        self._first = self.flat.vector(self.module)
        if origin := problem.model.origin():
            digest = hashlib.sha256(self._first.numpy().data).hexdigest()[:16]
            self.fingerprint["weights"] = f"{origin}, {digest}"
        self.kind = (problem.model, problem.dtype, data.fingerprint, self._untrained())
        self._whole = Loss(self.module)
        fits = LinearGradients.fits(self.module, data)
        self._by_hand = LinearGradients(data, self._first.dtype) if fits else None
        self._by_autograd = vmap(grad(self._loss))
        self._batches = Streams(seed, "batches")
        # (x − mean) / std as x · scale + shift
        self._scale = torch.tensor([1 / std for std in data.std], dtype=self._first.dtype)[:, None, None]
        self._shift = torch.tensor(
            [-mean / std for mean, std in zip(data.mean, data.std, strict=True)], dtype=self._first.dtype
        )[:, None, None]
        self._place(CPU)

    def to(self, device: torch.device) -> Self:
        """Move data and module there; labels and owners that are counted stay on the CPU as well."""
        if device != self.device:
            self.data = placed(self.data, device)
        self.module.to(device)
        self._first, self._scale, self._shift = (
            part.to(device) for part in (self._first, self._scale, self._shift)
        )
        if self._by_hand:
            self._by_hand = LinearGradients(self.data, self._first.dtype)
        self._place(device)
        return self

    def _place(self, device: torch.device) -> None:
        self.device = device
        self._bound = self.flat.bind(self.module)  # [d]; what is written here is the module's parameters
        self._parameters = self.flat.parameters(self.module)
        self._judged: dict[str, tuple[Tensor, Evaluation]] = {}

    def initial(self) -> Tensor:
        """θ^0 [d]."""
        return self._first.clone()

    def at(self, model: Tensor) -> Classifier:
        """The module with `model` [d] as its parameters; good until the next call of any method."""
        self._bound.copy_(model)
        return self.module

    def samples(self, client: int, job: int, steps: int, batch: int) -> Tensor:
        """Mini-batches [steps, batch] of a job: indices into the training data, drawn with replacement.

        One draw a job; the first k rows do not depend on how many follow. A client that holds fewer data
        points than a mini-batch repeats them; one that holds none draws −1.
        """
        size = int(self.sizes[client])
        if not size:
            return torch.full((steps, batch), -1)
        drawn = self._batches.at(client, job).integers(0, size, steps * batch)
        return torch.from_numpy(self.held[self.starts[client] + drawn]).view(steps, batch)

    def shuffled(self, client: int, job: int, steps: int, batch: int) -> Tensor:
        """Mini-batches [steps, batch] of a job: the client's data, shuffled again and again, cut into pieces.

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
        """Gradient [d] of the mean loss on one mini-batch [B]."""
        if not self.sizes[client]:
            return torch.zeros_like(model)
        if self._by_hand:
            return self._by_hand(model[None], sample[None])[0]
        loss = self.at(model).loss(self.batch(sample))
        return self.flat.join(torch.autograd.grad(loss, self._parameters, materialize_grads=True))

    def gradients(self, models: Tensor, clients: Tensor, samples: Tensor) -> Tensor:
        """The same for stacked jobs: models [J, d], samples [J, B] → [J, d]."""
        # Not looked up by client: jobs may come from several worlds.
        without_data = samples.flatten(1)[:, 0] < 0
        stacked = (self._by_hand or self._vectorised)(models, samples.clamp(min=0))
        # To ask whether there are any is to wait for a GPU, which fills in no time.
        any_ = self.device.type != "cpu" or without_data.any()
        return stacked.masked_fill(without_data[:, None], 0) if any_ else stacked

    def full_gradient(self, model: Tensor, client: int) -> Tensor:
        """Gradient [d] of the client's loss on all of its data."""
        size = int(self.sizes[client])
        start = self.starts[client]
        held = torch.from_numpy(self.held[start : start + size]).to(self.device)
        total = torch.zeros_like(model)
        for chunk in torch.split(held, CHUNK) if size else ():
            total += self.gradient(model, client, chunk) * (len(chunk) / size)
        return total

    def evaluate(self, model: Tensor) -> Evaluation:
        """Test accuracy and loss; every client's training loss, and its accuracy on its own mix of labels.

        The accuracy of client i is Σ_c (n_ic / n_i) · a_c over the classes c that the test set holds, a_c the
        accuracy on the test data of class c: all clients share one test set, reweighted to the client's mix.
        A client without data gets the plain test accuracy. Where clients are the owners of the data, each has
        test data of its own, and its accuracy is that on them.

        The first model, where all runs of a world begin, and the last, which is asked for twice at the end of
        a run, are judged once.
        """
        which = "first" if torch.equal(model, self._first) else "last"
        if which not in self._judged or not torch.equal(model, self._judged[which][0]):
            self._judged[which] = model.clone(), self._evaluation(model)
        return self._judged[which][1]

    def _evaluation(self, model: Tensor) -> Evaluation:
        data = self.data
        with torch.inference_mode():
            module = self.at(model)
            test_loss, right = self._judge(module, data.x_test, data.y_test)
            train_loss, _ = self._judge(module, data.x_train, data.y_train)
        owner = np.repeat(np.arange(self.n), self.sizes)
        total = np.bincount(owner, weights=train_loss[self.held], minlength=self.n)
        metrics = {"test/accuracy": float(right.mean()), "test/loss": float(test_loss.mean())}
        return Evaluation(metrics, total / np.maximum(self.sizes, 1), self._client_accuracy(right))

    def batch(self, indices: Tensor) -> Batch:
        """Normalised training data [B, ...] and their labels [B]."""
        data = self.data
        return self.normalise(data.x_train.index_select(0, indices)), data.y_train.index_select(0, indices)

    def normalise(self, stored: Tensor) -> Tensor:
        """Stored bytes as the network's inputs."""
        if not self.data.mean:
            return stored.to(self._first.dtype)
        return stored.to(self._first.dtype).mul_(self._scale).add_(self._shift)

    def _untrained(self) -> str:
        """Digest of what the network holds beside its parameters: buffers, and what is frozen."""
        digest = hashlib.sha256()
        for name, value in sorted(self.module.state_dict().items()):
            if name not in self.flat.names:
                digest.update(f"{name}{value.tolist()}".encode())
        return digest.hexdigest()[:16]

    def _vectorised(self, models: Tensor, samples: Tensor) -> Tensor:
        jobs, size = samples.shape[:2]
        parts = self.batch(samples.flatten(0, 1))
        return self._by_autograd(models, *(part.view(jobs, size, *part.shape[1:]) for part in parts))

    def _loss(self, model: Tensor, *batch: Tensor) -> Tensor:
        views = {Loss.PREFIX + name: view for name, view in self.flat.views(model).items()}
        return functional_call(self._whole, views, batch)

    def _judge(self, module: Classifier, stored: Tensor, labels: Tensor) -> tuple[np.ndarray, np.ndarray]:
        """Loss and whether the prediction is right, for each data point, as float64."""
        losses, right = [], []
        chunk = CHUNK if self.device.type == "cpu" else CHUNK_GPU
        for x, y in zip(torch.split(stored, chunk), torch.split(labels, chunk), strict=True):
            logits = module(self.normalise(x))
            losses.append(cross_entropy(logits, y, reduction="none"))
            right.append(logits.argmax(1) == y)
        return torch.cat(losses).double().cpu().numpy(), torch.cat(right).double().cpu().numpy()

    def _client_accuracy(self, right: np.ndarray) -> np.ndarray:
        if self._by_owner and self._test_owners is not None:
            owner = self._test_owners
            tested = np.bincount(owner, minlength=self.n)
            own = np.bincount(owner, weights=right, minlength=self.n) / np.maximum(tested, 1)
            return np.where(tested > 0, own, right.mean())
        hits = np.bincount(self._test_labels, weights=right, minlength=self.data.classes)
        of_class = hits / np.maximum(self._tested, 1)
        weight = self._mix.sum(1)
        return np.where(weight > 0, self._mix @ of_class / np.maximum(weight, 1), right.mean())
