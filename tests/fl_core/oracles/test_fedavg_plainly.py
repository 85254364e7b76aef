"""FedAvg with every kind of sampling, written out from the papers.

Rounds: McMahan et al., AISTATS 2017, Algorithm 1. Weights of sampled clients: Fraboni et al., JMLR 2023,
appendix C.2, C.3. Who was drawn is read off the simulation; all else is computed here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from uneven import (
    CLIENTS,
    FIRST,
    IMPORTANCE,
    SERVER_LR,
    TIMES,
    Array,
    Run,
    assert_same,
    delta,
    losses,
    simulated,
)

Weights = dict[int, float]
FASTEST = [3, 2]  # by TIMES


def sampled(name: str, seed: int = 0, **options: Any) -> Run:
    """FedAvg with two of the clients a round."""
    return simulated("fedavg", seed=seed, sampling={"name": name, "sample": 2, **options})


def plainly(rounds: int, weights: Callable[[int, Array], Weights]) -> list[Array]:
    """θ ← θ + η_g Σ d_i Δ_i(θ), the weights given for each round and model."""
    models = [FIRST]
    for n in range(rounds):
        model = models[-1]
        step = sum(d * delta(model, client) for client, d in weights(n, model).items())
        models.append(model + SERVER_LR * step)
    return models


def by_importance(clients: list[int]) -> Weights:
    """p_i over the p of all that were chosen."""
    total = sum(IMPORTANCE[client] for client in clients)
    return {client: IMPORTANCE[client] / total for client in clients}


def worst(model: Array, m: int = 2) -> list[int]:
    """The m clients with the highest loss."""
    return sorted(range(CLIENTS), key=lambda client: -losses(model)[client])[:m]


def two_draws(clients: list[int]) -> Weights:
    """Two draws with replacement, 1/2 each: who comes alone was drawn twice."""
    return {client: 1 / len(clients) for client in clients}


def assert_follows(run: Run, weights: Callable[[int, Array], Weights]) -> None:
    """The simulated rounds went to whom these weights name, and the models are those of the plain loop."""
    expected = plainly(len(run.versions) - 1, weights)
    assert_same(run, expected, at_least=75)
    sent = [set(weights(n, expected[n])) for n in range(len(expected) - 1)]
    assert [set(clients) for clients in run.rounds[: len(sent)]] == sent


def test_everybody() -> None:
    """θ ← θ + η_g Σ p_i Δ_i."""
    assert_follows(simulated("fedavg"), lambda n, model: dict(enumerate(IMPORTANCE)))


def test_uniform_sampling() -> None:
    """m of n without replacement, (n/m) p_i each."""
    run = sampled("uniform")
    assert {len(clients) for clients in run.rounds} == {2}
    assert_follows(run, lambda n, model: {i: CLIENTS / 2 * IMPORTANCE[i] for i in run.rounds[n]})


def test_md_sampling() -> None:
    """m draws ∝ p with replacement, 1/m each."""
    run = sampled("md")
    assert {len(clients) for clients in run.rounds} == {1, 2}
    assert_follows(run, lambda n, model: two_draws(run.rounds[n]))


def test_the_fastest() -> None:
    """The two with the shortest times, p_i over their sum."""
    run = sampled("fastest")
    assert_follows(run, lambda n, model: by_importance(FASTEST))


def test_the_highest_loss() -> None:
    """The two whose loss at the new model is highest, anew in every round."""
    run = sampled("highest_loss")
    assert_follows(run, lambda n, model: by_importance(worst(model)))
    assert len({frozenset(clients) for clients in run.rounds}) > 1


@pytest.mark.parametrize("sampling", ["fastest", "highest_loss"])
def test_rounds_reserved_for_uniform_sampling(sampling: str) -> None:
    """Every fourth round, the first included, draws two of five uniformly, (5/2) p_i each."""
    run = sampled(sampling, unbiased_every=4)

    def weights(n: int, model: Array) -> Weights:
        if n % 4 == 0:
            return {i: CLIENTS / 2 * IMPORTANCE[i] for i in run.rounds[n]}
        return by_importance(FASTEST if sampling == "fastest" else worst(model))

    assert_follows(run, weights)


@pytest.mark.parametrize("sampling", ["fastest", "highest_loss"])
def test_windows(sampling: str) -> None:
    """The first of six rounds by the criterion; the others draw two of those still owed weight, 1/2 each."""
    run = sampled(sampling, window=6)

    def weights(n: int, model: Array) -> Weights:
        if n % 6 == 0:
            return by_importance(FASTEST if sampling == "fastest" else worst(model))
        return two_draws(run.rounds[n])

    assert_follows(run, weights)


@pytest.mark.parametrize(
    ("name", "given", "variance"),
    [
        # d_i = (n/m) p_i with probability m/n
        ("uniform", lambda clients: {i: 2.5 * IMPORTANCE[i] for i in clients}, 1.5 * IMPORTANCE**2),
        # two draws of 1/2 with probability p_i
        ("md", two_draws, IMPORTANCE * (1 - IMPORTANCE) / 2),
    ],
    ids=["uniform", "md"],
)
def test_sampled_weights_are_the_importances_on_average(
    name: str, given: Callable[[list[int]], Weights], variance: Array
) -> None:
    """The mean weight of a client over rounds is p_i within four standard errors (appendix C.2)."""
    rounds = [given(clients) for seed in range(5) for clients in sampled(name, seed).rounds[:-1]]
    mean = np.array([np.mean([weights.get(i, 0.0) for weights in rounds]) for i in range(CLIENTS)])
    assert len(rounds) > 900
    assert (np.abs(mean - IMPORTANCE) < 4 * np.sqrt(variance / len(rounds))).all()


def test_a_window_gives_everyone_its_importance_on_average() -> None:
    """Σ over a window of d_i is W p_i on average; the fastest hold 3/15, so that five rounds just do.

    Each of the other rounds draws twice with odds q_i, 1/2 a draw: a variance of q_i (1 − q_i) / 2.
    """
    first, window = by_importance(FASTEST), 5
    owed = window * IMPORTANCE - np.array([first.get(i, 0.0) for i in range(CLIENTS)])
    assert owed.min() < 1e-9
    sums = []
    for seed in range(8):
        rounds = sampled("fastest", seed, window=window).rounds
        for n in range(0, len(rounds) - window, window):
            later = [two_draws(clients) for clients in rounds[n + 1 : n + window]]
            sums.append([first.get(i, 0.0) + sum(d.get(i, 0.0) for d in later) for i in range(CLIENTS)])
    share = owed / owed.sum()
    error = np.sqrt((window - 1) * share * (1 - share) / 2 / len(sums))
    assert len(sums) > 180
    assert (np.abs(np.mean(sums, 0) - window * IMPORTANCE) <= 4 * error + 1e-9).all()
    assert [TIMES[i] for i in FASTEST] == sorted(TIMES)[:2]
