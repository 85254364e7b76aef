"""Who works on which version: frequencies against probabilities found by enumeration or in closed form.

Every count must be within five binomial standard deviations of its mean; seeds are fixed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from functools import cache
from itertools import combinations, pairwise, permutations, product
from math import exp, prod, sqrt
from typing import Any

import numpy as np
import pytest
from quadratics import IMPORTANCE, START, Arrival, N, assert_same, experiment, local_sgd, played

ROUNDS = 800
P = (0.4, 0.3, 0.15, 0.1, 0.05)  # of arrivals, one a client
WORKERS = 3
DRAWN: dict[str, Any] = {"history": 4, "most_steps": 6}


@cache
def rounds(seed: int = 0, count: int = ROUNDS, **fields: Any) -> list[list[Arrival]]:
    """The arrivals of each round of three workers."""
    strategy = {"name": "afa_cd", "buffer": WORKERS, "local_lr": 1e-3}
    arrangement = {"name": "rounds", "workers": WORKERS, **fields}
    seen, _ = played(experiment(strategy, seed=seed, arrangement=arrangement, updates=WORKERS * count))
    return [seen[first : first + WORKERS] for first in range(0, len(seen), WORKERS)]


def assert_follows(found: Iterable[Hashable], law: Mapping[Any, float]) -> None:
    """Every outcome occurs as often as its probability says, and no other occurs."""
    counts = Counter(found)
    total = counts.total()
    assert sum(law.values()) == pytest.approx(1, abs=1e-12)
    assert counts.keys() <= law.keys()
    for outcome, p in law.items():
        assert abs(counts[outcome] - total * p) <= 5 * sqrt(total * p * (1 - p)), outcome


def workers(of: list[list[Arrival]]) -> list[tuple[int, ...]]:
    """The workers of each round, in ascending order."""
    return [tuple(sorted(seen.client for seen in one)) for one in of]


# -- rounds ----------------------------------------------------------------------------------------


def test_uniform_arrivals() -> None:
    """Each of the (5 over 3) = 10 sets of workers is as likely as another."""
    assert_follows(workers(rounds(**DRAWN)), dict.fromkeys(combinations(range(N), WORKERS), 1 / 10))


def test_biased_arrivals_without_replacement() -> None:
    """One worker after the other is drawn ∝ p from those left: all sixty orders are summed up into sets."""
    law: Counter[tuple[int, ...]] = Counter()
    for first, second, third in permutations(range(N), 3):
        chance = P[first] * P[second] / (1 - P[first]) * P[third] / (1 - P[first] - P[second])
        law[tuple(sorted((first, second, third)))] += chance  # type: ignore[assignment]
    found = workers(rounds(arrivals=P))
    assert_follows(found, law)
    included = [sum(chance for chosen, chance in law.items() if i in chosen) for i in range(N)]
    counts = np.bincount(np.ravel(found), minlength=N)
    for count, chance in zip(counts, included, strict=True):
        assert abs(count - ROUNDS * chance) < 5 * sqrt(ROUNDS * chance * (1 - chance))
    assert sum(included) == pytest.approx(3)
    assert included[0] < 3 * P[0]  # drawing without replacement evens out


@pytest.mark.parametrize("arrivals", [pytest.param("uniform", marks=pytest.mark.slow), P])
def test_arrivals_with_replacement(arrivals: Any) -> None:
    """Three independent draws: all 125 orders are summed up into multisets."""
    p = [1 / N] * N if arrivals == "uniform" else P
    law: Counter[tuple[int, ...]] = Counter()
    for chosen in product(range(N), repeat=3):
        law[tuple(sorted(chosen))] += prod(p[i] for i in chosen)  # type: ignore[assignment]
    assert_follows(workers(rounds(arrivals=arrivals, replacement=True)), law)


def test_base_models_are_uniform_among_the_last_versions() -> None:
    """Staleness is 0 … 3, each alike, and independent for each worker: pairs are alike, too."""
    late = [one for one in rounds(**DRAWN) if one[0].before >= 3]
    stale = [[seen.before - seen.start for seen in one] for one in late]
    assert_follows([tau for one in stale for tau in one], dict.fromkeys(range(4), 1 / 4))
    assert_follows([(one[0], one[1]) for one in stale], dict.fromkeys(product(range(4), repeat=2), 1 / 16))


def test_base_models_of_the_first_rounds() -> None:
    """At version v < 3 there are v + 1 versions to choose from; 100 seeds of four rounds."""
    seen = [one for seed in range(100) for one in rounds(seed, 4, history=4)]
    for version in range(4):
        stale = [here.before - here.start for one in seen for here in one if here.before == version]
        assert_follows(stale, dict.fromkeys(range(version + 1), 1 / (version + 1)))


def test_dynamic_steps_of_a_round() -> None:
    """K is uniform in 1 … 2c, whatever the local work says, and independent of the base model."""
    seen = [here for one in rounds(**DRAWN) for here in one if here.before >= 3]
    law = dict.fromkeys(product(range(1, 7), range(4)), 1 / 24)
    assert_follows([(here.steps, here.before - here.start) for here in seen], law)


def test_a_round_begins_when_the_last_has_ended() -> None:
    """All of a round are sent at the time when the one before was complete, on versions that existed then."""
    played = rounds(count=50)
    for before, after in pairwise(played):
        assert {seen.sent for seen in after} == {before[-1].time}
    assert [one[-1].stepped for one in played] == [True] * 50


def test_fedavg_of_the_workers_of_a_round() -> None:
    """θ ← θ + η_g Σ p_i Δ_i / Σ p_i over those who came: an arrangement's rounds are averaged."""
    strategy = {"name": "fedavg", "local_lr": 0.1, "server_lr": 0.8}
    arrangement = {"name": "rounds", "workers": WORKERS, "history": 1}
    seen, found = played(experiment(strategy, arrangement=arrangement, updates=40 * WORKERS))
    expected = [START]
    for first in range(0, len(seen), WORKERS):
        chosen = [here.client for here in seen[first : first + WORKERS]]
        total = sum(IMPORTANCE[i] * local_sgd(i, expected[-1], 0.1, 1) for i in chosen)
        expected.append(expected[-1] + 0.8 * total / IMPORTANCE[chosen].sum())
    assert_same(found, expected, 41)


