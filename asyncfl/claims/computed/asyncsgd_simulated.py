"""Delays and gradients in Alahyane et al. (arXiv 2502.08206, 2025): Theorem 3.1, 8G and 8H."""

from collections.abc import Sequence

import numpy as np

from asyncfl.claims.computed.asyncsgd import Routing, routed
from asyncfl.claims.computed.slack import slack
from asyncfl.claims.theory import queues
from fl_core.theory.jackson import Array
from fl_core.theory.routing import G, H, Network, step_limit

# -- simulations of the network -------------------------------------------------------------------


def delay_law(*, network: str, routing: Routing, rounds: int, blocks: int = 50) -> bool:
    """Whether every client's simulated mean E[D_i] is within 4 standard errors of E[X_i] (Theorem 3.1)."""
    state, path, kept = _simulated(network, routing, rounds)
    mine = path.routed[:kept, None] == np.arange(len(state.p))
    return _within(np.where(mine, path.delays[:kept, None], 0), state.relative_delay, blocks)


def mean_delay(*, network: str, routing: Routing, rounds: int, blocks: int = 50) -> bool:
    """Whether the simulated mean delay of a task is within 4 standard errors of m − 1."""
    state, path, kept = _simulated(network, routing, rounds)
    return _within(path.delays[:kept, None], np.array([state.tasks - 1]), blocks)


def _simulated(network: str, routing: Routing, rounds: int) -> tuple[Network, queues.Path, int]:
    """A stationary path, and how many of its first rounds' tasks have all come back."""
    state, stream = routed(network, routing), np.random.default_rng(0)
    path = queues.simulate(state.p, state.speeds, state.left.draw(stream).astype(int), rounds, stream)
    away = np.flatnonzero(path.delays < 0)
    return state, path, int(away[0]) if len(away) else rounds


def _within(samples: Array | queues.Counts, wanted: Array, blocks: int) -> bool:
    """Whether means of correlated samples [T, n] equal given ones [n] to 4 standard errors (block means)."""
    means = np.array([block.mean(0) for block in np.array_split(samples, blocks)])
    error = means.std(0, ddof=1) / np.sqrt(blocks)
    return bool(np.all(np.abs(samples.mean(0) - wanted) <= 4 * error))


# -- bounds ---------------------------------------------------------------------------------------

CENTRES, NOISE, FIRST = np.array([1.0, -2.0, 3.0, -2.0]), 0.5, 4.0  # of quadratics (w − c_i)²/2; L = 1
SPEEDS, TASKS = np.array([0.3, 1.0, 2.0, 5.0]), 6


def bound_slack(*, bound: str, p: Sequence[float], rounds: int = 1500, paths: int = 12) -> float:
    """8G or 8H over what was measured on quadratics, a mean over `paths`, where it is tightest in T ≤ rounds.

    Constants are known: L = 1, σ² of the noise, M² ≥ ‖∇f − ∇f_i‖², and η = η_max(p). 8G: the mean of ‖∇f‖²
    over the rounds. 8H: the same with rounds weighted by their length, with A measured: λ times the mean of
    𝔱_t (f(μ_t) − f(μ_{t+1})) on the virtual path, which has no delays.
    """
    shares, stream = np.array(p), np.random.default_rng(0)
    network = Network(shares, SPEEDS, TASKS)
    lr = step_limit(network)
    squares, weighted, decrease = [], [], []
    for _ in range(paths):
        path = queues.simulate(shares, SPEEDS, network.left.draw(stream).astype(int), rounds, stream)
        models, virtual = generalized_asyncsgd(path, shares, lr=lr, stream=stream)
        slope = (models[:-1] - CENTRES.mean()) ** 2
        squares.append(slope)
        weighted.append(path.lengths * slope)
        decrease.append(path.lengths * -np.diff((virtual - CENTRES.mean()) ** 2 / 2))
    noise = NOISE**2 + 2 * float(np.max((CENTRES - CENTRES.mean()) ** 2))  # B
    first = float((FIRST - CENTRES.mean()) ** 2) / 2  # f(w⁰) − f*
    if bound == "G":
        vanishing = G(lr=lr, gap=first, noise=noise, rounds=0)
        floor = vanishing.value(network) - first / lr
        return slack(lambda t: 8 * (floor + first / (lr * t)), np.mean(squares, 0))
    bare, fallen = H(lr=lr, gap=0.0, noise=noise).value(network), np.cumsum(np.mean(decrease, 0))
    return slack(lambda t: 8 * (bare + fallen[t - 1] / t / lr), np.mean(weighted, 0))


def generalized_asyncsgd(
    path: queues.Path, p: Array, *, lr: float, stream: np.random.Generator
) -> tuple[Array, Array]:
    """Models w_t and virtual models μ_t [T + 1] along a path; tasks of the start have no effect.

    The gradient of a task is drawn when it is sent. μ moves by it at once, w when the task completes.
    """
    n, rounds = len(p), len(path.routed)
    models, virtual, steps = np.full(rounds + 1, FIRST), np.full(rounds + 1, FIRST), np.zeros(rounds)
    sent = {
        t + int(delay): t for t, delay in enumerate(path.delays) if delay >= 0
    }  # by the round of completion
    for t, client in enumerate(path.routed):
        gradient = models[t] - CENTRES[client] + NOISE * stream.normal()
        steps[t] = lr / (n * p[client]) * gradient
        virtual[t + 1] = virtual[t] - steps[t]
        models[t + 1] = models[t] - (steps[sent[t]] if t in sent else 0.0)
    return models, virtual
