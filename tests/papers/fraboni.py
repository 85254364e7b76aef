"""Fraboni, Vidal, Kameni, Lorenzi (JMLR 2023): theorems, constants of schemes, schedules and quadratics."""

import heapq
import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import islice

import numpy as np

from fl_core.theory import weights
from fl_core.theory.jackson import Array
from tests.papers.slack import slack

# Table 2 of Fraboni et al. (JMLR 2023): the constants of each scheme's convergence, as exact rationals.
#
# Formulas: §4.2 (synchronous FedAvg), §4.3 (asynchronous), §4.4 (FedFix), Appendix C.2 (client sampling).
# Times τ_i are fractions in any one unit; τ_0 is the shortest of them and τ_M the longest.

ONE, ZERO = Fraction(1), Fraction(0)


@dataclass(frozen=True)
class Scheme:
    """One column of Table 2."""

    weights: tuple[Fraction, ...]  # d_i
    alpha: Fraction  # α: E[ω_i ω_j] = α q_i q_j for i ≠ j (Property 1)
    beta: Fraction  # β = max_i d_i − α q_i
    periods: tuple[Fraction, ...]  # the server aggregates once in each of these lengths of time
    delay: int  # τ: no update is older than this many aggregations
    window: int  # W: q_i sums to W p_i in every window of so many aggregations (Property 2)

    def aggregations(self, duration: Fraction) -> int:
        """N: aggregations within this time, as the published code counts; the paper does not round."""
        return sum(duration // period for period in self.periods)


def fedavg(p: Sequence[Fraction], times: Sequence[Fraction]) -> Scheme:
    """Synchronous FedAvg: all clients, at the pace of the slowest."""
    return Scheme(tuple(p), ONE, ZERO, (max(times),), 0, 1)


def async_fedavg(p: Sequence[Fraction], times: Sequence[Fraction]) -> Scheme:
    """Asynchronous FedAvg with the weights of eq. (12).

    While the slowest client works once, client j returns at most ⌈τ_M/τ_j⌉ times; in ν = lcm{τ_i} the cycle
    closes.
    """
    slowest, cycle = max(times), common_multiple(times)
    d = tuple(weights.time_based(p, times))
    return Scheme(
        weights=d,
        alpha=ZERO,
        beta=max(d),
        periods=tuple(times),
        delay=sum(math.ceil(slowest / time) for time in times) - 1,
        window=int(sum(cycle / time for time in times)),
    )


def fedfix(p: Sequence[Fraction], times: Sequence[Fraction], period: Fraction) -> Scheme:
    """FedFix with the weights of eq. (14): client i is in every N'_i-th aggregation, N'_i = ⌈τ_i/Δt⌉."""
    steps = [math.ceil(time / period) for time in times]
    return Scheme(
        weights=tuple(weights.fedfix(p, times, period)),
        alpha=ONE,
        beta=ZERO,
        periods=(period,),
        delay=max(steps) - 1,
        window=math.lcm(*steps),
    )


def uniform_sampling(p: Sequence[Fraction], times: Sequence[Fraction], size: int) -> Scheme:
    """Synchronous rounds of `size` clients drawn uniformly without replacement, d_i = (M/m) p_i (C.2).

    The period is the expected length of a round.
    """
    clients = len(p)
    factor = Fraction(clients, size)
    alpha = Fraction(clients * (size - 1), size * (clients - 1)) if clients > 1 else ONE
    draws = math.comb(clients, size)
    cumulative = [Fraction(math.comb(rank, size), draws) for rank in range(clients + 1)]
    period = _expected_maximum(sorted(times), cumulative)
    d = tuple(factor * p_i for p_i in p)
    return Scheme(d, alpha, max(p) * (factor - alpha), (period,), 0, 1)


def md_sampling(p: Sequence[Fraction], times: Sequence[Fraction], size: int) -> Scheme:
    """Synchronous rounds of `size` independent draws with probabilities p, weight 1/m per draw (C.2).

    The period is the expected length of a round.
    """
    order = sorted(range(len(p)), key=lambda client: times[client])
    total, cumulative = ZERO, [ZERO]
    for client in order:
        total += p[client]
        cumulative.append(total**size)
    period = _expected_maximum([times[client] for client in order], cumulative)
    share = Fraction(1, size)
    return Scheme((share,) * len(p), 1 - share, share, (period,), 0, 1)


def common_multiple(times: Sequence[Fraction]) -> Fraction:
    """The least length of time that is a whole number of each of these."""
    return Fraction(
        math.lcm(*(time.numerator for time in times)), math.gcd(*(time.denominator for time in times))
    )


def common_divisor(times: Sequence[Fraction]) -> Fraction:
    """The greatest unit in which all of these are whole numbers."""
    return Fraction(
        math.gcd(*(time.numerator for time in times)), math.lcm(*(time.denominator for time in times))
    )


def _expected_maximum(ranked: Sequence[Fraction], cumulative: Sequence[Fraction]) -> Fraction:
    """Mean of the largest time drawn, from the ranked times and P(all are among the first k), k = 0, …, M."""
    return sum((time * (cumulative[k + 1] - cumulative[k]) for k, time in enumerate(ranked)), ZERO)


# Convergence of asynchronous aggregation: Theorems 1, 2, 4 and Corollaries 3, 5, with their constants.
#
# Fraboni, Vidal, Kameni, Lorenzi (JMLR 2023). The theorems are printed with O(·); the constants here are
# those of the proof in Appendix A.5, in the last inequality that shows them. Losses L_i are convex and
# L-smooth, θ^{n,k} is the server's model after k of K virtual steps of aggregation n, L^n = Σ q_i(n) L_i the
# problem that aggregation n minimises in expectation, and q(n) = Σ q_i(n).
#
# The proof compares θ^{n,k} with local models as if η_g q(n) = 1 (eq. 22). With K = 1 this is not needed;
# for K > 1 and other weights the constants are the paper's, not ours.


@dataclass(frozen=True)
class FraboniSetting:
    """The quantities of scheme and step sizes in the bounds."""

    lr: float  # η_l
    rounds: int  # N
    alpha: float  # α of Property 1
    beta: float  # β = max_i d_i(n) − α q_i(n)
    delay: int  # τ = max_n n − ρ_i(n)
    smoothness: float = 1.0  # L
    steps: int = 1  # K
    server_lr: float = 1.0  # η_g
    weight: float = 1.0  # ρ = max(1, max_n q(n))

    @property
    def step(self) -> float:
        """η̃ = η_g η_l."""
        return self.server_lr * self.lr

    @property
    def drift(self) -> float:
        """D = 6 η_l² (K−1)² L² (Lemma 8)."""
        return 6 * (self.lr * (self.steps - 1) * self.smoothness) ** 2

    @property
    def late_step(self) -> float:
        """η̃ + 16ρL η̃² K² τ²: a step, and what its delay adds."""
        stale = (self.step * self.steps * self.delay) ** 2
        return self.step + 16 * self.weight * self.smoothness * stale

    def conditions(self) -> dict[str, bool]:
        """The proof's conditions on the step sizes (A.6), by lemma."""
        rho, L, step = self.weight, self.smoothness, self.step
        slack = 4 * self.drift + 12 * rho * (2 * self.alpha + self.beta) * self.late_step * L
        moved = 12 * rho**2 * (self.alpha + self.beta) * (step * self.steps * self.delay * L) ** 2
        return {
            "Lemma 8": self.drift <= 1 / 2,
            "Lemma 11": moved <= 1 / 2,
            "A.5, models": 3 * rho * (self.alpha + self.beta) * step * L <= 1,
            "A.5, losses": slack <= 1,
        }

    def lr_limit(self) -> float:
        """η_l below which Theorem 1 holds as printed: (1/48KL) min(1, 1/(3ρ²η_g(τ+1))).

        It assumes β ≤ 1 (A.6), which asynchronous FedAvg with unequal times does not meet:
        `conditions` decide.
        """
        late = 3 * self.weight**2 * self.server_lr * (self.delay + 1)
        return min(1, 1 / late) / (48 * self.steps * self.smoothness)


@dataclass(frozen=True)
class FraboniBound:
    """The terms of Theorem 1."""

    residual: float  # R: optima of the L^n differ from that of their mean
    start: float  # ε_F: distance of the first model
    local: float  # ε_K: local steps, 0 for K = 1
    joint: float  # ε_α: clients that aggregate together
    alone: float  # ε_β: the noise of participation

    @property
    def value(self) -> float:
        """Bounds the mean of E[L^n(θ^{n,k})] − min L^n over n and k."""
        return self.residual + self.vanishing

    @property
    def vanishing(self) -> float:
        """ε_F + ε_K + ε_α + ε_β. It bounds E[L(θ^{n,k})] − min L where q_i(n) = p_i always (Cor. 3)."""
        return self.start + self.local + self.joint + self.alone


def theorem_1(
    run: FraboniSetting, distance: float, residual: float, sigma1: float, sigma2: float
) -> FraboniBound:
    """Theorem 1 with the constants of A.5.

    `distance` is ‖θ^0 − θ̄‖, θ̄ the optimum of the mean L̄ of the L^n; `residual` is R = mean_n L^n(θ̄) −
    min L^n; with θ^n* the optimum of L^n and q̃ = q/Σq, sigma1 is mean_n Σ q̃_i E‖∇L_i(θ^n*, ξ)‖², and
    sigma2 is the same with q̃_i². Raises ValueError where the step sizes are outside the proof's
    conditions.
    """
    failed = [name for name, met in run.conditions().items() if not met]
    if failed:
        raise ValueError(f"the step sizes are too large for Theorem 1: {', '.join(failed)}")
    rho, L, D, late = run.weight, run.smoothness, run.drift, run.late_step
    local = 4 * D * residual + 6 * rho * (run.lr * (run.steps - 1)) ** 2 * L * sigma1
    joint = run.alpha * late * (24 * rho * L * residual + 3 * rho**2 * D * sigma1 + 6 * rho**2 * sigma2)
    alone = run.beta * late * (12 * rho * L * residual + 6 * rho**2 * sigma1)
    return FraboniBound(residual, distance**2 / (run.step * run.steps * run.rounds), local, joint, alone)


def chi_square(wanted: Array, given: Array) -> Array:
    """χ²_n = Σ_{j: s̃_j > 0} (r_j − s̃_j)²/s̃_j [...] of wanted r [J] and given s̃ [..., J] importances (B.1)."""
    there = given > 0
    total: Array = np.where(there, (wanted - given) ** 2 / np.where(there, given, 1), 0).sum(-1)
    return total


def theorem_2(
    smoothness: float, first: float, *, chi2: Array, totals: Array, unfair: Array, unseen: Array
) -> float:
    """Bounds the mean of E‖∇L(θ^{n,k})‖² for the wanted problem L (B.2).

    `first` is Theorem 1's value. By round n [N]: chi2, totals q(n), `unfair` Σ_j s̃_j [F_j(θ^n*) − min
    F_j], and `unseen` Σ_{j: s̃_j = 0} r_j E[F_j(θ^{n,k}) − min F_j].
    """
    terms = np.max((2 * chi2 + 1) / totals) * first + 2 * np.mean(chi2 * unfair + unseen)
    return float(4 * smoothness * terms)


def theorem_4(run: FraboniSetting, bound: FraboniBound, window: int, gradient: float) -> float:
    """Bounds the mean of E[L(θ^{n,k})] − min L; Σ q_i(n) = W p_i in windows of W rounds, and E‖g_i‖² ≤ B².

    ε_W = ρ η̃ K (W−1) B²: within a window a loss moves by B times a path of at most (W−1)K steps of length
    η̃ρB.
    """
    return bound.vanishing + run.weight * run.step * run.steps * (window - 1) * gradient**2


# Which clients participate when: the schedules of Fraboni et al. (JMLR 2023), in exact time.
#
# Scenario F-X is the grid of the published code: τ_i = 1 − (X/100) i/(M − 1).

Arrivals = dict[int, int]  # of one aggregation: client → version of the model that it started from


def hardware(clients: int, spread: int) -> list[Fraction]:
    """τ_i [M] of scenario F-`spread`, client 0 the slowest."""
    return [1 - Fraction(spread, 100) * Fraction(i, max(clients - 1, 1)) for i in range(clients)]


def equal(clients: int) -> list[Fraction]:
    """p_i = 1/M [M]."""
    return [Fraction(1, clients)] * clients


def synchronous(times: Sequence[Fraction]) -> Iterator[Arrivals]:
    """FedAvg: all clients, every time."""
    n = 0
    while True:
        yield dict.fromkeys(range(len(times)), n)
        n += 1


def one_by_one(times: Sequence[Fraction]) -> Iterator[Arrivals]:
    """Asynchronous FedAvg: one client per aggregation, ties to the first."""
    queue, version, n = [(time, client) for client, time in enumerate(times)], [0] * len(times), 0
    heapq.heapify(queue)
    while True:
        now, client = queue[0]
        yield {client: version[client]}
        n += 1
        version[client] = n
        heapq.heapreplace(queue, (now + times[client], client))


def ticks(times: Sequence[Fraction], period: Fraction) -> Iterator[Arrivals]:
    """FedFix: every Δt the clients that returned, possibly none; they wait for the tick."""
    back, version, n = list(times), [0] * len(times), 0
    while True:
        now = (n + 1) * period
        here = [client for client, time in enumerate(back) if time <= now]
        yield {client: version[client] for client in here}
        n += 1
        for client in here:
            back[client], version[client] = now + times[client], n


def buffers(times: Sequence[Fraction], size: int) -> Iterator[Arrivals]:
    """FedBuff-c: the c that return first wait for each other and restart together."""
    back, version, n = list(times), [0] * len(times), 0
    while True:
        here = sorted(range(len(times)), key=lambda client: (back[client], client))[:size]
        yield {client: version[client] for client in here}
        n += 1
        now = max(back[client] for client in here)
        for client in here:
            back[client], version[client] = now + times[client], n


def scheme_of(name: str, times: Sequence[Fraction], period: str = "1/2") -> tuple[Scheme, Iterator[Arrivals]]:
    """Table 2's column for a scheme, and its schedule."""
    p, length = equal(len(times)), Fraction(period)
    return {
        "synchronous": lambda: (fedavg(p, times), synchronous(times)),
        "asynchronous": lambda: (async_fedavg(p, times), one_by_one(times)),
        "fedfix": lambda: (fedfix(p, times, length), ticks(times, length)),
    }[name]()


# Fraboni et al. (JMLR 2023) on quadratics: Examples 1 and 2, four clients under F80.
#
# On L_i = ½‖θ − θ_i*‖², K local steps move a model by φ(θ_i* − θ), φ = 1 − (1 − η_l)^K.

CENTRES = (1.0, -2.0, 3.0, 0.5)  # θ_i* of the four clients
ROUNDS = 12_000  # of theirs

# -- examples and quadratics ----------------------------------------------------------------------


def example_1(*, phi: float, rounds: int, optimum: float = 1.0) -> list[float]:
    """θ^0, …, θ^rounds of θ^{n+2} = θ^{n+1} + φ(θ* − θ^n), θ^0 = 0, θ^1 = φθ* or, if φ is 1, θ*."""
    models = [0.0, phi * optimum]
    while len(models) <= rounds:
        models.append(models[-1] + phi * (optimum - models[-2]))
    return models[: rounds + 1]


def example_1_ends(*, phi: float, optimum: float = 1.0, rounds: int = 5000) -> list[float]:
    """The last six models of Example 1: six times θ* where it converges."""
    return example_1(phi=phi, rounds=rounds, optimum=optimum)[-6:]


def example_2_attractor(*, q: Sequence[str], phi: str, optima: Sequence[int]) -> list[Fraction]:
    """The two-cycle of Example 2 as fractions: x = y + q₁φ(θ₁* − x), y = x + q₂φ(θ₂* − y)."""
    (first, second), step, (a, b) = map(Fraction, q), Fraction(phi), optima
    whole = first + second + first * second * step
    after_1 = (first * a * (1 + second * step) + second * b) / whole
    return [after_1, (after_1 + second * step * b) / (1 + second * step)]


def _models(
    schedule: Iterable[Arrivals], d: Sequence[float], phi: float, optima: Sequence[float]
) -> Iterator[float]:
    """θ^1, θ^2, … of a schedule, from θ^0 = 0, where a client moves its model by φ(θ_i* − θ)."""
    models = [0.0]
    for here in schedule:
        models.append(models[-1] + sum(d[i] * phi * (optima[i] - models[v]) for i, v in here.items()))
        yield models[-1]


def four_clients(*, scheme: str, phi: float) -> Array:
    """Models of four quadratics under F80 [ROUNDS]; weights by the names of the published code."""
    times = hardware(4, 80)
    p, half = equal(4), Fraction(1, 2)
    counts = weights.fedbuff_participations(times, 2, ROUNDS)
    schedule, d = {
        "identical": (one_by_one(times), [Fraction(1)] * 4),
        "time_based": (one_by_one(times), weights.time_based(p, times)),
        "fedfix": (ticks(times, half), weights.fedfix(p, times, half)),
        "fedbuff identical": (buffers(times, 2), [half] * 4),
        "fedbuff weight": (buffers(times, 2), weights.by_participation(p, counts, ROUNDS)),
    }[scheme]
    played = islice(schedule, ROUNDS)
    return np.array(list(_models(played, [float(each) for each in d], phi, CENTRES)))


def passes_through(*, scheme: str, phi: float, printed: float) -> bool:
    """Whether a mean of 2000 consecutive models is what the published code printed, to its last digit.

    The last 2000 models of a run of unknown length: those that end anywhere in a cycle of 732 arrivals.
    """
    sums = np.cumsum(four_clients(scheme=scheme, phi=phi)[-(2000 + 732) :])
    means = (sums[2000:] - sums[:-2000]) / 2000
    return bool(means.min() - 5e-6 <= printed <= means.max() + 5e-6)


# Closed forms of Fraboni et al. (JMLR 2023): Table 2, limits of FedFix, exponential times.

# -- Table 2 --------------------------------------------------------------------------------------


def window_is_fair(*, scheme: str, clients: int, spread: int, period: str = "1/2") -> bool:
    """Whether the weights of W simulated aggregations add up to W p_i for every client (Property 2)."""
    column, schedule = scheme_of(scheme, hardware(clients, spread), period)
    given = [Fraction(0)] * clients
    for here in islice(schedule, column.window):
        for client in here:
            given[client] += column.weights[client]
    return given == [Fraction(column.window, clients)] * clients


def bounds_hold(*, scheme: str, clients: list[int], spreads: list[int], periods: list[str]) -> bool:
    """Whether delay and window lie between the bounds that Table 2 prints, on every such hardware.

    Times are counted in the largest unit in which they are whole numbers, as §4.1 has it.
    """
    cases = [(hardware(m, x), period) for m in clients for x in spreads for period in periods]
    return all(_within_printed(scheme, times, period) for times, period in cases)


def _within_printed(name: str, times: Sequence[Fraction], period: str) -> bool:
    scheme, _ = scheme_of(name, times, period)
    clients, ratio = len(times), math.ceil(max(times) / min(times))
    if name == "synchronous":
        return (scheme.delay, scheme.window) == (0, 1)
    if name == "fedfix":
        return scheme.delay <= ratio and scheme.window <= clients * ratio**clients
    slowest = int(max(times) / common_divisor(times))
    return (
        clients - 1 <= scheme.delay <= clients * ratio
        and clients <= scheme.window <= clients * slowest ** (clients - 1)
        and scheme.beta <= max(times) / min(times)
    )


def as_often_as_clients(*, clients: list[int], spreads: list[int], duration: int) -> bool:
    """Whether asynchronous FedAvg always aggregates at least M times as often as the synchronous one."""

    def aggregations(name: str, m: int, x: int) -> int:
        return scheme_of(name, hardware(m, x))[0].aggregations(Fraction(duration))

    return all(
        aggregations("asynchronous", m, x) >= m * aggregations("synchronous", m, x)
        for m in clients
        for x in spreads
    )


# -- exponential times (§4.1) ---------------------------------------------------------------------


def async_under_exponential_times(*, clients: int, spread: int) -> list[Fraction]:
    """M q̃_i of asynchronous FedAvg with weights (12): 1 where they are right [M].

    A client starts again at once and returns once in τ_i on average: a share (1/τ_i)/Σ(1/τ_j) of arrivals.
    """
    times = hardware(clients, spread)
    d, rate = weights.time_based(equal(clients), times), sum(1 / time for time in times)
    return [clients * d_i / time / rate for d_i, time in zip(d, times, strict=True)]


def fedfix_under_exponential_times(*, clients: int, spread: int, period: str) -> list[float]:
    """M q̃_i of FedFix with weights (14): 1 where they are right [M].

    A client at work when a window of length Δt opens returns within it with probability 1 − e^{−Δt/τ_i}.
    """
    times, length = hardware(clients, spread), Fraction(period)
    d = weights.fedfix(equal(clients), times, length)
    return [clients * float(d_i) * -math.expm1(-length / time) for d_i, time in zip(d, times, strict=True)]


def step_limit_suffices(*, clients: int, spread: int, steps: int) -> bool:
    """Whether the printed limit of η_l meets all that the proof asks of asynchronous FedAvg."""
    column = async_fedavg(equal(clients), hardware(clients, spread))
    weight = float(max(column.weights))
    run = FraboniSetting(1.0, 1, 0.0, float(column.beta), column.delay, steps=steps, weight=weight)
    return all(replace(run, lr=run.lr_limit()).conditions().values())


# Theorems 1, 2, 4, Corollaries 3, 5 of Fraboni et al. (JMLR 2023) as bounds; client sampling (C.2, C.3).
#
# Four quadratics L_i = λ_i/2 (θ − θ_i*)² under F80, constants known. The step size is the largest of a grid
# that meets the proof's conditions; means are over n < N, k < K and the seeds.

CURVATURE, NOISE, FIRST = np.array([1.0, 0.6, 0.8, 0.5]), 0.3, 4.0  # λ_i (L = 1), noise of a gradient, θ^0
CLIENTS = len(CENTRES)
OPTIMUM = float(CURVATURE @ np.array(CENTRES) / CURVATURE.sum())  # θ* of L, p_i = 1/4


@dataclass(frozen=True)
class Played:
    """A scheme's run on the quadratics."""

    q: Array  # [N, M], q_i(n)
    run: FraboniSetting
    models: Array  # θ^{n,k} [S, N, K]

    def bound(self, rounds: int) -> FraboniBound:
        """Theorem 1 for the first N aggregations, with the constants of this problem."""
        q = self.q[:rounds]
        pull = q.mean(0) * CURVATURE
        centre = float(pull @ np.array(CENTRES) / pull.sum())  # θ̄
        optima = _optima(q)
        residual = float(np.mean(_losses(q, np.full(len(q), centre)) - _losses(q, optima)))
        square = (CURVATURE * (optima[:, None] - np.array(CENTRES))) ** 2 + NOISE**2
        sigma1, sigma2 = (float((_shares(q) ** power * square).sum(1).mean()) for power in (1, 2))
        return theorem_1(replace(self.run, rounds=rounds), FIRST - centre, residual, sigma1, sigma2)

    def wanted(self) -> Array:
        """L(θ^{n,k}) − min L of every aggregation [N]."""
        excess: Array = _client_losses(self.models).mean(-1) - _client_losses(np.array(OPTIMUM)).mean()
        return excess.mean((0, 2))


def played(scheme: str, steps: int, period: str, rounds: int, seeds: int = 10) -> Played:
    """Of a scheme with fixed times; the delays of its schedule are exact."""
    column, endless = scheme_of(scheme, hardware(CLIENTS, 80), period)
    schedule = list(islice(endless, rounds))
    d = np.array(column.weights, float)
    q = np.array([[d[i] * (i in here) for i in range(CLIENTS)] for here in schedule])
    run = _largest_step(column, steps, rounds, weight=max(1.0, q.sum(1).max()))
    models = virtual_models(schedule, d, lr=run.lr, steps=steps, noise=NOISE, seeds=seeds)
    return Played(q, run, models)


def virtual_models(
    schedule: Sequence[Arrivals], d: Array, *, lr: float, steps: int, noise: float, seeds: int
) -> Array:
    """θ^{n,k} [S, N, K]: the server's model after k of K virtual steps of aggregation n."""
    stream = np.random.default_rng(0)
    models, virtual = [np.full(seeds, FIRST)], np.empty((seeds, len(schedule), steps))
    for n, here in enumerate(schedule):
        local, now = {i: models[version].copy() for i, version in here.items()}, models[-1].copy()
        for k in range(steps):
            virtual[:, n, k] = now
            for i in here:
                gradient = CURVATURE[i] * (local[i] - CENTRES[i]) + noise * stream.normal(size=seeds)
                local[i] -= lr * gradient
                now -= lr * d[i] * gradient
        models.append(now)
    return virtual


# -- the theorems ---------------------------------------------------------------------------------


def theorem_1_slack(*, scheme: str, steps: int, period: str = "1/2", rounds: int = 1000) -> float:
    """The bound of Theorem 1 over the measured mean excess of L^n, where it is tightest in N ≤ rounds."""
    here = played(scheme, steps, period, rounds)
    best = _losses(here.q, _optima(here.q))
    each = [_losses(here.q, here.models[:, :, k]) - best for k in range(steps)]
    return slack(lambda n: here.bound(n).value, np.mean(each, axis=(0, 1)))


def theorem_2_slack(*, scheme: str, steps: int, period: str = "1/2", rounds: int = 500) -> float:
    """The bound of Theorem 2 over the measured mean of ‖∇L‖², where it is tightest in N ≤ rounds.

    Every client is a data type of its own, r_j = 1/4. Asynchronous FedAvg has one of four in an aggregation.
    """
    here = played(scheme, steps, period, rounds)
    given, totals = _shares(here.q), here.q.sum(1)
    if not totals.all():
        raise ValueError("Theorem 2 divides by q(n): no aggregation may be empty")
    chi2 = chi_square(np.full(CLIENTS, 1 / CLIENTS), given)
    unfair = (given * _client_losses(_optima(here.q))).sum(1)
    unseen = (np.where(given > 0, 0.0, 1 / CLIENTS) * _client_losses(here.models).mean((0, 2))).sum(1)
    slopes = (CURVATURE * (here.models[..., None] - np.array(CENTRES))).mean(-1) ** 2

    def bound(n: int) -> float:
        first = here.bound(n).value
        return theorem_2(1.0, first, chi2=chi2[:n], totals=totals[:n], unfair=unfair[:n], unseen=unseen[:n])

    return slack(bound, slopes.mean((0, 2)))


def theorem_4_slack(*, scheme: str, steps: int, windows: int, period: str = "1/2") -> float:
    """The bound of Theorem 4 over the measured mean of L − min L, where it is tightest in N = W, 2W, ….

    B² of Assumption 5 is the largest E‖g_i‖² along the run.
    """
    window = scheme_of(scheme, hardware(CLIENTS, 80), period)[0].window
    here = played(scheme, steps, period, windows * window)
    slopes = np.abs(CURVATURE * (here.models[..., None] - np.array(CENTRES)))
    largest = float(np.sqrt(slopes.max() ** 2 + NOISE**2))
    return slack(lambda n: theorem_4(here.run, here.bound(n), window, largest), here.wanted(), every=window)


def bound_vanishes(*, window: float, delay: float, lr: float) -> bool:
    """Whether Theorem 4's bound tends to 0 for W = N^a, τ = N^b and η_l ∝ N^−c.

    It is taken to do so if it falls at least threefold from N = 1e60 to 1e70 and again to 1e80: late enough
    for the slowest of its terms to have its say. Step sizes outside the conditions do not count.
    """
    values = []
    for rounds in (1e60, 1e70, 1e80):
        run = FraboniSetting(1e-3 * rounds**-lr, int(rounds), 1.0, 1.0, int(rounds**delay))
        if not all(run.conditions().values()):
            return False
        first = theorem_1(run, 1.0, 0.1, 1.0, 1.0)
        values.append(theorem_4(run, first, int(rounds**window), 1.0))
    return values[0] > 3 * values[1] > 9 * values[2]


def any_rate_vanishes(*, window: float, delay: float) -> bool:
    """Whether it does for any c = 0.1, 0.2, …, 1.5."""
    return any(bound_vanishes(window=window, delay=delay, lr=c / 10) for c in range(1, 16))


# -- client sampling (C.2, C.3) -------------------------------------------------------------------


def sampled(name: str, size: int, clients: int = CLIENTS) -> Scheme:
    """Rounds of `size` clients, drawn uniformly or by MD sampling."""
    scheme = {"uniform": uniform_sampling, "MD": md_sampling}[name]
    return scheme(equal(clients), hardware(clients, 80), size)


def property_1_holds(*, sampling: str, clients: int, size: int) -> bool:
    """Whether E[ω_i] = p_i and E[ω_i ω_j] = α p_i p_j for i ≠ j, by enumeration of all draws."""
    scheme = sampled(sampling, size, clients)
    draws = _draws(sampling, clients, size)
    chance = Fraction(1, len(draws))
    omega = [[scheme.weights[i] * draw.count(i) for i in range(clients)] for draw in draws]
    mean = [chance * sum(each[i] for each in omega) for i in range(clients)]
    joint = {
        chance * sum(each[i] * each[j] for each in omega)
        for i, j in itertools.permutations(range(clients), 2)
    }
    return mean == equal(clients) and joint == {scheme.alpha / clients**2}


def sampling_trends(*, sampling: str, clients: int) -> bool:
    """Whether, with more clients in a round, α < 1 grows and 0 < β < 1 falls (of m = 2, …, M − 1)."""
    columns = [sampled(sampling, size, clients) for size in range(2, clients)]
    alphas, betas = [column.alpha for column in columns], [column.beta for column in columns]
    inside = all(0 < alpha < 1 for alpha in alphas) and all(0 < beta < 1 for beta in betas)
    return inside and alphas == sorted(set(alphas)) and betas == sorted(set(betas), reverse=True)


def faster_rounds(*, sampling: str, clients: int) -> bool:
    """Whether E max_{i∈S_n} T_i is below max T_i for every m < M, so that there are more rounds in a time."""
    slowest = max(hardware(clients, 80))
    return all(sampled(sampling, size, clients).periods[0] < slowest for size in range(1, clients))


def corollary_3_slack(*, sampling: str, size: int, steps: int, rounds: int = 1000, seeds: int = 100) -> float:
    """ε_F + ε_K + ε_α + ε_β over the measured mean of L − min L, where it is tightest in N ≤ rounds.

    Clients are sampled without bias, so that q_i(n) = p_i in every round.
    """
    column = sampled(sampling, size)
    q = np.full((rounds, CLIENTS), 1 / CLIENTS)
    run = _largest_step(column, steps, rounds, weight=1.0)
    rng = np.random.default_rng(0)
    weight, model = float(column.weights[0]), np.full(seeds, FIRST)
    models = np.empty((seeds, rounds, steps))
    for n in range(rounds):
        counts = np.array([_counts(sampling, size, rng) for _ in range(seeds)])  # [S, M]
        local, now = np.repeat(model[:, None], CLIENTS, 1), model.copy()
        for k in range(steps):
            models[:, n, k] = now
            noise = NOISE * rng.normal(size=local.shape)
            gradient = CURVATURE * (local - np.array(CENTRES)) + noise
            local -= run.lr * gradient
            now = now - run.lr * weight * (counts * gradient).sum(1)
        model = now
    here = Played(q, run, models)
    return slack(lambda n: here.bound(n).vanishing, here.wanted())


def biased_sampling_ends(
    *, criterion: str, size: int, reserved: bool = False, lr: float = 0.002, rounds: int = 20_000
) -> float:
    """|θ − θ*| in the end, over the mean distance of clients' optima from θ*, under biased client sampling.

    A round takes the `size` clients that are fastest (Nishio & Yonetani), or of highest loss (Cho et al.).
    `reserved`: every second round takes the others, so that Σ q_i = W p_i in every window of two.
    """
    model, centres, path = FIRST, np.array(CENTRES), []
    for n in range(rounds):
        losses = CURVATURE / 2 * (model - centres) ** 2
        order = np.argsort(losses) if criterion == "loss" else np.arange(CLIENTS)  # client 0 is the slowest
        who = order[:-size] if reserved and n % 2 else order[-size:]
        model -= lr * float((CURVATURE[who] * (model - centres[who])).mean())
        path.append(model)
    return abs(float(np.mean(path[-100:])) - OPTIMUM) / float(np.abs(centres - OPTIMUM).mean())


def _draws(sampling: str, clients: int, size: int) -> list[tuple[int, ...]]:
    """All equally likely draws of a round."""
    if sampling == "uniform":
        return list(itertools.combinations(range(clients), size))
    return list(itertools.product(range(clients), repeat=size))


def _counts(sampling: str, size: int, rng: np.random.Generator) -> Array:
    """How often each client is in a round's draw [M]."""
    who = rng.choice(CLIENTS, size, replace=sampling == "MD")
    return np.bincount(who, minlength=CLIENTS).astype(float)


# -- the quadratics -------------------------------------------------------------------------------


def _largest_step(column: Scheme, steps: int, rounds: int, weight: float) -> FraboniSetting:
    alpha, beta = float(column.alpha), float(column.beta)
    run = FraboniSetting(1.0, rounds, alpha, beta, column.delay, steps=steps, weight=weight)
    smaller = (replace(run, lr=lr) for lr in np.logspace(0, -6, 300))
    return next(run for run in smaller if all(run.conditions().values()))


def _client_losses(models: Array) -> Array:
    """L_i of models [...], [..., M]."""
    each: Array = CURVATURE / 2 * (models[..., None] - np.array(CENTRES)) ** 2
    return each


def _losses(q: Array, models: Array) -> Array:
    """L^n = Σ q_i(n) L_i of models [..., N], q [N, M]."""
    each: Array = (q * _client_losses(models)).sum(-1)
    return each


def _optima(q: Array) -> Array:
    """θ^n*, the optimum of L^n [N]; 0 where no client participates, as L^n is 0."""
    pull = (q * CURVATURE).sum(1)
    optima: Array = (q * CURVATURE * np.array(CENTRES)).sum(1) / np.where(pull > 0, pull, 1)
    return optima


def _shares(q: Array) -> Array:
    """s̃(n) = q_i(n)/q(n) [N, M], 0 where no client participates."""
    totals = q.sum(1)
    shares: Array = q / np.where(totals > 0, totals, 1)[:, None]
    return shares
