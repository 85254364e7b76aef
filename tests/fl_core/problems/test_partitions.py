"""Partitions: what all promise, plain re-implementations of their rules, and the laws that these imply.

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
import torch
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats

from fl_core.problems.data.data import Data
from fl_core.problems.partitions import (
    IID,
    ClassDirichlet,
    ClassesPerClient,
    ClientDirichlet,
    CyclicLabels,
    DisjointLabels,
    FraboniDirichlet,
    Natural,
    Partition,
    PClass,
    SharedTypes,
    _draw,
    check,
)
from fl_core.problems.problem import InvalidProblemError, Problem
from fl_core.streams import stream

alphas = st.sampled_from([1e-3, 0.05, 0.3, 1.0, 10.0, 1e4])
partitions = st.one_of(
    st.just(IID()),
    st.builds(ClassDirichlet, alpha=alphas, balance=st.booleans(), min_size=st.integers(0, 3)),
    st.builds(ClientDirichlet, alpha=alphas),
    st.builds(ClassesPerClient, classes=st.integers(1, 4)),
)
label_lists = st.lists(st.integers(0, 5), min_size=1, max_size=200).map(np.array)


def tenfold(size: int = 100) -> np.ndarray:
    """Ten classes of `size`, shuffled."""
    return np.random.default_rng(0).permutation(np.repeat(np.arange(10), size))


@given(partitions, label_lists, st.integers(1, 12), st.integers(0, 3))
def test_every_data_point_has_one_client_and_nobody_is_empty_unasked(
    partition: Partition, labels: np.ndarray, clients: int, seed: int
) -> None:
    try:
        parts = partition.split(labels, clients, seed)
    except InvalidProblemError:
        return  # more clients than data can serve
    assert len(parts) == clients
    assert sorted(index for part in parts for index in part) == list(range(len(labels)))
    least = partition.min_size if isinstance(partition, ClassDirichlet) else 1
    assert min(len(part) for part in parts) >= least
    again = partition.split(labels, clients, seed)
    assert all(np.array_equal(one, other) for one, other in zip(parts, again, strict=True))


@given(st.integers(1, 300), st.integers(1, 40))
def test_iid_and_client_dirichlet_give_equal_sizes(samples: int, clients: int) -> None:
    assume(clients <= samples)
    labels = np.arange(samples) % 7
    for partition in (IID(), ClientDirichlet(alpha=0.1)):
        sizes = {len(part) for part in partition.split(labels, clients, 0)}
        assert max(sizes) - min(sizes) <= 1


@given(st.integers(1, 6), st.integers(2, 25), st.integers(0, 5))
def test_classes_per_client_means_exactly_so_many(held: int, clients: int, seed: int) -> None:
    """Also: each class has equally many holders up to one, who share it equally up to one data point."""
    assume(clients * held >= 10)
    labels = tenfold(60)
    parts = ClassesPerClient(classes=held).split(labels, clients, seed)
    assert all(len(np.unique(labels[part])) == held for part in parts)
    holders = Counter(label for part in parts for label in np.unique(labels[part]))
    assert max(holders.values()) - min(holders.values()) <= 1
    for label in range(10):
        shares = [np.sum(labels[part] == label) for part in parts]
        shares = [share for share in shares if share]
        assert max(shares) - min(shares) <= 1


def test_drawing_in_bulk_has_the_law_of_drawing_one_by_one() -> None:
    """Class counts of 4 draws without replacement from a mix, against the plain loop; chi-square, 0.1 %."""
    from scipy.stats import chi2_contingency

    mix, left, size, trials = np.array([0.6, 0.3, 0.1]), np.array([2, 2, 3]), 4, 4000
    random = np.random.default_rng(1)

    def one_by_one() -> tuple[int, ...]:
        counts = np.zeros(3, int)
        for _ in range(size):
            still = mix * (counts < left)
            counts[random.choice(3, p=still / still.sum())] += 1
        return tuple(counts)

    bulk = Counter(tuple(map(int, _draw(mix, left, size, random))) for _ in range(trials))
    plain = Counter(tuple(map(int, one_by_one())) for _ in range(trials))
    outcomes = sorted(bulk.keys() | plain.keys())
    table = [[bulk[o] for o in outcomes], [plain[o] for o in outcomes]]
    assert chi2_contingency(table).pvalue > 1e-3


def test_empty_clients_only_where_asked_for() -> None:
    parts = ClassDirichlet(alpha=1e-3, min_size=0).split(tenfold(10), 60, 0)
    assert min(len(part) for part in parts) == 0


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
@pytest.mark.parametrize("alpha", [0.2, 50.0])
@pytest.mark.parametrize("clients", [2, 8])
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


# -- the papers' own -------------------------------------------------------------------------------


def test_fraboni_without_alpha_gives_one_class_each() -> None:
    labels = shuffled([10] * 4)
    parts = FraboniDirichlet(alpha=0).split(labels, 6, 0)
    assert counted(labels, parts) == [
        [6 * (label == client % 4) for label in range(4)] for client in range(6)
    ]


def test_cyclic_labels_of_the_paper_use_all_data() -> None:
    """n = 20: 3 of 10 labels are 6 holders each; 5 of 100 labels are one holder each."""
    for classes, per_client, size in ((10, 3, 60), (100, 5, 7)):
        labels = shuffled([size] * classes)
        parts = CyclicLabels(labels=per_client).split(labels, 20, 0)
        assert {len(part) for part in parts} == {classes * size // 20}
        assert sorted(np.concatenate(parts).tolist()) == list(range(classes * size))


@given(st.integers(1, 12), st.integers(0, 3))
def test_disjoint_labels_share_none(clients: int, seed: int) -> None:
    labels = shuffled([5] * 12)
    own = [set(labels[part].tolist()) for part in DisjointLabels().split(labels, clients, seed)]
    assert sum(map(len, own)) == 12
    assert set.union(*own) == set(range(12))


@given(st.integers(1, 5), st.integers(1, 14), st.integers(0, 3))
def test_clients_of_a_type_share_a_distribution_and_no_other_has_it(
    types: int, clients: int, seed: int
) -> None:
    assume(types <= clients)
    labels = shuffled([300] * 7)
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


# -- what cannot be --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("partition", "clients"),
    [
        (IID(), 101),
        (ClassDirichlet(min_size=30), 4),
        (ClassDirichlet(alpha=1e-3), 60),
        (ClassesPerClient(classes=11), 10),
        (ClassesPerClient(classes=2), 4),
        (PClass(p=11), 5),
        (PClass(p=10), 50),
        (CyclicLabels(labels=11), 5),
        (DisjointLabels(), 11),
        (SharedTypes(types=6), 5),
        (Natural(), 5),
    ],
    ids=str,
)
def test_what_cannot_be_is_refused(partition: Partition, clients: int) -> None:
    with pytest.raises(InvalidProblemError):
        partition.split(tenfold(10), clients, 0)


def test_a_class_too_small_for_its_holders_is_refused() -> None:
    with pytest.raises(InvalidProblemError):
        ClassesPerClient(classes=1).split(np.array([0, 0, 0, 1]), 4, 0)


@pytest.mark.parametrize(
    "parts",
    [
        [[0, 1], [2]],
        [[0, 1, 2], [2, 3]],
        [[0, 1, 2, 3], []],
        [[0, 1, 2], [3, 4]],
        [[0, 1, 2], [-1]],
        [[0, 1, 2, 3]],
    ],
    ids=str,
)
def test_the_check_finds_what_is_wrong(parts: list[list[int]]) -> None:
    with pytest.raises(ValueError, match="iid"):
        check(IID(), [np.array(part, int) for part in parts], samples=4, clients=2)


def test_sampling_with_replacement_may_repeat_and_leave_out() -> None:
    check(FraboniDirichlet(alpha=1), [np.array([0, 0]), np.array([0, 2])], samples=4, clients=2)


def test_natural_gives_each_owner_its_own() -> None:
    x, y = torch.zeros(5, 1, dtype=torch.uint8), torch.zeros(5, dtype=torch.int64)
    owner = torch.tensor([1, 0, 1, 2, 0])
    data = Data(x, y, x, y, 1, owner_train=owner, owner_test=owner)
    assert [part.tolist() for part in Natural().divide(data, 3, 0)] == [[1, 4], [0, 2], [3]]
    with pytest.raises(InvalidProblemError, match="3 owners"):
        Natural().divide(data, 2, 0)
    assert data.fingerprint != Data(x, y, x, y, 1).fingerprint


def test_natural_is_refused_before_data_are_loaded() -> None:
    with pytest.raises(ValueError, match="natural"):
        Problem.model_validate({"name": "digits", "partition": "natural"})
