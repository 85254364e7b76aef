"""Local work, several jobs of several clients long: plain loops, torch's AdamW, and the law of K.

Clients overlap, differ in K and η_l, and their updates are stale; the server is plain ASGD or FedBuff.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import ceil, sqrt
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from quadratics import (
    BOUND,
    CENTRES,
    CURVATURE,
    START,
    N,
    always_busy,
    assert_same,
    experiment,
    gradient,
    played,
)

from fl_core.diagnostics.overhead import overhead
from fl_core.execution.execution import ComputeRequest
from fl_core.execution.one_by_one import OneByOne
from fl_core.experiment import Experiment
from fl_core.live.client import train
from fl_core.live.transport import JobMessage, UpdateMessage
from fl_core.local_work import SGD, AdamW, Scaffold
from fl_core.loop.simulation import Simulation, simulate
from fl_core.server.jobs import Update
from fl_core.server.server import Server
from fl_core.strategies.asgd import ASGD
from tests.fl_core.worlds import Scripted, play, scenario

UPDATES, LR = 60, 0.1
STEPS = [3, 2, 4, 1, 5]  # K_i
FACTORS = [1.0, 0.5, 0.3, 2.0, 0.7]  # η_l(i)/η_l
EACH = {"steps": STEPS, "lr_factors": FACTORS}

Result = tuple[np.ndarray, np.ndarray]  # θ_end [d], mean gradient [d]
Worker = Callable[[int, np.ndarray, float, int], Result]


def asgd(local: dict[str, Any], worker: Worker) -> None:
    """ASGD with this local work is a plain loop with that worker; so are the gradients reported."""
    strategy = {"name": "asgd", "local_lr": LR, "server_lr": 0.6, "local": {**local, **EACH}}
    arrivals, found = played(experiment(strategy, updates=UPDATES))
    expected = [START]
    for seen, (client, start) in zip(arrivals, always_busy(UPDATES), strict=True):
        end, mean = worker(client, expected[start], LR * FACTORS[client], STEPS[client])
        expected.append(expected[-1] + 0.6 * (end - expected[start]))
        assert (seen.client, seen.start, seen.steps) == (client, start, STEPS[client])
        np.testing.assert_allclose(seen.gradient, mean, rtol=0, atol=BOUND)
    assert_same(found, expected, UPDATES + 1)


def test_plain_steps() -> None:
    """y ← y − η_l(i) ∇L_i(y), K_i times; in closed form too: θ_end = c + (1 − η_l λ)^K (θ − c)."""

    def worker(client: int, start: np.ndarray, lr: float, steps: int) -> Result:
        model, total = start, np.zeros(2)
        for _ in range(steps):
            total += gradient(client, model)
            model = model - lr * gradient(client, model)
        closed = CENTRES[client] + (1 - lr * CURVATURE[client]) ** steps * (start - CENTRES[client])
        np.testing.assert_allclose(model, closed, rtol=0, atol=BOUND)
        return model, total / steps

    asgd({"name": "sgd"}, worker)


def test_momentum_weight_decay_and_clipping() -> None:
    """g ← ∇L_i(y) + decay · y, cut to the largest norm; v ← μ v + g, zero when the job begins; y ← y − η_l v.

    Some gradients are cut, some are not.
    """
    norms = []

    def worker(client: int, start: np.ndarray, lr: float, steps: int) -> Result:
        model, v, total = start, np.zeros(2), np.zeros(2)
        for _ in range(steps):
            g = gradient(client, model) + 0.05 * model
            norms.append(sqrt(sum(g**2)))
            if norms[-1] > 1.5:
                g = g * 1.5 / norms[-1]
            total += g
            v = 0.8 * v + g
            model = model - lr * v
        return model, total / steps

    asgd({"name": "sgd", "momentum": 0.8, "weight_decay": 0.05, "clip": 1.5}, worker)
    assert min(norms) < 1.5 < max(norms)


def test_proximal_steps() -> None:
    """y ← y − η_l (∇L_i(y) + μ (y − x)), x the model received, however stale by now."""

    def worker(client: int, start: np.ndarray, lr: float, steps: int) -> Result:
        model, total = start, np.zeros(2)
        for _ in range(steps):
            g = gradient(client, model) + 0.6 * (model - start)
            total += g
            model = model - lr * g
        return model, total / steps

    asgd({"name": "prox", "mu": 0.6}, worker)


def test_adamw_against_torch() -> None:
    """torch.optim.AdamW on the loss itself, made anew for every job; the mean gradient is reported."""

    def worker(client: int, start: np.ndarray, lr: float, steps: int) -> Result:
        model = torch.tensor(start, requires_grad=True)
        optimiser = torch.optim.AdamW([model], lr=lr, betas=(0.8, 0.95), eps=1e-3, weight_decay=0.2)
        centre, total = torch.tensor(CENTRES[client]), torch.zeros(2, dtype=torch.float64)
        for _ in range(steps):
            optimiser.zero_grad()
            (CURVATURE[client] / 2 * ((model - centre) ** 2).sum()).backward()
            assert model.grad is not None
            total += model.grad
            optimiser.step()
        return model.detach().numpy(), (total / steps).numpy()

    local = {"name": "adamw", "beta1": 0.8, "beta2": 0.95, "epsilon": 1e-3, "weight_decay": 0.2}
    asgd(local, worker)


def test_adamw_that_is_kept_against_torch() -> None:
    """One torch.optim.AdamW a client for the whole run; a job sets its parameters, and nothing else."""
    models = [torch.tensor(START, requires_grad=True) for _ in range(N)]
    fields: dict[str, Any] = {"betas": (0.8, 0.95), "eps": 1e-3, "weight_decay": 0.2}
    optimisers = [
        torch.optim.AdamW([model], lr=LR * factor, **fields)
        for model, factor in zip(models, FACTORS, strict=True)
    ]

    def worker(client: int, start: np.ndarray, lr: float, steps: int) -> Result:
        model, total = models[client], torch.zeros(2, dtype=torch.float64)
        with torch.no_grad():
            model.copy_(torch.tensor(start))
        for _ in range(steps):
            model.grad = torch.tensor(gradient(client, model.detach().numpy()))
            total += model.grad
            optimisers[client].step()
        return model.detach().numpy().copy(), (total / steps).numpy()

    local = {"name": "adamw", "beta1": 0.8, "beta2": 0.95, "epsilon": 1e-3, "weight_decay": 0.2}
    asgd({**local, "keep_state": True}, worker)


def test_moments_that_are_kept_by_hand() -> None:
    """Two jobs of one step, one client at c = 1, from θ = 0, β1 = β2 = 0, ε → 0: |θ_end − θ| = η_l twice.

    With β1 = ½ the second job's m̂ is (½ · ½ g + ½ g')/(1 − ¼), and v̂ = g'²; η_l = .1, g = −1, g' = −.9.
    """
    local = AdamW(beta1=0.5, beta2=0, epsilon=1e-12, weight_decay=0, keep_state=True)
    where = scenario([1], centres=[[1.0]], updates=2)
    simulation = Simulation(Experiment(scenario=where, strategy=ASGD(local_lr=0.1, local=local)))
    for _ in simulate(simulation):
        pass
    expected = 0.1 + 0.1 * (0.25 * 1 + 0.5 * 0.9) / 0.75 / 0.9
    assert simulation.server.model.item() == pytest.approx(expected, abs=1e-9)
    assert overhead(simulation)["clients"] == 3 * 8  # k, m and v
    assert {name: value.item() for name, value in simulation.state.client_moments[0].items()} == {
        "k": 2,
        "m": pytest.approx(-0.7),
        "v": pytest.approx(0.81),
    }


def test_moments_are_those_of_the_latest_update_that_was_used() -> None:
    """A dismissed job leaves no moments; one that is collected leaves those of the steps that it made."""

    def begin(server: Server) -> None:
        server.wake(3)

    def tick(server: Server) -> None:
        for job in list(server.jobs):
            (server.dismiss if job.client else server.collect)(job)

    def receive(server: Server, update: Update) -> None:
        server.step(update.delta)

    local = AdamW(steps=4, keep_state=True)
    strategy = Scripted(on_begin=begin, on_tick=tick, on_receive=receive, local=local)
    simulation = Simulation(
        Experiment(scenario=scenario([4, 5], centres=[[1.0], [2.0]], updates=1), strategy=strategy)
    )
    for _ in simulate(simulation):
        pass
    assert {client: kept["k"].item() for client, kept in simulation.state.client_moments.items()} == {0: 3}


def test_moments_travel_with_a_job_in_real_time() -> None:
    """A client's process leaves the moments that the simulation does, through the bytes of the messages."""
    described = experiment({"name": "asgd", "local": {"name": "adamw", "keep_state": True}}, updates=9)
    simulation = Simulation(described)
    for event in simulation.events():
        if isinstance(event, ComputeRequest):
            job = event.job
            message = JobMessage.unpack(JobMessage.of(job, 0.0).pack())
            answer = UpdateMessage.unpack(train(message, event.world, event.local).pack())
            OneByOne().execute([event])
            assert answer.new_moments.keys() == job.new_moments.keys() == {"k", "m", "v"}
            assert all(torch.equal(answer.new_moments[name], job.new_moments[name]) for name in "kmv")


