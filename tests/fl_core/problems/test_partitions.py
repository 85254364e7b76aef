"""Partitions: what every one of them promises, and what distinguishes them."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from fl_core.problems.partitions import (
    IID,
    ClassDirichlet,
    ClassesPerClient,
    ClientDirichlet,
    Partition,
    _draw,
    check,
)
from fl_core.problems.problem import InvalidProblemError

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


def spread(partition: Partition, clients: int = 10) -> float:
    """Mean total variation distance between a client's mix of labels and the mix of all, over 20 seeds."""
    labels = tenfold()
    found = []
    for seed in range(20):
        for part in partition.split(labels, clients, seed):
            mix = np.bincount(labels[part], minlength=10) / len(part)
            found.append(np.abs(mix - 0.1).sum() / 2)
    return float(np.mean(found))


@pytest.mark.parametrize("kind", [ClassDirichlet, ClientDirichlet])
def test_smaller_alpha_is_more_heterogeneous(kind: type[ClassDirichlet] | type[ClientDirichlet]) -> None:
    skews = [spread(kind(alpha=alpha)) for alpha in (0.05, 0.5, 5, 5000)]
    assert skews == sorted(skews, reverse=True)
    assert skews[0] > 0.5
    assert skews[-1] < 1.5 * spread(IID())  # towards α = ∞ a client's data are a random sample of all


def test_balancing_gives_nothing_more_to_those_who_have_their_share() -> None:
    """Before its last class a client holds less than n_data/n; without balancing some hold more."""

    def held_before_last(balance: bool) -> list[int]:
        partition, labels = ClassDirichlet(alpha=0.3, balance=balance), tenfold()
        parts = [part for seed in range(30) for part in partition.split(labels, 10, seed)]
        return [int(np.sum(labels[part] < labels[part].max())) for part in parts]

    assert max(held_before_last(True)) < 100
    assert max(held_before_last(False)) > 100


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


@pytest.mark.parametrize(
    ("partition", "clients", "sentence"),
    [
        (IID(), 101, "101 clients cannot share 100 data points"),
        (ClassDirichlet(min_size=30), 4, "4 clients with at least 30 of 100 data points"),
        (ClassDirichlet(alpha=1e-3), 60, "raise alpha, or lower min_size or clients"),
        (ClassesPerClient(classes=11), 10, "11 classes a client, but there are only 10"),
        (ClassesPerClient(classes=2), 4, "4 clients of 2 classes each cannot hold all 10 classes"),
    ],
)
def test_what_cannot_be_is_refused_in_one_sentence(partition: Partition, clients: int, sentence: str) -> None:
    with pytest.raises(InvalidProblemError) as refused:
        partition.split(tenfold(10), clients, 0)
    assert sentence in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_class_too_small_for_its_holders_is_refused() -> None:
    with pytest.raises(InvalidProblemError, match=r"leaves client \d of 4 without data"):
        ClassesPerClient(classes=1).split(np.array([0, 0, 0, 1]), 4, 0)


def test_empty_clients_only_where_asked_for() -> None:
    parts = ClassDirichlet(alpha=1e-3, min_size=0).split(tenfold(10), 60, 0)
    assert min(len(part) for part in parts) == 0


@pytest.mark.parametrize(
    ("parts", "sentence"),
    [
        ([[0, 1], [2]], "leaves out 1 of 4"),
        ([[0, 1, 2], [2, 3]], "deals out data point 2 2 times"),
        ([[0, 1, 2, 3], []], "leaves client 1 of 2 without data"),
        ([[0, 1, 2], [3, 4]], "that do not exist"),
        ([[0, 1, 2], [-1]], "that do not exist"),
        ([[0, 1, 2, 3]], "made 1 parts for 2 clients"),
    ],
)
def test_the_check_finds_what_is_wrong(parts: list[list[int]], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        check(IID(), [np.array(part, int) for part in parts], samples=4, clients=2)


def test_sampling_with_replacement_may_repeat_and_leave_out() -> None:
    class Fraboni(IID):
        name = "with_replacement"
        may_repeat = True

    check(Fraboni(), [np.array([0, 0]), np.array([0, 2])], samples=4, clients=2)
