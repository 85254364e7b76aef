"""Where data are looked for, and what is said when files are missing or damaged."""

import gzip
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from fl_core.problems import mnist
from fl_core.problems.data.data import stratified
from fl_core.problems.data.files import DataDamagedError, DataMissingError, data_dir, places
from fl_core.problems.digits import Digits
from fl_core.problems.mnist import KMNIST, MNIST, FashionMNIST, KMNIST10k

REAL = data_dir() or Path(os.devnull)
KMNIST_RAW = REAL / "KMNIST/raw"
needs_kmnist = pytest.mark.data("KMNIST/raw")


def write(folder: Path, half: tuple[str, str], images: np.ndarray, labels: np.ndarray) -> None:
    """Files as their authors publish them, but without compression."""
    folder.mkdir(parents=True, exist_ok=True)
    for file, array in zip(half, (images, labels), strict=True):
        header = bytes([0, 0, 8, array.ndim]) + b"".join(n.to_bytes(4, "big") for n in array.shape)
        (folder / file).write_bytes(header + array.astype(np.uint8).tobytes())


def test_the_data_folder_comes_before_the_cache(own: Path) -> None:
    assert places() == [own, own.parent / "cache" / "asyncfl-bench"]


def test_missing_files_are_named_with_the_places_and_the_remedy(own: Path) -> None:
    with pytest.raises(DataMissingError) as missing:
        MNIST().load()
    said = str(missing.value)
    for part in (
        *mnist.TRAIN,
        str(own / "MNIST/raw"),
        str(own.parent / "cache"),
        "ASYNCFL_DATA",
        "no network",
    ):
        assert part in said
    assert "\n" not in said


def test_half_of_kmnist_is_not_kmnist_but_the_way_out_is_named(own: Path) -> None:
    write(own / "KMNIST/raw", mnist.TEST, np.zeros((10, 28, 28)), np.arange(10))
    way_out = "kmnist10k needs only the 10,000 test images, which are there"
    with pytest.raises(DataMissingError, match=way_out):
        KMNIST().load()


