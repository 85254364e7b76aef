"""FAVAS and QuAFL, which poll clients at any moment of their work: plain loops from the papers.

Whom the server polled is read off the run; how far everyone had come by then is computed here, from the times
alone. Of both papers only parts could be read: these are the formulas as the strategies' files cite them.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import groupby
from typing import Any

import numpy as np
import pytest
from quadratics import START, TIMES, Arrival, N, assert_same, experiment, local_sgd, played

from fl_core.recording.recorder import run

LR, STEPS, SAMPLE = 0.1, 4, 2  # η_l, K, s
PERIOD = Fraction(7, 5)  # Δt: the slowest client needs six polls for its K steps
LENGTHS = [Fraction(time) for time in TIMES]
ROUNDS = 120


def polls(arrivals: list[Arrival]) -> list[list[Arrival]]:
    """The answers to each poll in turn."""
    return [list(group) for _, group in groupby(arrivals, key=lambda seen: seen.time)]


def described(name: str, **fields: Any) -> dict[str, Any]:
    local = {"name": "sgd", "steps": STEPS}
    chosen = {"sample": SAMPLE, "period": str(PERIOD), "local_lr": LR, "local": local}
    return {"name": name, **chosen, **fields}


def progress(client: int, since: int, now: int) -> int:
    """E ∧ K: the steps of a client between poll `since` and poll `now`; K steps take its job's length."""
    return min(STEPS, int((now - since) * PERIOD * STEPS / LENGTHS[client]))


def played_polls(**strategy: Any) -> tuple[list[list[Arrival]], np.ndarray]:
    """Every poll's answers, which come at multiples of Δt from s distinct clients; and the versions."""
    arrivals, found = played(experiment(strategy, updates=SAMPLE * ROUNDS))
    rounds = polls(arrivals)
    tick = PERIOD / rounds[0][0].time
    assert [group[0].time * tick for group in rounds] == [(n + 1) * PERIOD for n in range(ROUNDS)]
    assert all(len({seen.client for seen in group}) == SAMPLE for group in rounds)
    return rounds, found


@pytest.mark.parametrize("alpha", ["stochastic", "expected"])
def test_favas(alpha: str) -> None:
    """w ← (w + Σ w_i^unb)/(s + 1), w_i^unb = w_i^init + (w_i − w_i^init)/α_i; then w_i^init ← w.

    α_i = P(E_i > 0) (E_i ∧ K) or E[E_i ∧ K], of the polls of i so far.
    """
    rounds, found = played_polls(**described("favas", alpha=alpha, server_lr=0.9))
    expected, since, init = [START], [0] * N, [START] * N
    made: list[list[int]] = [[] for _ in range(N)]
    for now, group in enumerate(rounds, 1):
        total = expected[-1].copy()
        for seen in group:
            i = seen.client
            steps = progress(i, since[i], now)
            made[i].append(steps)
            assert seen.steps == steps
            if alpha == "expected":
                weight = float(np.mean(made[i]))
            else:
                weight = float(np.mean(np.array(made[i]) > 0)) * steps
            local = local_sgd(i, init[i], LR, steps)
            total += init[i] + (local / weight if steps else 0)
        expected.append(expected[-1] + 0.9 * (total / (SAMPLE + 1) - expected[-1]))
        for seen in group:
            since[seen.client], init[seen.client] = now, expected[-1]
    assert_same(found, expected, ROUNDS + 1)
    assert {steps for client in made for steps in client} == set(range(STEPS + 1))  # none, some, all


def test_quafl() -> None:
    """X ← (X + Σ Y_i)/(s + 1); X_i ← (X + s Y_i)/(s + 1) with the old X, and K steps from there.

    No staleness weight, no reset to the server's model: everyone keeps a model of their own.
    """
    rounds, found = played_polls(**described("quafl"))
    expected, since, own = [START], [0] * N, [START] * N
    cut = 0
    for now, group in enumerate(rounds, 1):
        total, x = expected[-1].copy(), expected[-1]
        for seen in group:
            i = seen.client
            steps = progress(i, since[i], now)
            assert seen.steps == steps
            cut += 0 < steps < STEPS
            y = own[i] + local_sgd(i, own[i], LR, steps)
            total += y
            own[i], since[i] = (x + SAMPLE * y) / (SAMPLE + 1), now
        expected.append(total / (SAMPLE + 1))
    assert_same(found, expected, ROUNDS + 1)
    assert cut > 30


def near(x: np.ndarray, known: np.ndarray, q: int, side: float) -> np.ndarray:
    """The quantiser of the published code: x to the nearest point, mod q, decoded with the receiver's key."""
    colours = np.round(x / side).astype(int) % q
    return q * side * np.round(known / (q * side) - colours / q) + side * colours


@pytest.mark.parametrize("bits", [5, 12])
def test_quafl_with_its_quantiser(bits: int) -> None:
    """X ← (X + Σ Q_X(Y_i))/(s + 1), X_i ← (Q_{Y_i}(X) + s Y_i)/(s + 1), Q_z(v) decoded near z."""
    side = 0.02
    link = {"name": "lattice", "bits": bits, "side": side}
    strategy = described("quafl", uplink=link, downlink=link)
    rounds, found = played_polls(**strategy)
    x, own, wrong = START, [START] * N, 0
    for now, group in enumerate(rounds, 1):
        total = x.copy()
        for seen in group:
            y = own[seen.client] + seen.delta
            total += near(y, x, 2**bits, side)
            for sent, known in ((y, x), (x, y)):
                wrong += bool(np.abs(near(sent, known, 2**bits, side) - sent).max() > side / 2 + 1e-9)
            own[seen.client] = (near(x, y, 2**bits, side) + SAMPLE * y) / (SAMPLE + 1)
        x = total / (SAMPLE + 1)
        np.testing.assert_allclose(found[now], x, rtol=0, atol=1e-10)
    assert (wrong > 0) == (bits == 5)  # q s/2 is .32 there, and clients are farther apart
    assert run(experiment(strategy, updates=SAMPLE * ROUNDS)).misread == wrong


@pytest.mark.parametrize("name", ["favas", "quafl"])
def test_who_left_is_not_polled(name: str) -> None:
    """Half of the clients leave for good: polls go on with the others, and an empty poll is an empty step."""
    away = {"name": "dropouts", "share": 1, "at": 3, "back": 10}
    arrivals, found = played(experiment(described(name), availability=away, time=20))
    tick = Fraction(7, 5) / arrivals[0].time
    times = {seen.time * tick for seen in arrivals}
    assert {n * PERIOD for n in range(1, 15)} - times == {n * PERIOD for n in range(3, 8)}
    np.testing.assert_array_equal(found[3:8], np.repeat(found[2:3], 5, 0))
    assert len(found) == 15
