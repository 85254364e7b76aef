"""CIFAR, Shakespeare, newsgroups: loaders, randomness by keys, and the networks in their worlds."""

import functools
import hashlib
import os
import pickle
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from torch import Tensor

from fl_core.problems import cifar, newsgroups, shakespeare
from fl_core.problems.cifar import CIFAR10, CIFAR100
from fl_core.problems.data.data import Data
from fl_core.problems.data.files import DataDamagedError, DataMissingError
from fl_core.problems.models.model import Model
from fl_core.problems.newsgroups import Newsgroups
from fl_core.problems.partitions import Partition
from fl_core.problems.problem import InvalidProblemError, Problem
from fl_core.problems.shakespeare import ALPHABET, Shakespeare
from fl_core.problems.training.keyed_world import VARIANTS, KeyedWorld, crop_and_flip
from fl_core.problems.training.world import SupervisedWorld

# -- small made-up data: each class has its own colour, each text its own letters ------------------


@functools.cache
def colours(side: int = 32) -> Data:
    y = torch.from_numpy(np.arange(60) % 10)
    x = torch.from_numpy(np.random.default_rng(0).integers(0, 120, (60, 3, side, side), np.uint8))
    x += (13 * y[:, None, None, None]).byte()
    return Data(x, y, x[:20], y[:20], 10, (120.0, 120.0, 120.0), (60.0, 60.0, 60.0))


class Colours(CIFAR10):
    """Sixty images in the shape of CIFAR-10."""

    samples: ClassVar[int] = 60

    def load(self) -> Data:
        return colours(self.resize or 32)


@functools.cache
def letters() -> Data:
    text = "".join(chr(97 + i * i % 26) for i in range(400))
    parts = [shakespeare.windows(text[i:] + text[:i], 8) for i in (0, 1, 2)]
    joined = *shakespeare._joined(parts), shakespeare._owners(parts)
    x, y, owner = joined
    return Data(x, y, x[::7], y[::7], 80, owner_train=owner, owner_test=owner[::7])


class Letters(Shakespeare):
    """Three roles with little to say."""

    clients: int = 3

    def load(self) -> Data:
        return letters()


def colour_world(model: Any, **fields: Any) -> SupervisedWorld:
    fields = {"clients": 3, "dtype": "float64", **fields}
    return Colours(model=Model.model_validate(model), **fields).world(0)


def test_images_that_are_cropped_are_stacked_as_one_by_one() -> None:
    """Two jobs of different models; relative 1e-10 in float64; all networks are in test_every_network.py."""
    world = colour_world("alahyane_cnn", augment=True)
    random = torch.Generator().manual_seed(1)
    models = world.initial() * (1 + 0.1 * torch.randn(2, world.d, generator=random, dtype=torch.float64))
    samples = torch.stack([world.samples(client, 2, 1, 3)[0] for client in (0, 2)])
    stacked = world.gradients(models, torch.tensor([0, 2]), samples)
    plain = torch.stack(
        [world.gradient(models[row], client, samples[row]) for row, client in ((0, 0), (1, 2))]
    )
    assert (stacked - plain).norm() < 1e-10 * plain.norm()


# -- keys ------------------------------------------------------------------------------------------


def slow_crop(image: Tensor, variant: int) -> Tensor:
    place, flipped = divmod(variant, 2)
    top, left = divmod(place, 9)
    wide = np.zeros((image.shape[0], image.shape[1] + 8, image.shape[2] + 8), np.uint8)
    wide[:, 4:-4, 4:-4] = image.numpy()
    cut = wide[:, top : top + image.shape[1], left : left + image.shape[2]]
    return torch.from_numpy((cut[:, :, ::-1] if flipped else cut).copy())


def test_cropping_and_flipping_against_a_slow_loop() -> None:
    images = torch.from_numpy(np.random.default_rng(0).integers(0, 256, (VARIANTS, 3, 6, 8), np.uint8))
    found = crop_and_flip(images, torch.arange(VARIANTS))
    assert found.dtype == torch.uint8
    for variant in range(VARIANTS):
        assert torch.equal(found[variant], slow_crop(images[variant], variant))
    assert torch.equal(crop_and_flip(images[:1], torch.tensor([2 * (9 * 4 + 4)])), images[:1])


def test_the_mini_batches_are_those_of_the_plain_world() -> None:
    keyed, plain = colour_world("afl_cnn", augment=True), colour_world("afl_cnn")
    assert type(keyed) is KeyedWorld and type(plain) is SupervisedWorld
    samples = keyed.samples(1, 5, 4, 6)
    assert torch.equal(samples[..., 0], plain.samples(1, 5, 4, 6))
    assert samples[..., 1].unique().numel() == 24
    assert torch.equal(keyed.samples(1, 5, 2, 6), samples[:2])
    assert not torch.equal(keyed.samples(1, 6, 4, 6)[..., 1], samples[..., 1])
    assert keyed.kind != plain.kind


