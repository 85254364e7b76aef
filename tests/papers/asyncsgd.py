"""Alahyane et al., Generalized AsyncSGD (arXiv 2502.08206, 2025): a simulated network, §5, costs, bounds."""

from __future__ import annotations

import functools
import heapq
import math
import operator
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache

import numpy as np
from numpy.typing import NDArray

from fl_core.streams import stream
from fl_core.theory import optimum
from fl_core.theory.jackson import Array
from fl_core.theory.routing import G, H, QueueingNetwork, balanced, uniform
from tests.papers.slack import slack

# A plain simulation of the network, round by round: checks the formulas, and replaces missing ones.
#
# Alahyane et al., 2025, §2.1 and Appendix G.2. In round t a task is routed to client A_t, then the network
# runs until the next completion, at client C_t. X_t counts the tasks that are left then, D_t the completions
# between a task's routing and its own. E[D_i] = E[X_i] (Theorem 3.1) holds for any law of service; the
# formulas for E[X] need Exp(μ_i).

Counts = NDArray[np.integer]
Service = Callable[[int, np.random.Generator], float]  # the length of one service at a client


@dataclass(frozen=True, eq=False)
class Path:
    """T rounds of one network with n clients."""

    routed: Counts  # [T], A_t
    completed: Counts  # [T], C_t
    lengths: Array  # [T], 𝔱_t
    left: Counts  # [T, n], X_t
    delays: Counts  # [T], D_t of the task routed in round t; −1 where it was still in flight at the end


def simulate(
    p: Array,
    speeds: Array,
    start: Counts,
    rounds: int,
    stream: np.random.Generator,
    *,
    service: Service | None = None,
) -> Path:
    """T = `rounds` rounds from X_0 = `start` [n], m − 1 tasks; service takes Exp(μ_i) unless given."""
    n = len(speeds)
    service = service or (lambda client, stream: stream.exponential(1 / speeds[client]))
    routed = stream.choice(n, rounds, p=p)
    completed, delays = np.empty(rounds, int), np.full(rounds, -1)
    lengths, left = np.empty(rounds), np.empty((rounds, n), int)
    queues = [
        deque([-1] * tasks) for tasks in start
    ]  # the round that routed each task; −1: there from the start
    ends = [(service(client, stream), client) for client in range(n) if queues[client]]
    heapq.heapify(ends)
    counts, now = np.array(start, int), 0.0
    for t, client in enumerate(routed.tolist()):
        queues[client].append(t)
        counts[client] += 1
        if len(queues[client]) == 1:
            heapq.heappush(ends, (now + service(client, stream), client))
        end, winner = heapq.heappop(ends)
        task = queues[winner].popleft()
        if task >= 0:
            delays[task] = t - task
        if queues[winner]:
            heapq.heappush(ends, (end + service(winner, stream), winner))
        counts[winner] -= 1
        completed[t], lengths[t], left[t], now = winner, end - now, counts, end
    return Path(routed, completed, lengths, left, delays)


# Closed forms of Alahyane et al. (arXiv 2502.08206, 2025): numbers of rounds, optima, shapes.
#
# Networks are named by the section that describes them: `5.1` (n = 20, m = 100, μ_i = e^{i/100}), `5.2` (3 ×
# 10 clients of mean service 100, 10 and 1, m = 30) and `small` (three clients, for a simulation that ends
# soon). η = .01, L = 1, A = 15, B = σ² + 2M² = 209 throughout, as in §5.2.

PER_ROUND = G(lr=0.01, gap=15, noise=209, rounds=3000)
PER_TIME = H(lr=0.01, gap=15, noise=209)
NETWORKS = {  # speeds μ_i [n] and tasks m
    "5.1": (np.exp(np.arange(1, 21) / 100), 100),
    "5.2": (np.repeat([0.01, 0.1, 1.0], 10), 30),
    "small": (np.array([1.0, 2.0, 0.7]), 6),
}
Routing = str | Sequence[float]  # uniform, balanced, G, H, or parts of a whole [n]


