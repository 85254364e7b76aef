"""LightningModules and data functions as people write them, each with one fault or peculiarity."""

import copy

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812

from fl_core.lightning import pl, torchmetrics


def _x(n=600):
    return torch.randn(n, 8, generator=torch.Generator().manual_seed(0))


def _y(n=600):
    return torch.arange(n) % 3


def _blobs(n=600):
    return _x(n) + 1.5 * torch.eye(3, 8)[_y(n)], _y(n)


def blobs():
    return _blobs()


def blobs_tested():  # 1,000 test points: several mini-batches of 128 in an evaluation
    x, y = _blobs(1600)
    return (x[:600], y[:600]), (x[600:], y[600:])


def column():
    x, y = _blobs()
    return x, y[:, None]  # labels [N, 1]


def onehot():
    x, y = _blobs()
    return x, F.one_hot(y, 3).float()  # labels [N, 3]


def codes():
    x, y = _blobs()
    return x, torch.tensor([100_200, 1_500_300, 2_000_000])[y]  # labels are product codes


def hashes():
    x, y = _blobs()
    return x, y * 400_000_000  # labels are hashed names


def unknown_in_test():
    x, y = _blobs()
    t = y[500:].clone()
    t[::5] = -100
    return (x[:500], y[:500]), (x[500:], t)


def numbered():
    return torch.arange(1000.0)[:, None].repeat(1, 8), torch.arange(1000) % 3  # a point's value is its place


class Base(pl.LightningModule):
    def __init__(self, net=None):
        super().__init__()
        self.net = nn.Linear(8, 3) if net is None else net

    def forward(self, x):
        return self.net(x)

    def training_step(self, batch, index):
        x, y = batch
        y = y.argmax(1) if y.ndim == 2 and y.shape[1] > 1 else y.reshape(-1)
        return F.cross_entropy(self(x), y)

    def test_step(self, batch, index):
        x, y = batch
        y = y.argmax(1) if y.ndim == 2 and y.shape[1] > 1 else y.reshape(-1)
        self.log("test/acc", (self(x).argmax(1) == y).float().mean())

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), 0.01)


class Wide(Base):
    def __init__(self):
        super().__init__(
            nn.Sequential(nn.Linear(8, 700), nn.ReLU(), nn.Linear(700, 700), nn.ReLU(), nn.Linear(700, 3))
        )


class LogsTime(Base):
    def test_step(self, batch, index):
        self.log("time", float(len(batch[0])))  # e.g. a duration that its author measures


class LogsUpdates(Base):
    def test_step(self, batch, index):
        self.log("updates", 9.0)


class MetricsInDict(Base):
    def __init__(self):
        super().__init__()
        self.scores = {
            s: torchmetrics.classification.MulticlassAccuracy(3, average="micro") for s in ("train", "test")
        }

    def test_step(self, batch, index):
        out = self(batch[0])
        self.scores["test"].update(out, batch[1])
        self.log("test/acc", self.scores["test"])
        self.log("test/acc_by_hand", (out.argmax(1) == batch[1]).float().mean())


class Reductions(Base):
    def test_step(self, batch, index):
        x, y = batch
        out = self(x)
        wrong = out.argmax(1) != y
        losses = F.cross_entropy(out, y, reduction="none")
        self.log("test/n_wrong", wrong.float().sum(), reduce_fx="sum")
        self.log("test/max_loss", losses.max(), reduce_fx="max")
        self.log("test/recall_0", (~wrong[y == 0]).float().mean(), batch_size=int((y == 0).sum()))


class MeanTeacher(Base):
    """The teacher begins as a copy of the student and follows it in training_step."""

    def __init__(self):
        super().__init__()
        self.teacher = copy.deepcopy(self.net).requires_grad_(False)

    def training_step(self, batch, index):
        x, y = batch
        with torch.no_grad():
            for t, s in zip(self.teacher.parameters(), self.net.parameters(), strict=True):
                t.lerp_(s, 0.1)
            target = self.teacher(x).softmax(-1)
        out = self.net(x)
        return F.cross_entropy(out, y) + 5 * F.mse_loss(out.softmax(-1), target)


class KeepsOutputs(Base):
    """The pattern of Lightning's guide to 2.0: outputs in a list that on_train_epoch_end empties."""

    def __init__(self):
        super().__init__(nn.Sequential(nn.Linear(8, 512), nn.ReLU(), nn.Linear(512, 3)))
        self.training_step_outputs = []

    def training_step(self, batch, index):
        loss = super().training_step(batch, index)
        self.training_step_outputs.append(loss)
        return loss

    def on_train_epoch_end(self):
        self.training_step_outputs.clear()

    def kept(self):
        return self.training_step_outputs


class RecallAt5(Base):
    def test_step(self, batch, index):
        self.log("test/recall@5", 1.0)


class Complex(Base):
    def __init__(self):
        super().__init__()
        self.c = nn.Parameter(0.1 * torch.randn(8, 3, dtype=torch.cfloat))

    def forward(self, x):
        return self.net(x) + (x.to(self.c.dtype) @ self.c).abs()


class Temperature(Base):
    """A learnt temperature, a parameter of shape [], as CLIP's logit_scale."""

    def __init__(self):
        super().__init__()
        self.logit_scale = nn.Parameter(torch.tensor(0.0))

    def forward(self, x):
        return self.net(x) * self.logit_scale.exp()


class SkipsBatches(Base):
    def training_step(self, batch, index):
        return super().training_step(batch, index) if (batch[1] == 0).any() else None


class Lazy(Base):
    def __init__(self):
        super().__init__(nn.Sequential(nn.LazyLinear(16), nn.ReLU(), nn.LazyLinear(3)))


class Annealed(Base):
    def training_step(self, batch, index):
        return (1 + self.global_step) * super().training_step(batch, index)


class SeedsItself(Base):
    def __init__(self):
        pl.seed_everything(42, verbose=False)
        super().__init__()


def images():
    return _x(), torch.rand(600, 4, 4)  # targets without labels


class WideBase(Base):
    def __init__(self):
        super().__init__(nn.Sequential(nn.Linear(8, 512), nn.ReLU(), nn.Linear(512, 3)))


class KeepsOutputsByName(Base):
    def __init__(self):
        super().__init__()
        self.outputs = {"train": [], "test": []}

    def training_step(self, batch, index):
        loss = super().training_step(batch, index)
        self.outputs["train"].append(loss)
        return loss

    def test_step(self, batch, index):
        super().test_step(batch, index)
        self.outputs["test"].append(index)

    def kept(self):
        return self.outputs["train"] + self.outputs["test"]


class HiddenTeacher(MeanTeacher):
    """The teacher is in a list, where torch does not see it."""

    def __init__(self):
        super().__init__()
        self.teachers = [self.teacher]
        del self.teacher

    @property
    def teacher(self):
        return self.__dict__["teachers"][0] if "teachers" in self.__dict__ else self._modules["teacher"]

    @teacher.deleter
    def teacher(self):
        del self._modules["teacher"]


class CountsInClass(Base):
    seen = 0

    def training_step(self, batch, index):
        type(self).seen += 1
        return super().training_step(batch, index) * (0.5 if self.seen > 1000 else 1)


class RemembersLoss(Base):
    def training_step(self, batch, index):
        loss = super().training_step(batch, index)
        self.last_loss = loss.detach()
        return loss