def test_a_keyed_gradient_is_that_of_the_cropped_images() -> None:
    keyed, plain = colour_world("afl_cnn", augment=True), colour_world("afl_cnn")
    [sample] = keyed.samples(0, 0, 1, 5)
    inputs, labels = keyed.batch(sample)
    images = torch.stack([slow_crop(colours().x_train[i], k % VARIANTS) for i, k in sample.tolist()])
    torch.testing.assert_close(inputs, plain.normalise(images))
    assert torch.equal(labels, colours().y_train[sample[:, 0]])


def test_evaluation_and_full_gradients_neither_crop_nor_drop() -> None:
    """They are those of a world without either; and a stochastic gradient is not."""
    keyed = colour_world("alahyane_cnn", augment=True)
    plain = colour_world({"name": "alahyane_cnn", "dropout": 0})
    model = keyed.initial()
    assert torch.equal(model, plain.initial())
    assert np.array_equal(keyed.evaluate(model).client_loss, plain.evaluate(model).client_loss)
    torch.testing.assert_close(keyed.full_gradient(model, 1), plain.full_gradient(model, 1))
    [keyed_sample], [sample] = keyed.samples(1, 0, 1, 4), plain.samples(1, 0, 1, 4)
    assert not torch.allclose(keyed.gradient(model, 1, keyed_sample), plain.gradient(model, 1, sample))


def test_augmentation_is_for_whole_images() -> None:
    with pytest.raises(ValueError, match="resize"):
        Problem.model_validate({"name": "cifar10", "resize": 16, "augment": True})


# -- CIFAR -----------------------------------------------------------------------------------------


def test_cifar_that_is_missing_says_where_it_was_looked_for(own: Path) -> None:
    with pytest.raises(DataMissingError, match=r"cifar-10-batches-py"):
        CIFAR10().load()
    with pytest.raises(DataMissingError, match=r"CIFAR100"):
        CIFAR100().load()


def test_a_damaged_cifar_file_is_never_unpickled(own: Path) -> None:
    folder = own / "cifar-100-python"
    folder.mkdir()
    for file in ("train", "test"):
        (folder / file).write_bytes(b"cos\nsystem\n(S'exit 1'\ntR.")
    with pytest.raises(DataDamagedError, match="cifar-100-python/train"):
        CIFAR100().load()


def test_cifar_files_are_read_in_order(own: Path) -> None:
    images = np.random.default_rng(0).integers(0, 256, (4, 3072), np.uint8)
    files = {}
    for file, rows in (("a", slice(0, 3)), ("b", slice(3, 4))):
        content = pickle.dumps({"data": images[rows], "labels": list(range(4))[rows]})
        (own / file).write_bytes(content)
        files[file] = hashlib.md5(content, usedforsecurity=False).hexdigest()
    x, y = cifar._load("CIFAR10", own, files, "labels")
    assert y.tolist() == [0, 1, 2, 3]
    assert x.shape == (4, 3, 32, 32)
    assert x[3, 1, 2, 5] == images[3, 1024 + 2 * 32 + 5]