@cache
def _optimal(bound: str, network: str, tasks: int) -> optimum.Optimum:
    """Where Adam ends from uniform routing, the paper's only start (§5)."""
    objective: G | H = PER_ROUND if bound == "G" else PER_TIME
    return optimum.optimise(objective, NETWORKS[network][0], tasks, restarts=False)[0]


def routed(network: str, routing: Routing, tasks: int | None = None) -> QueueingNetwork:
    """A network under a routing, with its usual number of tasks or another."""
    speeds, usual = NETWORKS[network]
    m = tasks or usual
    if not isinstance(routing, str):
        p = np.repeat(routing, len(speeds) // len(routing))
        p = p / p.sum()
    elif routing in {"G", "H"}:
        p = _optimal(routing, network, m).p
    else:
        p = uniform(len(speeds)) if routing == "uniform" else balanced(speeds)
    return QueueingNetwork(p, speeds, m)


# -- numbers of §5 --------------------------------------------------------------------------------


def rounds(*, network: str, routing: Routing, time: float) -> float:
    """λ · time: rounds that a routing completes on average; a value may stand for a cluster of clients."""
    return time * routed(network, routing).throughput


def share(*, network: str, routing: Routing, client: int, tasks: int | None = None) -> float:
    """p_i of a client, counted from 0, the slowest."""
    return float(routed(network, routing, tasks).p[client])


def furthest(*, network: str, routing: Routing, printed: Sequence[float]) -> float:
    """The largest |p_i − printed|; a printed value stands for a cluster of clients."""
    p = routed(network, routing).p
    return float(np.abs(p - np.repeat(printed, len(p) // len(printed))).max())


def slowdown(*, network: str, routing: Routing, against: Routing) -> float:
    """How many times longer a number of rounds takes under one routing than under another."""
    return routed(network, against).throughput / routed(network, routing).throughput


def best_concurrency(*, lr: float, clients: int, divisor: float, limit: int) -> int:
    """m* ≤ limit, which minimises H under uniform routing for speeds μ_i = e^{i/divisor}."""
    speeds = np.exp(np.arange(1, clients + 1) / divisor)
    bound, p = H(lr=lr, gap=15, noise=209), uniform(clients)
    return min(range(1, limit + 1), key=lambda tasks: bound.value(QueueingNetwork(p, speeds, tasks)))


def best_concurrency_falls(*, lrs: list[float], clients: int, divisor: float, limit: int) -> bool:
    """Whether m* falls from each learning rate to the next larger one (Fig. 2)."""
    best = [best_concurrency(lr=lr, clients=clients, divisor=divisor, limit=limit) for lr in sorted(lrs)]
    return bool(np.all(np.diff(best) < 0))


# -- shapes ---------------------------------------------------------------------------------------


def third_term(*, ratio: float, tasks: int, share: float) -> float:
    """Σ E[D_i]/p_i² for two clients, the other `ratio` times as fast as the one with this share (Fig. 1)."""
    network = QueueingNetwork(np.array([share, 1 - share]), np.array([1.0, ratio]), tasks)
    return float(np.sum(network.relative_delay / network.p**2))


def _figure_1(ratio: float, tasks: int) -> tuple[Array, Array]:
    shares = np.linspace(0.01, 0.99, 99)
    return shares, np.array([third_term(ratio=ratio, tasks=tasks, share=weight) for weight in shares])


def third_term_turns(*, ratio: float, tasks: int) -> bool:
    """Whether the curve of Fig. 1 both rises and falls."""
    steps = np.diff(_figure_1(ratio, tasks)[1])
    return bool(np.any(steps > 0) and np.any(steps < 0))


def best_slow_share(*, ratio: float, tasks: int) -> float:
    """The share of the slow client, in hundredths, where the third term is least."""
    shares, terms = _figure_1(ratio, tasks)
    return float(shares[np.argmin(terms)])


def skew_grows(*, network: str, tasks: Sequence[int]) -> bool:
    """Whether the slowest client's share under G-optimised routing grows with the number of tasks."""
    return bool(np.all(np.diff([share(network=network, routing="G", client=0, tasks=m) for m in tasks]) > 0))


def falls_with_speed(*, network: str) -> bool:
    """Whether G-optimised routing sends fewer tasks to faster clients, the slowest client aside."""
    return bool(np.all(np.diff(routed(network, "G").p[1:]) < 0))


def grows_with_tasks(*, bound: str, network: str, routing: str, limit: int) -> bool:
    """Whether a bound grows with every additional task, from m = 1 to `limit`."""
    return bool(np.all(np.diff(_by_tasks(bound, network, routing, limit)) > 0))


def best_tasks(*, bound: str, network: str, routing: str, limit: int) -> int:
    """The number of tasks m ≤ limit of least bound."""
    return int(np.argmin(_by_tasks(bound, network, routing, limit))) + 1


def has_interior_optimum(*, bound: str, network: str, routing: str, limit: int) -> bool:
    """Whether a bound is least at some 1 < m < limit."""
    return 1 < best_tasks(bound=bound, network=network, routing=routing, limit=limit) < limit


def _by_tasks(bound: str, network: str, routing: str, limit: int) -> list[float]:
    objective: G | H = PER_ROUND if bound == "G" else PER_TIME
    return [objective.value(routed(network, routing, m)) for m in range(1, limit + 1)]


# -- closed forms ---------------------------------------------------------------------------------


def g_uniform(g: G, n: int, tasks: int) -> float:
    """G under uniform routing, whatever the speeds are (§3.2)."""
    step = g.lr * g.smoothness
    return g.gap / (g.lr * (g.rounds + 1)) + step * g.noise * (1 + step * tasks * (tasks - 1))


def g_balanced(g: G, speeds: Array, tasks: int) -> float:
    """G under p ∝ μ (§3.2)."""
    n, total, step = len(speeds), np.sum(speeds), g.lr * g.smoothness
    spread = step * g.noise * total / n**2 * np.sum(1 / speeds)
    delay = step**2 * g.noise * tasks * (tasks - 1) * total**2 / n**3 * np.sum(1 / speeds**2)
    return float(g.gap / (g.lr * (g.rounds + 1)) + spread + delay)


def step_limit(network: QueueingNetwork) -> float:
    """L η_max for the largest step size η_max with a valid bound 8G.

    The paper's formula is lost in the scan. Re-derived from its proof (Lemmas D.1, D.2): the step must meet
    η ≤ 1/(4L S₁) and 4η²L² S₂ ≤ 1/2, with S₁ = Σ 1/(n²p_i) and S₂ = m Σ E[X_i]/(n²p_i²).
    """
    n, p = len(network.p), network.p
    spread = np.sum(1 / p) / n**2
    delay = network.tasks * np.sum(network.relative_delay / p**2) / n**2
    limit = 1 / (4 * spread)
    return float(min(limit, 1 / np.sqrt(8 * delay)) if delay else limit)


def closed_form(*, network: str, routing: str) -> float:
    """G of a simple routing by its closed form over G by Buzen's recursion."""
    speeds, m = NETWORKS[network]
    uniformly = routing == "uniform"
    simple = g_uniform(PER_ROUND, len(speeds), m) if uniformly else g_balanced(PER_ROUND, speeds, m)
    return simple / PER_ROUND.value(routed(network, routing))


def balanced_throughput(*, network: str) -> float:
    """λ = Σμ · m/(n + m − 1) of balanced routing over λ by Buzen's recursion."""
    speeds, m = NETWORKS[network]
    return float(speeds.sum() * m / (len(speeds) + m - 1) / routed(network, "balanced").throughput)


# The cost of the formulas of Alahyane et al. (arXiv 2502.08206, 2025): multiplications (§1.2, E.2, F.2).


@dataclass
class Tally:
    """How many multiplications there were."""

    multiplications: int = 0


@dataclass(frozen=True)
class CountedNumber:
    """A number whose multiplications are counted; additions are free."""

    value: float
    tally: Tally = field(compare=False)

    def __mul__(self, other: CountedNumber) -> CountedNumber:
        self.tally.multiplications += 1
        return CountedNumber(self.value * other.value, self.tally)

    def __add__(self, other: CountedNumber) -> CountedNumber:
        return CountedNumber(self.value + other.value, self.tally)


def normalizers(loads: Sequence[CountedNumber], tasks: int) -> list[CountedNumber]:
    """Z_0, …, Z_m by Buzen's recursion Z_{k,j} = Z_{k−1,j} + ρ_k Z_{k,j−1} (Proposition 2.1)."""
    unit = CountedNumber(1.0, loads[0].tally)
    z = [unit]
    for _ in range(tasks):
        z.append(loads[0] * z[-1])
    for load in loads[1:]:
        for j in range(1, tasks + 1):
            z[j] = z[j] + load * z[j - 1]
    return z


def means(loads: Sequence[CountedNumber], tasks: int) -> list[CountedNumber]:
    """Z E[N_i] = Σ_k ρ_i^k Z_{m−k} [n] (eq. 8)."""
    z = normalizers(loads, tasks)
    powers = [_powers(load, tasks) for load in loads]
    return [_sum(own[k - 1] * z[tasks - k] for k in range(1, tasks + 1)) for own in powers]


def products(loads: Sequence[CountedNumber], tasks: int) -> list[CountedNumber]:
    """Z E[N_i N_j] for i ≠ j [n (n − 1)], each by the double sum as printed (eq. 9)."""
    z = normalizers(loads, tasks)
    powers = [_powers(load, tasks) for load in loads]
    pairs = [(i, j) for i in range(len(loads)) for j in range(len(loads)) if i != j]
    both = [(k, other) for k in range(1, tasks) for other in range(1, tasks - k + 1)]
    return [
        _sum(powers[i][k - 1] * powers[j][other - 1] * z[tasks - k - other] for k, other in both)
        for i, j in pairs
    ]


FORMULAS: dict[str, Callable[[Sequence[CountedNumber], int], list[CountedNumber]]] = {
    "normalizers": normalizers,
    "means": means,
    "products": products,
}


def multiplications(*, formula: str, clients: int, tasks: int) -> int:
    """Number of multiplications that a formula takes for n clients and m tasks."""
    tally = Tally()
    loads = [CountedNumber(float(load), tally) for load in stream(0, "loads").uniform(0.1, 1, clients)]
    FORMULAS[formula](loads, tasks)
    return tally.multiplications


def growth(*, formula: str, of: str, clients: int, tasks: int) -> float:
    """Return d log(multiplications) / d log n or m, from given to twice as many clients or tasks."""
    more = (2 * clients, tasks) if of == "clients" else (clients, 2 * tasks)
    few = multiplications(formula=formula, clients=clients, tasks=tasks)
    many = multiplications(formula=formula, clients=more[0], tasks=more[1])
    return math.log2(many / few)


def _powers(load: CountedNumber, tasks: int) -> list[CountedNumber]:
    """ρ, ρ², …, ρ^m."""
    powers = [load]
    while len(powers) < tasks:
        powers.append(powers[-1] * load)
    return powers


def _sum(terms: Iterable[CountedNumber]) -> CountedNumber:
    return functools.reduce(operator.add, terms)


# Delays and gradients in Alahyane et al. (arXiv 2502.08206, 2025): Theorem 3.1, 8G and 8H.

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


def _simulated(network: str, routing: Routing, rounds: int) -> tuple[QueueingNetwork, Path, int]:
    """A stationary path, and how many of its first rounds' tasks have all come back."""
    state, stream = routed(network, routing), np.random.default_rng(0)
    path = simulate(state.p, state.speeds, state.left.draw(stream).astype(int), rounds, stream)
    away = np.flatnonzero(path.delays < 0)
    return state, path, int(away[0]) if len(away) else rounds


def _within(samples: Array | Counts, wanted: Array, blocks: int) -> bool:
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
    network = QueueingNetwork(shares, SPEEDS, TASKS)
    lr = step_limit(network)
    squares, weighted, decrease = [], [], []
    for _ in range(paths):
        path = simulate(shares, SPEEDS, network.left.draw(stream).astype(int), rounds, stream)
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
    path: Path, p: Array, *, lr: float, stream: np.random.Generator
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
