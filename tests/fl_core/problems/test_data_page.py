"""docs/data.md: every problem with data has its rows, and the data have the printed fingerprints."""

import re
from pathlib import Path

import pytest

from fl_core.problems.problem import Problem
from fl_core.problems.supervised import Modelled

PAGE = (Path(__file__).parents[3] / "docs" / "data.md").read_text(encoding="utf-8")
WITHOUT_DATA = {"quadratic", "linear_regression", "own", "flower"}  # drawn at random, or the user's
FOLDERS = {
    "mnist": "MNIST/raw",
    "fashion_mnist": "FashionMNIST/raw",
    "kmnist10k": "KMNIST/raw",
    "cifar10": "cifar-10-batches-py",
    "cifar100": "cifar-100-python",
    "cifar10_features": "features/cifar10_features.npz",
    "cifar100_features": "features/cifar100_features.npz",
    "newsgroups": "20news",
    "shakespeare": "shakespeare/plays",
    "shakespeare_lm": "shakespeare/tinyshakespeare.txt",
}
FINGERPRINTS = dict(re.findall(r"^\| `(\w+)` \| `([0-9a-f]{16})` \|", PAGE, re.MULTILINE))


def test_every_problem_with_data_has_a_source_and_a_digest() -> None:
    problems = set(Problem.members()) - WITHOUT_DATA
    source, _, digests = PAGE.partition("## What is changed")
    assert all(f"`{name}`" in source for name in Problem.members())
    assert {name for name in problems if f"\n| `{name}` |" in digests} == problems
    assert set(FINGERPRINTS) == problems - {"kmnist"}


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.data(FOLDERS[name])) if name in FOLDERS else name
        for name in FINGERPRINTS
    ],
)
def test_data_have_the_printed_fingerprint(name: str) -> None:
    problem = Problem.members()[name]()
    assert isinstance(problem, Modelled) and problem.load().fingerprint == FINGERPRINTS[name]