def test_kmnist_is_read_where_a_user_has_the_training_files(
    own: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The unpacked training files have no known checksum; images and labels come through as written."""
    random = np.random.default_rng(0)
    images, labels = random.integers(0, 256, (20, 28, 28)), random.integers(0, 10, 20)
    for half in (mnist.TRAIN, mnist.TEST):
        write(own / "KMNIST/raw", half, images, labels)
    for file in mnist.TEST:
        monkeypatch.setitem(mnist.MD5["KMNIST"], file, ("", None))
    data = KMNIST().load()
    assert torch.equal(data.x_train, torch.from_numpy(images).to(torch.uint8)[:, None])
    assert torch.equal(data.y_test, torch.from_numpy(labels))


@pytest.mark.parametrize(
    ("images", "labels", "sentence"),
    [((20, 28, 27), 20, "do not match"), ((20, 28, 28), 19, "do not match")],
)
def test_files_of_the_wrong_shape_are_damaged(
    own: Path, images: tuple[int, ...], labels: int, sentence: str
) -> None:
    write(own / "KMNIST/raw", mnist.TRAIN, np.zeros(images), np.zeros(labels))
    with pytest.raises(DataDamagedError, match=sentence):
        mnist.load_half("KMNIST", mnist.TRAIN, own / "KMNIST/raw")


@pytest.mark.parametrize("length", [0, 3, 10, 16, 5000])
def test_a_file_cut_short_is_damaged(own: Path, length: int) -> None:
    write(own / "KMNIST/raw", mnist.TRAIN, np.zeros((20, 28, 28)), np.zeros(20))
    images = own / "KMNIST/raw" / mnist.TRAIN[0]
    images.write_bytes(images.read_bytes()[:length])
    with pytest.raises(DataDamagedError, match="not a complete idx file") as damaged:
        mnist.load_half("KMNIST", mnist.TRAIN, own / "KMNIST/raw")
    assert str(images) in str(damaged.value)


def flip(path: Path) -> None:
    path.chmod(0o644)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def drop_packed(folder: Path) -> None:
    for file in folder.glob("*.gz"):
        file.unlink()


def drop_unpacked(folder: Path) -> None:
    for file in mnist.TEST:
        (folder / file).unlink()


@needs_kmnist
@pytest.mark.parametrize(
    ("damage", "file"),
    [
        (lambda folder: flip(folder / mnist.TEST[1]), mnist.TEST[1]),
        (lambda folder: flip(folder / f"{mnist.TEST[1]}.gz"), f"{mnist.TEST[1]}.gz"),
        (lambda folder: (drop_packed(folder), flip(folder / mnist.TEST[0])), mnist.TEST[0]),
    ],
)
def test_one_flipped_bit_is_found(own: Path, damage: Callable[[Path], None], file: str) -> None:
    shutil.copytree(KMNIST_RAW, own / "KMNIST/raw", ignore=shutil.ignore_patterns("train*"))
    damage(own / "KMNIST/raw")
    with pytest.raises(DataDamagedError) as damaged:
        KMNIST10k().load()
    assert f"{own / 'KMNIST/raw' / file} is damaged: its MD5 is" in str(damaged.value)
    assert "\n" not in str(damaged.value)


@needs_kmnist
@pytest.mark.parametrize("drop", [drop_packed, drop_unpacked])
def test_packed_or_unpacked_files_are_enough(own: Path, drop: Callable[[Path], None]) -> None:
    shutil.copytree(KMNIST_RAW, own / "KMNIST/raw", ignore=shutil.ignore_patterns("train*"))
    whole = mnist.load_half("KMNIST", mnist.TEST, own / "KMNIST/raw")
    drop(own / "KMNIST/raw")
    assert all(map(torch.equal, mnist.load_half("KMNIST", mnist.TEST, own / "KMNIST/raw"), whole))


@pytest.mark.parametrize(
    ("problem", "folder"),
    [
        pytest.param(MNIST, "MNIST", marks=pytest.mark.data("MNIST/raw")),
        pytest.param(FashionMNIST, "FashionMNIST", marks=pytest.mark.data("FashionMNIST/raw")),
    ],
)
def test_images_are_torchvisions(problem: type[MNIST] | type[FashionMNIST], folder: str) -> None:
    """Same images and labels as torchvision reads; the constants of normalisation are those of the data."""
    from fl_core.torchvision_repair import repair

    repair()
    from torchvision import datasets

    data = problem().load()
    for train, x, y in ((True, data.x_train, data.y_train), (False, data.x_test, data.y_test)):
        theirs = getattr(datasets, folder)(str(REAL), train=train)
        assert torch.equal(x[:, 0], theirs.data)
        assert torch.equal(y, theirs.targets)
    pixels = data.x_train.float()
    assert data.mean[0] == pytest.approx(float(pixels.mean()), abs=255 * 5e-5)
    assert data.std[0] == pytest.approx(float(pixels.std()), abs=255 * 5e-5)
    assert data is problem().load()


@needs_kmnist
def test_kmnist10k_is_normalised_by_its_own_training_images() -> None:
    """Mean and standard deviation of all their pixels, counted by value, to the four digits given."""
    data = KMNIST10k().load()
    share = torch.bincount(data.x_train.flatten(), minlength=256).double() / data.x_train.numel()
    values = torch.arange(256).double() / 255
    mean = float(share @ values)
    std = float(share @ (values - mean) ** 2) ** 0.5
    assert (data.mean[0] / 255, data.std[0] / 255) == pytest.approx((mean, std), abs=0.5e-4)


@needs_kmnist
def test_kmnist10k_splits_each_class_alike() -> None:
    data = KMNIST10k().load()
    assert data.x_train.shape == (8000, 1, 28, 28)
    assert torch.bincount(data.y_test).tolist() == [200] * 10
    whole = gzip.decompress((KMNIST_RAW / f"{mnist.TEST[0]}.gz").read_bytes())[16:]
    pixels = data.x_train.sum(dtype=torch.int64) + data.x_test.sum(dtype=torch.int64)
    assert int(pixels) == int(np.frombuffer(whole, np.uint8).sum(dtype=np.int64))


def test_digits_are_split_by_class_and_complete() -> None:
    from sklearn.datasets import load_digits

    data, bundle = Digits().load(), load_digits()
    assert len(data.y_train) == Digits.samples
    share = np.bincount(data.y_test.numpy()) / np.bincount(bundle.target)
    assert share.min() > 0.19 and share.max() < 0.21
    ours = torch.cat([data.x_train, data.x_test]).flatten(1).tolist()
    assert sorted(ours) == sorted(bundle.data.astype(int).tolist())
    pixels = data.x_train.float()
    assert data.mean[0] == pytest.approx(float(pixels.mean()), abs=1e-4)
    assert data.std[0] == pytest.approx(float(pixels.std()), abs=1e-4)


def test_the_split_never_moves() -> None:
    """Recorded: a change would make all published numbers on digits incomparable."""
    assert Digits().load().fingerprint == "f97f724458bd5ace"


def test_stratified_keeps_order_and_shares() -> None:
    y = torch.tensor([0] * 10 + [1] * 5 + [3] * 2)
    x = torch.arange(len(y))
    x_train, y_train, x_test, y_test = stratified(x, y, 0.2, "test")
    assert torch.bincount(y_test).tolist() == [2, 1]
    assert x_train.tolist() == sorted(x_train.tolist())
    assert sorted([*x_train.tolist(), *x_test.tolist()]) == x.tolist()
    assert torch.equal(y[x_train], y_train)


@pytest.mark.parametrize("complete", [True, False])
def test_a_download_arrives_whole_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, complete: bool
) -> None:
    from fl_core.torchvision_repair import repair

    repair()
    from torchvision import datasets

    def torchvisions(root: str, download: bool) -> None:
        write(Path(root) / "KMNIST/raw", mnist.TRAIN, np.ones((20, 28, 28)), np.ones(20))
        if not complete:
            raise RuntimeError("Error downloading:\nthe line went dead")

    monkeypatch.setattr(datasets, "KMNIST", torchvisions)
    own = tmp_path / "own"
    monkeypatch.setenv("ASYNCFL_DATA", str(own))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    if complete:
        images, labels = mnist.load_half("KMNIST", mnist.TRAIN, mnist.folder("KMNIST", mnist.TRAIN))
        assert images.shape == (20, 1, 28, 28) and bool(labels.all())
        assert sorted(p.name for p in (own / "KMNIST/raw").iterdir()) == sorted(mnist.TRAIN)
    else:
        with pytest.raises(DataMissingError, match="the line went dead"):
            mnist.folder("KMNIST", mnist.TRAIN)
    assert [p.name for p in own.iterdir()] == (["KMNIST"] if complete else [])