def test_resizing_is_pillows() -> None:
    """Bilinear with antialiasing; Pillow computes with 8-bit weights and may be off by one."""
    image_module = pytest.importorskip("PIL.Image")
    images = torch.from_numpy(np.random.default_rng(0).integers(0, 256, (5, 3, 32, 32), np.uint8))
    for image, found in zip(images, cifar.resized(images, 16), strict=True):
        small = image_module.fromarray(image.permute(1, 2, 0).numpy()).resize((16, 16), image_module.BILINEAR)
        difference = np.asarray(small).astype(int) - found.permute(1, 2, 0).numpy().astype(int)
        assert np.abs(difference).max() <= 1


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param(CIFAR10, marks=pytest.mark.data("cifar-10-batches-py")),
        pytest.param(CIFAR100, marks=pytest.mark.data("cifar-100-python")),
    ],
)
def test_the_real_cifar(kind: type[CIFAR10] | type[CIFAR100]) -> None:
    data = kind().load()
    assert data.x_train.shape == (50_000, 3, 32, 32) and data.x_test.shape == (10_000, 3, 32, 32)
    for y, size in ((data.y_train, 50_000), (data.y_test, 10_000)):
        assert torch.bincount(y).tolist() == [size // kind.classes] * kind.classes
    for channel, mean, std in zip(range(3), data.mean, data.std, strict=True):
        often = np.bincount(data.x_train[:, channel].flatten().numpy(), minlength=256) / (50_000 * 1024)
        found = often @ np.arange(256)
        assert found == pytest.approx(mean, abs=255 * 5e-5)
        assert (often @ (np.arange(256) - found) ** 2) ** 0.5 == pytest.approx(std, abs=255 * 5e-5)


# -- Shakespeare -----------------------------------------------------------------------------------

PLAY = """<ACT_1>
<ROMEO>
\t<DIALOGUE>
\tAy  me!
\tsad é hours
\t</DIALOGUE>
<DIRECTION>
Exit.
</DIRECTION>
\t<DIALOGUE>
\tseem long.
\t</DIALOGUE>
</ROMEO>
<MRS. PAGE>
\t<DIALOGUE>
\tlost
</MRS. PAGE>
<NURSE>
\t<DIALOGUE>
\tMadam!
\t</DIALOGUE>
</NURSE>
</ACT_1>
"""


def test_speeches_have_a_role_and_their_words_alone() -> None:
    """Directions and foreign letters are left out, blanks single; a speech without its end is skipped."""
    assert shakespeare.speeches(PLAY) == [("ROMEO", "Ay me! sad hours seem long."), ("NURSE", "Madam!")]


def test_the_longest_roles_are_chosen() -> None:
    texts = {("a", "X"): "12", ("a", "Y"): "1234", ("b", "X"): "56", ("b", "Z"): "1"}
    assert shakespeare.largest(texts, 3) == ["1234", "12", "56"]
    with pytest.raises(InvalidProblemError, match="4 roles"):
        shakespeare.largest(texts, 5)


def test_windows_read_80_characters_and_guess_the_next() -> None:
    text = (ALPHABET * 3)[:200]
    found = shakespeare.windows(text, 40)
    assert found.shape == (3, 81)  # beginning at 0, 40, 80: the one at 120 would need a character 200
    for row, start in enumerate((0, 40, 80)):
        assert "".join(ALPHABET[i] for i in found[row].tolist()) == text[start : start + 81]
    assert shakespeare.windows("too short", 80).shape == (0, 81)
    assert len(ALPHABET) == len(set(ALPHABET)) == 80


def test_clients_are_tested_on_their_own_text() -> None:
    world = Letters(dtype="float64").world(0)
    evaluation = world.evaluate(world.initial())
    logits = world.at(world.initial())(letters().x_test.double())
    right = (logits.argmax(1) == letters().y_test).double()
    for client in range(3):
        own = letters().owner_test == client
        assert evaluation.client_metrics["test/accuracy"][client] == pytest.approx(right[own].mean().item())
    assert evaluation.metrics["test/accuracy"] == pytest.approx(right.mean().item())


def test_plays_that_are_missing_or_too_few(own: Path) -> None:
    with pytest.raises(DataMissingError, match="plays"):
        Shakespeare().load()
    (own / "shakespeare/plays").mkdir(parents=True)
    (own / "shakespeare/plays/one.txt").write_text(PLAY)
    with pytest.raises(DataDamagedError, match="37"):
        Shakespeare().load()
    for number in range(36):
        (own / f"shakespeare/plays/{number}.txt").write_bytes(b"\xff")
    with pytest.raises(DataDamagedError, match=r"plays/0\.txt"):
        Shakespeare().load()


@pytest.mark.data("shakespeare/plays")
def test_the_real_shakespeare() -> None:
    problem = Shakespeare()
    data = problem.load()
    assert data.owner_train is not None and data.owner_test is not None
    assert len(data.y_train) == problem.samples
    assert len(shakespeare.roles(Path(os.environ["ASYNCFL_DATA"]) / "shakespeare/plays")) == 1314
    train, test = (torch.bincount(owner, minlength=143) for owner in (data.owner_train, data.owner_test))
    assert test.min() > 0
    # 80 % of the text; a part loses less than two windows to its end.
    assert ((train - 0.8 * (train + test)).abs() <= 2).all()
    parts = problem.partition.divide(data, 143, 0)
    assert [len(part) for part in parts] == train.tolist()


# -- newsgroups ------------------------------------------------------------------------------------


def test_words_are_counted_where_they_are_hashed_to() -> None:
    counts = newsgroups.hashed(["Apple apple pear", "pear " * 300, "the and of"])
    assert counts.shape == (3, 4096) and counts.dtype == torch.uint8
    assert sorted(counts[0][counts[0] > 0].tolist()) == [1, 2]
    assert counts[1].max() == 255
    assert counts[1].argmax() == (counts[0] == 1).int().argmax()
    assert counts[2].sum() == 0


def test_posts_that_are_missing_or_too_few(own: Path) -> None:
    with pytest.raises(DataMissingError, match="20news-bydate-train"):
        Newsgroups().load()
    for half in newsgroups.HALVES:
        (own / "20news" / half / "sci.space").mkdir(parents=True)
    with pytest.raises(DataDamagedError, match="11314"):
        Newsgroups().load()


@pytest.mark.slow
@pytest.mark.data("20news")
def test_the_real_newsgroups_learn() -> None:
    """A linear model on hashed words, all data: within reach of scikit-learn's own on the same inputs."""
    from sklearn.linear_model import LogisticRegression

    problem = Newsgroups(clients=2, partition=Partition.model_validate("iid"))
    data = problem.load()
    assert (len(data.y_train), len(data.y_test)) == (11_314, 7_532)
    inputs = [
        torch.nn.functional.normalize(torch.log1p(x.float())).numpy() for x in (data.x_train, data.x_test)
    ]
    reference = LogisticRegression(C=10, max_iter=200).fit(inputs[0], data.y_train.numpy())
    score = reference.score(inputs[1], data.y_test.numpy())
    assert problem.pooled(0)["test/accuracy"] == pytest.approx(score, abs=0.03)
