"""The errors A (noise), B (participation) and C (delay) of the updates actually used by a server.

`Diagnosis` follows a run with an `ErrorTerms` where the user asks for `errors`. All-client engagement for
asynchronous federated learning (arXiv 2511.19066), eq. 3: u^t − ∇F(w^t) = A + B + C with A = u − E[u | stale
models], B = E[u | stale models] − Σ p_i ∇F_i(w^{t−τ_i}) and C = Σ p_i ∇F_i(w^{t−τ_i}) − ∇F(w^t); the paper
has p_i = 1/n. Here they are measured: E[u | stale models] is the step of a shadow of the server that gets
full-batch gradients in place of the run's mini-batch gradients.

Two choices that the paper leaves open: the stale model of a client that does not participate is that of its
last update to arrive (w^0 before that); and u^t = −(w^{t+1} − w^t)/(η_g η_l K), where K is the mean over
the clients' last updates, and 1 for strategies that follow mean gradients. The effect of staleness weights,
momentum or mixing with old models on u stays in it (in B). With K > 1 the drift, the difference between
K full-batch steps and K times the first, is part of A and also reported by itself.

Fixed: the definitions, since stored numbers of claims are means of these terms (A-terms).
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from fl_core.diagnostics.shadow import Content, OneHot, Shadow, halves
from fl_core.experiment import Experiment
from fl_core.local_work import Work
from fl_core.loop.events import EventKind
from fl_core.loop.simulation import Event, Simulation
from fl_core.problems.problem import World
from fl_core.server.jobs import Job

NEGLIGIBLE = 1e-9  # of the largest weight: the rounding residue of a weight that was undone


@dataclass(frozen=True)
class Terms:
    """The decomposition of an update: u^t − ∇F(w^t) = A + B + C (eq. 3)."""

    update: Tensor  # u^t [d]
    gradient: Tensor  # ∇F(w^t) [d]
    noise: Tensor  # A = u^t − E[u | stale models] [d]
    bias: Tensor  # B = E[u | stale models] − Σ p_i ∇F_i(w^{t−τ_i}) [d]
    delay: Tensor  # C = Σ p_i ∇F_i(w^{t−τ_i}) − ∇F(w^t) [d]
    drift: Tensor | None  # the part of A that is not noise [d]; None where every job has one step
    weights: Tensor  # of each client's gradients in u^t [n]

    @property
    def participants(self) -> int:
        """The number of clients with a weight in u^t."""
        size = self.weights.abs()
        return int((size > NEGLIGIBLE * size.max()).sum())


def refuses(experiment: Experiment) -> str | None:
    """Return the reason why the error terms of an experiment cannot be measured, or None."""
    if experiment.scenario.non_finite == "refuse":
        return "which updates are refused depends on their content"
    if experiment.scenario.timing.network:
        return "they are measured with updates of other sizes, which take other times on a network"
    if experiment.strategy.uplink or experiment.strategy.downlink:
        return "what is received of a coded message is not linear in it"
    strategy = experiment.strategy
    linear = (strategy.linear, strategy.local.linear, strategy.server.linear)
    return next((reason for reason in linear if isinstance(reason, str)), None)


def full_gradient(world: World, model: Tensor) -> Tensor:
    """Return ∇F(w) = Σ p_i ∇F_i(w) [d]; a pass over all data."""
    total = torch.zeros_like(model)
    for client, share in enumerate(world.p.tolist()):
        total += share * world.full_gradient(model, client)
    return total


class ErrorTerms:
    """Error terms of a run, followed event by event from the first; every `every`-th update is decomposed.

    Costs a full-batch gradient per arrival (K if clients take K steps), n for every update decomposed, and
    the memory of n gradients and of two or three servers.

    Raises:
        ValueError: The error terms of the experiment cannot be measured.
    """

    def __init__(self, simulation: Simulation, every: int = 1) -> None:
        if reason := refuses(simulation.experiment):
            raise ValueError(f"the error terms cannot be measured: {reason}")
        self.simulation, self.every = simulation, every
        world, local = simulation.world, simulation.local
        usual = (local.usual(client, int(size)) for client, size in enumerate(world.sizes))
        several = local.dynamic or simulation.arrangement is not None or max(usual) > 1
        self.first = Shadow(simulation)  # K times the first full-batch gradient
        self.drifting = Shadow(simulation) if several else None  # K full-batch steps
        self.counting = Shadow(simulation, OneHot(world))
        self.stale: Tensor | None = None  # ∇F_i(w^{t−τ_i}) [n, d]
        self.steps = [0] * world.n  # K of the clients' last updates, 0 before the first
        self.resume()

    def resume(self) -> None:
        """Note the simulation's present model and rate, the start of the next step."""
        self._model, self._lr = self.simulation.server.model, self.simulation.server.local_lr

    def see(self, event: Event) -> Terms | None:
        """Follow the run through a past event; return the terms of the event's update, if due."""
        server = self.simulation.server
        previous, lr = self._model, self._lr
        self.resume()
        if self.stale is None:  # before its first update a client's stale model is w^0
            world = self.simulation.world
            self.stale = torch.stack([world.full_gradient(previous, client) for client in range(world.n)])
        job = self.simulation.arrived if event.kind is EventKind.ARRIVAL else None
        expected, drifted, (of_deltas, of_gradients) = self._follow(event, job)
        version = event.version - 1  # t
        if not event.stepped or version % self.every:
            return None
        steps = [] if of_gradients.any() else [count for count in self.steps if count]
        mean_steps = sum(steps) / len(steps) if steps else 1.0  # K
        scale = -1 / (self.simulation.strategy.server_lr * lr * mean_steps)
        update = scale * (server.model - previous)
        gradient = full_gradient(self.simulation.world, previous)
        assert self.stale is not None
        stale = torch.from_numpy(self.simulation.world.p).to(self.stale) @ self.stale
        errors = update - scale * expected, scale * expected - stale, stale - gradient
        drift = None if drifted is None else scale * (drifted - expected)
        return Terms(update, gradient, *errors, drift, scale * (of_deltas + of_gradients))

    @property
    def shadows(self) -> dict[str, Simulation]:
        """The simulations in lock step, by name, for a checkpoint."""
        named = {"first": self.first, "drifting": self.drifting, "counting": self.counting}
        return {name: shadow.simulation for name, shadow in named.items() if shadow}

    def state(self) -> dict[str, Any]:
        """Return the rest of the state, for a checkpoint."""
        return {"stale": self.stale, "steps": self.steps}

    def restore(self, state: dict[str, Any]) -> None:
        """Restore a saved state."""
        self.stale, self.steps = state["stale"], state["steps"]
        self.resume()

    def _follow(self, event: Event, job: Job | None) -> tuple[Tensor, Tensor | None, tuple[Tensor, Tensor]]:
        """Return the steps of the three shadows; the last as weights of each client's Δ and mean gradient."""
        model = self.simulation.server.model
        nowhere = self.counting.simulation.world.initial()
        if job is None:
            drifted = self.drifting.follow(event, None, model) if self.drifting else None
            counted = self.counting.follow(event, None, nowhere)
            return self.first.follow(event, None, model), drifted, halves(counted)
        assert self.stale is not None
        gradient = torch.zeros_like(job.start)
        if job.steps:  # a job collected before its first step has no gradient
            raw = self.simulation.world.full_gradient(job.start, job.client)
            self.stale[job.client], self.steps[job.client] = raw, job.steps
            gradient = self.simulation.local.correct(raw, job.start, Work.of(job))
        moved = -job.lr * job.steps
        first = Content(job.start, moved * gradient, gradient)
        expected = self.first.follow(event, first, model)
        drifted = None
        if self.drifting:
            drifted = self.drifting.follow(
                event, first if job.steps <= 1 else self._descend(job, gradient), model
            )
        delta, mean_gradient = nowhere.clone(), nowhere.clone()
        if job.steps:
            halves(delta)[0][job.client] = moved
            halves(mean_gradient)[1][job.client] = 1
        counted = self.counting.follow(event, Content(nowhere, delta, mean_gradient), nowhere)
        return expected, drifted, halves(counted)

    def _descend(self, job: Job, first: Tensor) -> Content:
        """Return K full-batch steps from the gradient `first`: on a quadratic, the mean of noisy steps."""
        world, local = self.simulation.world, self.simulation.local
        y, g, total, state = job.start, first, torch.zeros_like(first), dict[str, Any]()
        for step in range(job.steps):
            if step:
                g = local.correct(world.full_gradient(y, job.client), y, Work.of(job))
            y, total = local.move(y, g, job.lr, state), total + g
        return Content(job.start, y - job.start, total / job.steps)
