"""Partitions against plain re-implementations of their rules, and against the laws that these imply.

The re-implementations take their random numbers from the streams that the partitions name, and write the rule
out client by client.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats

from fl_core.problems.partitions import (
    IID,
    ClassDirichlet,
    ClassesPerClient,
    ClientDirichlet,
    CyclicLabels,
    DisjointLabels,
    FraboniDirichlet,
    Partition,
    PClass,
    SharedTypes,
)
from fl_core.problems.problem import InvalidProblemError
from fl_core.streams import stream

TINY = 1e-3  # a right law fails with this probability; seeds are fixed, so that it does not


def shuffled(sizes: Sequence[int]) -> np.ndarray:
    """So many labels of each class, shuffled."""
    return np.random.default_rng(5).permutation(np.repeat(np.arange(len(sizes)), sizes))


def counted(labels: np.ndarray, parts: Sequence[np.ndarray]) -> list[list[int]]:
    """How many of each label each client holds [clients][classes]."""
    return [np.bincount(labels[part], minlength=labels.max() + 1).tolist() for part in parts]


def assert_law(found: Sequence[int], pmf: Callable[[np.ndarray], np.ndarray], most: int) -> None:
    """χ² of counts 0 … most against their probabilities; rare outcomes are put together."""
    expected = pmf(np.arange(most + 1)) * len(found)
    observed = np.bincount(found, minlength=most + 1)
    rare = expected < 5
    expected = np.append(expected[~rare], expected[rare].sum())
    observed = np.append(observed[~rare], observed[rare].sum())
    if expected[-1] < 5:
        expected, observed = [np.append(each[:-2], each[-2:].sum()) for each in (expected, observed)]
    assert len(expected) > 3
    assert stats.chisquare(observed, expected * len(found) / expected.sum()).pvalue > TINY


# -- random shares ---------------------------------------------------------------------------------


def test_iid_is_drawing_without_replacement() -> None:
    """How many of one class a client holds is hypergeometric; the first clients have one data point more."""
    labels = shuffled([60, 90, 53])
    splits = [IID().split(labels, 7, seed) for seed in range(1000)]
    assert [len(part) for part in splits[0]] == [29] * 7
    assert [len(part) for part in IID().split(labels[:-3], 7, 0)] == [29] * 4 + [28] * 3
    for client in (0, 6):
        found = [int(np.sum(labels[parts[client]] == 0)) for parts in splits]
        assert_law(found, stats.hypergeom(203, 60, 29).pmf, 29)


SIZES = [32, 18, 42, 28]


def class_dirichlet(clients: int, alpha: float, balance: bool, min_size: int, seed: int) -> list[list[int]]:
    """How many data points of each class each client holds; empty if a thousand attempts fail."""
    for attempt in range(1000):
        random = stream(seed, "partition", attempt)
        held: list[list[int]] = [[] for _ in range(clients)]
        for size in SIZES:
            share = random.dirichlet([alpha] * clients)
            for client in range(clients):
                if balance and sum(held[client]) >= sum(SIZES) / clients:
                    share[client] = 0
            if share.sum() == 0:
                break
            ends = [0, *(round(end) for end in size * np.cumsum(share) / share.sum())]
            for client in range(clients):
                held[client].append(ends[client + 1] - ends[client])
        if all(len(own) == len(SIZES) and sum(own) >= min_size for own in held):
            return held
    return []


@pytest.mark.parametrize("min_size", [0, 3])
@pytest.mark.parametrize("balance", [False, True])
@pytest.mark.parametrize("alpha", [0.2, 1.0, 50.0])
@pytest.mark.parametrize("clients", [2, 5, 8])
def test_class_dirichlet_by_a_plain_loop(clients: int, alpha: float, balance: bool, min_size: int) -> None:
    """Class after class: q ~ Dir(α·1_n), cut at the cumulated shares; until all have enough.

    With `balance` whoever has N/n data points gets no more; now and then that is met to the point.
    """
    for seed in range(5):
        held = class_dirichlet(clients, alpha, balance, min_size, seed)
        partition = ClassDirichlet(alpha=alpha, balance=balance, min_size=min_size)
        if held:
            labels = shuffled(SIZES)
            assert counted(labels, partition.split(labels, clients, seed)) == held
        else:
            with pytest.raises(InvalidProblemError):
                partition.split(shuffled(SIZES), clients, seed)


def test_client_dirichlet_is_beta_binomial() -> None:
    """n draws from q ~ Dir(α p) are BetaBin(n, αp_k, α(1−p_k)) of class k, as long as no class runs short.

    For the first client none does: each class has more than its twenty data points.
    """
    labels, alpha, clients = shuffled([40, 60, 100]), 2.0, 10
    splits = [ClientDirichlet(alpha=alpha).split(labels, clients, seed) for seed in range(800)]
    for label, share in enumerate((0.2, 0.3, 0.5)):
        law = stats.betabinom(20, alpha * share, alpha * (1 - share))
        assert_law([int(np.sum(labels[parts[0]] == label)) for parts in splits], law.pmf, 20)


@given(st.sampled_from([0.1, 1.0, 10_000.0]), st.integers(1, 8), st.integers(0, 20))
def test_fraboni_by_a_plain_loop(alpha: float, clients: int, seed: int) -> None:
    """Client after client: q ~ Dir(α·1_C), ⌊q_c n⌋ draws with replacement of class c; the last fills up."""
    labels = shuffled([31, 17, 40, 25])
    expected = []
    for client in range(clients):
        random, n = stream(seed, "partition", client), len(labels) // clients
        counts = [int(share * n) for share in random.dirichlet([alpha] * 4)]
        counts[3] = n - sum(counts[:3])
        own: list[int] = []
        for label, count in enumerate(counts):
            own += random.choice([i for i, found in enumerate(labels) if found == label], count).tolist()
        expected.append(sorted(own))
    parts = FraboniDirichlet(alpha=alpha).split(labels, clients, seed)
    assert [part.tolist() for part in parts] == expected


# -- so many classes a client ----------------------------------------------------------------------


def test_classes_are_chosen_at_random() -> None:
    """The first client holds each pair of four classes alike, and the second the two that are left."""
    labels = shuffled([20] * 4)
    pairs: Counter[Any] = Counter()
    for seed in range(600):
        first, second = (set(labels[part]) for part in ClassesPerClient(classes=2).split(labels, 2, seed))
        assert first | second == {0, 1, 2, 3}
        pairs[tuple(sorted(first))] += 1
    assert set(pairs) == set(combinations(range(4), 2))
    assert stats.chisquare(list(pairs.values())).pvalue > TINY


@given(
    st.lists(st.integers(3, 30), min_size=2, max_size=6),
    st.integers(1, 4),
    st.integers(1, 8),
    st.integers(0, 20),
)
def test_p_class_by_a_plain_loop(sizes: list[int], p: int, clients: int, seed: int) -> None:
    """Everything but the choice among the classes that qualify is determined, to the single data point."""
    labels = shuffled(sizes)
    partition = PClass(p=p)
    try:
        parts = partition.split(labels, clients, seed)
    except InvalidProblemError:
        assume(False)
    s = min(sizes) - 1
    r = len(sizes) * s // (clients * p)
    pools = [[i for i, label in enumerate(labels) if label == wanted][:s] for wanted in range(len(sizes))]
    for part in parts:
        qualify = [label for label, pool in enumerate(pools) if len(pool) > r]
        chosen = sorted(set(labels[part])) if len(qualify) >= p else qualify
        assert set(chosen) <= set(qualify)
        assert len(chosen) == min(p, len(qualify))
        own: list[int] = []
        for label in [*chosen, *[None] * (p - len(chosen))]:
            pool = pools[label] if label is not None else max(pools, key=len)  # the first of equals
            own += pool[-r:]
            del pool[-r:]
        assert part.tolist() == sorted(own)


def test_p_class_chooses_at_random() -> None:
    """The first client holds each pair of four classes alike."""
    labels = shuffled([21] * 4)
    pairs = Counter(tuple(sorted(set(labels[PClass(p=2).split(labels, 5, seed)[0]]))) for seed in range(600))
    assert set(pairs) == set(combinations(range(4), 2))
    assert stats.chisquare(list(pairs.values())).pvalue > TINY


@pytest.mark.parametrize(
    ("partition", "sizes", "clients", "expected"),
    [
        # Each label has two holders; of the scarcest, 7, each can have 3.
        (CyclicLabels(labels=2), [10, 7, 12], 3, [[3, 3, 0], [3, 0, 3], [0, 3, 3]]),
        # The fourth client holds labels 0 and 1 again: three holders share 7, so 2 each.
        (CyclicLabels(labels=2), [10, 7, 12], 4, [[2, 2, 0], [2, 0, 2], [0, 2, 2], [2, 2, 0]]),
        (DisjointLabels(), [4, 3, 2, 5, 6], 3, [[4, 3, 0, 0, 0], [0, 0, 2, 5, 0], [0, 0, 0, 0, 6]]),
        (ClassesPerClient(classes=3), [7, 5, 4], 2, None),
    ],
    ids=lambda value: getattr(value, "name", None),
)
def test_label_counts_by_hand(
    partition: Partition, sizes: list[int], clients: int, expected: list[list[int]] | None
) -> None:
    """Unequal classes; where a class does not divide evenly, holders differ by one."""
    labels = shuffled(sizes)
    found = counted(labels, partition.split(labels, clients, 3))
    if expected is not None:
        assert found == expected
    else:
        assert [sorted(own) for own in zip(*found, strict=True)] == [[3, 4], [2, 3], [2, 2]]


def test_shared_types_deal_each_type_at_random() -> None:
    """Types hold labels {0, 1, 2} and {3, 4}; of a type's data its two clients hold hypergeometric shares."""
    labels = shuffled([20, 30, 10, 25, 15])
    splits = [SharedTypes(types=2).split(labels, 4, seed) for seed in range(800)]
    assert [len(part) for part in splits[0]] == [30, 20, 30, 20]
    for parts in splits:
        assert [set(labels[part]) <= kind for part, kind in zip(parts, [{0, 1, 2}, {3, 4}] * 2, strict=True)]
    assert_law([int(np.sum(labels[parts[2]] == 0)) for parts in splits], stats.hypergeom(60, 20, 30).pmf, 30)
    assert_law([int(np.sum(labels[parts[1]] == 3)) for parts in splits], stats.hypergeom(40, 25, 20).pmf, 20)