# -- delays in server iterations -------------------------------------------------------------------


def delayed(seed: int, updates: int, **fields: Any) -> list[Arrival]:
    """ASGD, one client at a time, as the arrangement draws it."""
    arrangement = {"name": "iteration_delay", **fields}
    strategy = {"name": "asgd", "local_lr": 1e-3}
    return played(experiment(strategy, seed=seed, arrangement=arrangement, updates=updates))[0]


def geometric(mean: float, most: int) -> dict[int, float]:
    """P(min(⌊Exp(β)⌋, most) = k): (1 − q) q^k below `most`, and q^most there, with q = e^{−1/β}."""
    q = exp(-1 / mean)
    return {k: (1 - q) * q**k for k in range(most)} | {most: q**most}


@pytest.mark.parametrize(("mean", "history"), [(2.0, 500), (3.0, 6), (0.4, 500), (5.0, 1)])
def test_delays_are_geometric(mean: float, history: int) -> None:
    """Once there are as many versions as delays may be long; all that is longer means the oldest kept."""
    late = [seen.before - seen.start for seen in delayed(1, 1000, mean=mean, history=history)[60:]]
    most = min(history - 1, 12)
    assert_follows([min(delay, most) for delay in late], geometric(mean, most))
    assert max(late) < history


def test_delays_of_the_first_versions() -> None:
    """At version v no delay is longer than v; 120 seeds."""
    seen = [here for seed in range(120) for here in delayed(seed, 4, mean=3)]
    for version in range(4):
        stale = [here.before - here.start for here in seen if here.before == version]
        assert_follows(stale, geometric(3, version))


def test_one_uniform_client_at_a_time() -> None:
    """Clients are uniform, independent of the delay, and each is sent to when the last has come back."""
    seen = delayed(2, 1000, mean=2)
    late = [(here.client, min(here.before - here.start, 2)) for here in seen[2:]]
    delays = geometric(2, 2)
    assert_follows(late, {(i, k): delays[k] / N for i, k in product(range(N), delays)})
    assert all(here.sent == before.time for before, here in pairwise(seen))
