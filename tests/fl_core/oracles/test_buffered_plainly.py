"""FedBuff, FADAS and AFA-CD, written out from their papers.

Which client FedBuff and FADAS drew is read off the simulation; all else is computed here.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from math import sqrt
from typing import Any

import numpy as np
import pytest
from uneven import CLIENTS, FIRST, LOCAL_LR, SERVER_LR, TIMES, Run, assert_same, delta, gradient, simulated

BUFFER, CONCURRENCY = 3, 4


def buffers(run: Run, size: int = BUFFER) -> Iterator[list[tuple[int, int, int]]]:
    """Arrivals in packs of one buffer: client, version that it worked on, staleness."""
    stream = ((client, version, n // size - version) for n, (client, version) in enumerate(run.arrivals))
    while len(pack := list(islice(stream, size))) == size:
        yield pack


def oldest(run: Run) -> int:
    return max(staleness for pack in buffers(run) for *_, staleness in pack)


@pytest.mark.parametrize("scaling", ["inverse_root", "none"])
def test_fedbuff(scaling: str) -> None:
    """θ ← θ + η_g (1/K) Σ Δ/√(1+τ) (Nguyen et al., AISTATS 2022, Algorithm 1 and §5).

    The code of the ACE paper leaves the root out.
    """
    run = simulated("fedbuff", buffer=BUFFER, concurrency=CONCURRENCY, scaling=scaling)
    models = [FIRST]
    for pack in buffers(run):
        mean = np.zeros(2)
        for client, version, staleness in pack:
            scale = 1 / sqrt(1 + staleness) if scaling == "inverse_root" else 1.0
            mean = mean + scale * delta(models[version], client) / BUFFER
        models.append(models[-1] + SERVER_LR * mean)
    assert oldest(run) >= 3
    assert run.in_flight == {CONCURRENCY}
    assert_same(run, models, at_least=130)


ROOT = {
    "inverse_root": lambda age: 1 / sqrt(1 + age),
    "one_plus_root": lambda age: 1 / (1 + sqrt(1 + age)),
    "none": lambda _: 1.0,
}


@pytest.mark.parametrize(
    "options",
    [
        {"scaling": "one_plus_root"},
        {"base": "current"},
        {"reduction": "sum"},
        {"reduction": "weighted_mean"},
        {"staleness_since": "upload"},
        {"max_staleness": 1},
        {"flush_every": 5},
        {"flush_every": 5, "reduction": "sum", "max_staleness": 1},
        {"base": "current", "reduction": "weighted_mean", "staleness_since": "upload", "max_staleness": 2},
    ],
    ids=str,
)
def test_readings_of_fedbuff(options: dict[str, Any]) -> None:
    """The readings of other frameworks, one by one and together, computed arrival by arrival."""
    rate = SERVER_LR / BUFFER if options.get("reduction") == "sum" else SERVER_LR
    run = simulated("fedbuff", buffer=BUFFER, concurrency=3, **options | {"server_lr": rate})
    scale = ROOT[options.get("scaling", "inverse_root")]
    models, pack, uploads = [FIRST], [], dict.fromkeys(range(CLIENTS), 0)
    idle, discarded, flushed = 0, 0, 0
    for number, (client, version) in enumerate(run.arrivals, 1):
        now = len(models) - 1
        idle += uploads[client] < version
        age = now - (uploads[client] if options.get("staleness_since") == "upload" else version)
        if age > options.get("max_staleness", 1_000):
            discarded += 1
        else:
            end = models[version] + delta(models[version], client)
            pack.append((scale(age), end - models[now if options.get("base") == "current" else version]))
        flush = bool(pack) and number % options.get("flush_every", 1_000) == 0
        if len(pack) == BUFFER or flush:
            flushed += len(pack) < BUFFER
            total = sum(weight * change for weight, change in pack)
            shares = {"sum": 1, "weighted_mean": sum(weight for weight, _ in pack), "mean": len(pack)}
            models.append(models[-1] + rate * total / shares[options.get("reduction", "mean")])
            pack = []
        uploads[client] = len(models) - 1
    assert idle > 20
    assert bool(discarded) == ("max_staleness" in options)
    assert bool(flushed) == ("flush_every" in options)
    assert_same(run, models, at_least=60)


BETA1, BETA2, EPSILON, RATE = 0.8, 0.6, 0.03, 0.4


@pytest.mark.parametrize("rule", ["paper", "code"])
@pytest.mark.parametrize("delay", [None, 1, 2])  # η is .4: below 1/2 and above 1/3
def test_fadas(rule: str, delay: int | None) -> None:
    """AMSGrad on the mean of a buffer, a smaller step if one is staler than τ_c (Wang et al., ICML 2024).

    The published code divides η by the staleness, where the paper takes min(η, 1/τ_max), and corrects Adam's
    biases. v falls once the quadratics are nearly solved, so that the maximum of AMSGrad is not v.
    """
    run = simulated(
        "fadas",
        buffer=BUFFER,
        concurrency=CONCURRENCY,
        delay=delay,
        rule=rule,
        server_lr=RATE,
        beta1=BETA1,
        beta2=BETA2,
        epsilon=EPSILON,
    )
    models, m, v, largest = [FIRST], np.zeros(2), np.zeros(2), np.zeros(2)
    below, stalest = 0, [0]
    for t, pack in enumerate(buffers(run), 1):
        mean = sum(delta(models[version], client) for client, version, _ in pack) / BUFFER
        m = BETA1 * m + (1 - BETA1) * mean
        v = BETA2 * v + (1 - BETA2) * mean**2
        largest = np.maximum(largest, v)
        below += bool((v < largest).any())
        stalest.append(max(staleness for *_, staleness in pack))
        rate = RATE
        if delay is not None and stalest[-1] > delay:
            rate = RATE / stalest[-1] if rule == "code" else min(RATE, 1 / stalest[-1])
        if rule == "code":
            step = (m / (1 - BETA1**t)) / (np.sqrt(largest) / sqrt(1 - BETA2**t) + EPSILON)
        else:
            step = m / (np.sqrt(largest) + EPSILON)
        models.append(models[-1] + rate * step)
    assert below > 50  # the maximum matters
    assert {1, 2, 3, 4} <= set(stalest)  # on both sides of τ_c, and at it
    assert_same(run, models, at_least=130)


def test_afa_cd() -> None:
    """θ ← θ − η η_L (1/m) Σ G_i, G_i the mean of K_i gradients (Yang et al., ICML 2022, Algorithm 2).

    Every worker pulls the newest model when it has returned, so that the schedule is that of the times alone.
    """
    steps = [1, 2, 3, 4, 2]
    run = simulated("afa_cd", buffer=2, steps=steps)
    models, back, version = [FIRST], list(TIMES), [0] * CLIENTS
    arrivals, held = [], []
    while len(arrivals) < 400:
        client = min(range(CLIENTS), key=lambda client: (back[client], client))
        arrivals.append((client, version[client]))
        y, gradients = models[version[client]], []
        for _ in range(steps[client]):
            gradients.append(gradient(y, client))
            y = y - LOCAL_LR * gradients[-1]
        held.append(np.mean(gradients, 0))
        if len(held) == 2:
            models.append(models[-1] - SERVER_LR * LOCAL_LR * np.mean(held, 0))
            held = []
        back[client] += TIMES[client]
        version[client] = len(models) - 1
    assert run.arrivals == arrivals
    assert_same(run, models, at_least=200)