# -- SCAFFOLD --------------------------------------------------------------------------------------


def controlled(
    client: int, start: np.ndarray, c: np.ndarray, own: np.ndarray, *, lr: float
) -> tuple[np.ndarray, np.ndarray]:
    """θ_end, and c_i⁺ = c_i − c + (x − y)/(K η_l), after K steps y ← y − η_l (g − c_i + c)."""
    model, steps = start, STEPS[client]
    for _ in range(steps):
        model = model - lr * (gradient(client, model) - own + c)
    return model, own - c + (start - model) / (steps * lr)


def test_scaffold_with_stale_models() -> None:
    """Option II: the client uses the x and c of when it was sent to; c ← c + (c_i⁺ − c_i)/n on arrival."""
    strategy = {"name": "asgd", "local_lr": LR, "server_lr": 0.6, "local": {"name": "scaffold", **EACH}}
    c, own, expected = [np.zeros(2)], np.zeros((N, 2)), [START]
    for client, start in always_busy(UPDATES):
        end, new = controlled(client, expected[start], c[start], own[client], lr=LR * FACTORS[client])
        expected.append(expected[-1] + 0.6 * (end - expected[start]))
        c.append(c[-1] + (new - own[client]) / N)
        own[client] = new
    assert_same(played(experiment(strategy, updates=UPDATES))[1], expected, UPDATES + 1)
    # c_i⁺ is the mean of the plain gradients at the models of the job, so c is their mean over clients.
    np.testing.assert_allclose(c[-1], own.mean(0), rtol=0, atol=BOUND)
    assert np.abs(c[-1]).min() > 0.05


