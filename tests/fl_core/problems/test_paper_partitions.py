"""The partitions of the papers, against their rules worked by hand."""

from collections import Counter

import numpy as np
import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st

from fl_core.problems.data.data import Data
from fl_core.problems.partitions import (
    CyclicLabels,
    DisjointLabels,
    FraboniDirichlet,
    Natural,
    Partition,
    PClass,
    SharedTypes,
)
from fl_core.problems.problem import InvalidProblemError, Problem


def balanced(classes: int, size: int) -> np.ndarray:
    return np.random.default_rng(0).permutation(np.repeat(np.arange(classes), size))


def held(labels: np.ndarray, parts: list[np.ndarray]) -> list[dict[int, int]]:
    """How often each client holds each label."""
    return [dict(sorted(Counter(labels[part].tolist()).items())) for part in parts]


# -- Fraboni ---------------------------------------------------------------------------------------


def test_fraboni_rounds_down_and_gives_the_last_class_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    """q = (.26, .37, .37) of n = 10: 2, 3 and, with what is left, 5."""

    class Fixed:
        def dirichlet(self, alpha: np.ndarray) -> np.ndarray:
            assert alpha.tolist() == [0.3] * 3
            return np.array([0.26, 0.37, 0.37])

    counts = FraboniDirichlet(alpha=0.3)._counts(3, 10, 0, Fixed())  # type: ignore[arg-type]
    assert counts.tolist() == [2, 3, 5]


def test_fraboni_samples_with_replacement_from_everybody() -> None:
    """10 points a class, a client that wants 60 of its one class must repeat; others hold the same points."""
    labels = balanced(2, 30)
    parts = FraboniDirichlet(alpha=0).split(labels, 1, 0)
    assert len(parts[0]) == 60
    assert len(set(parts[0].tolist())) <= 30
    first, _, third = FraboniDirichlet(alpha=0).split(labels, 3, 0)
    assert set(first.tolist()) & set(third.tolist())
    # Of 30 points 20 draws with replacement find 30 (1 − (29/30)^20) = 14.8 different ones, sd 1.6.
    assert 8 <= len(set(first.tolist())) <= 20


def test_fraboni_without_alpha_gives_one_class_each() -> None:
    labels = balanced(4, 10)
    parts = FraboniDirichlet(alpha=0).split(labels, 6, 0)
    assert held(labels, parts) == [{client % 4: 6} for client in range(6)]


# -- Anarchic FL -----------------------------------------------------------------------------------


def test_p_class_fills_up_with_the_largest() -> None:
    """Two classes of s = 4, M = 2, p = 2, r = 2: the first client takes 2 of each; then none has more than 2
    left, and the second gets the largest, 0 of equals, and then 1."""
    labels = np.repeat([0, 1], 5)
    parts = PClass(p=2).split(labels, 2, 0)
    assert [part.tolist() for part in parts] == [[2, 3, 7, 8], [0, 1, 5, 6]]


# -- fixed labels ----------------------------------------------------------------------------------


def test_cyclic_labels_by_hand() -> None:
    """5 clients of 3 of 10 labels: labels 0 … 4 have two holders, and so all get half a class."""
    labels = balanced(10, 40)
    parts = CyclicLabels(labels=3).split(labels, 5, 0)
    chosen = [{0, 1, 2}, {3, 4, 5}, {6, 7, 8}, {0, 1, 9}, {2, 3, 4}]
    assert held(labels, parts) == [dict.fromkeys(sorted(own), 20) for own in chosen]


def test_cyclic_labels_of_the_paper_use_all_data() -> None:
    """n = 20: 3 of 10 labels are 6 holders each; 5 of 100 labels are one holder each."""
    for classes, per_client, size in ((10, 3, 60), (100, 5, 7)):
        labels = balanced(classes, size)
        parts = CyclicLabels(labels=per_client).split(labels, 20, 0)
        assert {len(part) for part in parts} == {classes * size // 20}
        assert sorted(np.concatenate(parts).tolist()) == list(range(classes * size))


@given(st.integers(1, 12), st.integers(0, 3))
def test_disjoint_labels_share_none(clients: int, seed: int) -> None:
    labels = balanced(12, 5)
    own = [set(counts) for counts in held(labels, DisjointLabels().split(labels, clients, seed))]
    assert sum(map(len, own)) == 12
    assert set.union(*own) == set(range(12))


@given(st.integers(1, 5), st.integers(1, 14), st.integers(0, 3))
def test_clients_of_a_type_share_a_distribution_and_no_other_has_it(
    types: int, clients: int, seed: int
) -> None:
    assume(types <= clients)
    labels = balanced(7, 300)
    parts = SharedTypes(types=types).split(labels, clients, seed)
    assert sorted(np.concatenate(parts).tolist()) == list(range(2100))
    own = [set(labels[part].tolist()) for part in parts]
    for i in range(clients):
        assert own[i] == own[i % types]
        for j in range(min(i, types)):
            assert (own[i] == own[j]) == (i % types == j)
    for kind in range(types):
        sizes = [len(part) for part in parts[kind::types]]
        assert max(sizes) - min(sizes) <= 1


# -- all -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("partition", "clients", "sentence"),
    [
        (PClass(p=11), 5, "p = 11 classes a client, but there are only 10"),
        (PClass(p=10), 50, "50 clients of 10 classes each: 100 data points are too few"),
        (CyclicLabels(labels=11), 5, "11 labels a client, but there are only 10"),
        (DisjointLabels(), 11, "11 clients cannot hold disjoint labels: there are only 10"),
        (SharedTypes(types=6), 5, "6 types, but there are only 10 classes and 5 clients"),
        (Natural(), 5, "labels alone do not say"),
    ],
)
def test_what_cannot_be_is_refused_in_one_sentence(partition: Partition, clients: int, sentence: str) -> None:
    with pytest.raises(InvalidProblemError, match=sentence):
        partition.split(balanced(10, 10), clients, 0)


def test_natural_gives_each_owner_its_own() -> None:
    x, y = torch.zeros(5, 1, dtype=torch.uint8), torch.zeros(5, dtype=torch.int64)
    owner = torch.tensor([1, 0, 1, 2, 0])
    data = Data(x, y, x, y, 1, owner_train=owner, owner_test=owner)
    assert [part.tolist() for part in Natural().divide(data, 3, 0)] == [[1, 4], [0, 2], [3]]
    with pytest.raises(InvalidProblemError, match="3 owners, and there are 2 clients"):
        Natural().divide(data, 2, 0)
    assert data.fingerprint != Data(x, y, x, y, 1).fingerprint


def test_natural_is_refused_before_data_are_loaded() -> None:
    with pytest.raises(ValueError, match="partition natural needs data with owners, and digits has none"):
        Problem.model_validate({"name": "digits", "partition": "natural"})