def test_scaffold_divides_by_the_rate_of_the_job() -> None:
    """c_i is the gradient at the model that was sent, and c their mean, although η_l has changed since."""
    newest: dict[int, np.ndarray] = {}

    def receive(server: Server, update: Update) -> None:
        centre = np.array([float(update.client), 0.0])
        newest[update.client] = update.start.numpy() - centre
        for client, known in newest.items():
            assert server.local.clients[client].numpy() == pytest.approx(known)
        assert server.local.c.numpy() == pytest.approx(sum(newest.values()) / 3)
        server.local_lr *= 0.8
        server.step(update.delta)

    strategy = Scripted(on_receive=receive, local_lr=0.5, local=Scaffold())
    centres = [[float(client), 0.0] for client in range(3)]
    play(strategy, scenario([1, "5/3", "7/2"], centres=centres, updates=12))
    assert len(newest) == 3


def test_scaffold_of_a_server_that_buffers() -> None:
    """FedBuff, three updates a step: c changes at every arrival, and is sent as a version found it."""
    local = {"name": "scaffold", "steps": STEPS}
    strategy = {"name": "fedbuff", "buffer": 3, "concurrency": 4, "local_lr": LR, "local": local}
    arrivals, found = played(experiment(strategy, updates=UPDATES))
    c, own, expected, buffer = np.zeros(2), np.zeros((N, 2)), [START], []
    sent = [c]  # the c that travels with each version
    for seen in arrivals:
        start = expected[seen.start]
        end, new = controlled(seen.client, start, sent[seen.start], own[seen.client], lr=LR)
        c = c + (new - own[seen.client]) / N
        own[seen.client] = new
        buffer.append((end - start) / sqrt(1 + seen.before - seen.start))
        if len(buffer) == 3:
            expected.append(expected[-1] + sum(buffer) / 3)
            sent.append(c)
            buffer = []
    assert_same(found, expected, UPDATES // 3 + 1)


# -- how many steps --------------------------------------------------------------------------------


def test_dynamic_steps_are_uniform() -> None:
    """Each of 1 … 2K is within five binomial standard deviations of its share, for each client's K."""
    local = {"name": "sgd", "steps": [1, 2, 3, 4, 5], "dynamic": True}
    jobs = 300
    strategy = {"name": "asgd", "local_lr": 1e-3, "local": local}
    arrivals, _ = played(experiment(strategy, times=["1"], updates=N * jobs))
    for client in range(N):
        choices = 2 * (client + 1)
        steps = [seen.steps for seen in arrivals if seen.client == client]
        counts = np.bincount(steps, minlength=choices + 1)
        assert counts[0] == 0 and len(counts) == choices + 1 and counts.sum() == jobs
        spread = sqrt(jobs / choices * (1 - 1 / choices))
        assert np.abs(counts[1:] - jobs / choices).max() < 5 * spread


def test_steps_by_epochs() -> None:
    """K is the least number of mini-batches B that hold e n_i data points, at least 1, for e as written.

    In floats 1.1 · 100 is more than 110.
    """
    assert ceil(1.1 * 100) == 111
    sizes = (0, 1, 10, 29, 100)
    server: Any = SimpleNamespace(sizes=sizes)
    for epochs in ("1.1", "0.7", "2", "0.001"):
        for batch in (1, 7, 32):
            local = SGD(epochs=float(epochs), batch=batch)
            for client, size in enumerate(sizes):
                least = next(k for k in range(1, 1000) if k * batch >= Fraction(epochs) * size)
                assert local.count(server, client, 0) == least


def test_as_many_steps_are_given_as_there_are_clients() -> None:
    with pytest.raises(ValueError, match=r"local.steps: 3 given for 5 clients"):
        experiment({"name": "asgd", "local": {"name": "sgd", "steps": [1, 2, 3]}}, updates=2)
