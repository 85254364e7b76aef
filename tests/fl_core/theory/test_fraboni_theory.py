"""Fraboni's theorems: dominance on quadratics with every constant known, and what each term scales with."""

import heapq
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from fl_core.theory import fraboni, schemes

CLIENTS, ROUNDS, NOISE, FIRST = 4, 1000, 0.3, 4.0
TIMES = [1 - Fraction(4, 5) * Fraction(i, CLIENTS - 1) for i in range(CLIENTS)]
EQUAL = [Fraction(1, CLIENTS)] * CLIENTS
CURVATURE, CENTRES = np.array([1.0, 0.6, 0.8, 0.5]), np.array([1.0, -2.0, 3.0, 0.5])  # L = 1


def arrivals():
    queue, version = [(time, client) for client, time in enumerate(TIMES)], [0] * CLIENTS
    heapq.heapify(queue)
    for n in range(ROUNDS):
        now, client = queue[0]
        yield {client: version[client]}
        version[client] = n + 1
        heapq.heapreplace(queue, (now + TIMES[client], client))


def ticks(period):
    back, version = list(TIMES), [0] * CLIENTS
    for n in range(ROUNDS):
        here = [client for client in range(CLIENTS) if back[client] <= (n + 1) * period]
        yield {client: version[client] for client in here}
        for client in here:
            back[client], version[client] = (n + 1) * period + TIMES[client], n + 1


SCHEMES = {
    "synchronous": (schemes.fedavg(EQUAL, TIMES), [dict.fromkeys(range(CLIENTS), n) for n in range(ROUNDS)]),
    "asynchronous": (schemes.async_fedavg(EQUAL, TIMES), list(arrivals())),
    "fedfix": (schemes.fedfix(EQUAL, TIMES, Fraction(1, 2)), list(ticks(Fraction(1, 2)))),
    "fedfix, fine": (schemes.fedfix(EQUAL, TIMES, Fraction(1, 5)), list(ticks(Fraction(1, 5)))),
}


def client_losses(models):
    """L_i of models [...], [..., M]."""
    return CURVATURE / 2 * (models[..., None] - CENTRES) ** 2


class Measured:
    """One scheme on L_i = λ_i/2 (θ − c_i)²: the theorems' constants, and models θ^{n,k} [S, N, K]."""

    def __init__(self, name, steps, seeds=10):
        scheme, schedule = SCHEMES[name]
        d = np.array(scheme.weights, float)
        self.q = np.array([[d[i] * (i in clients) for i in range(CLIENTS)] for clients in schedule])  # [N, M]
        self.totals = self.q.sum(1)
        self.share = self.q / np.where(self.totals > 0, self.totals, 1)[:, None]  # q̃
        pull = (self.q * CURVATURE).sum(1)
        self.optima = (self.q * CURVATURE * CENTRES).sum(1) / np.where(pull > 0, pull, 1)  # θ^n*
        mean = self.q.mean(0) * CURVATURE
        self.centre = (mean * CENTRES).sum() / mean.sum()  # θ̄
        residual = np.mean(self.losses(np.full(ROUNDS, self.centre)) - self.losses(self.optima))
        square = (CURVATURE * (self.optima[:, None] - CENTRES)) ** 2 + NOISE**2
        sigma1, sigma2 = ((self.share**k * square).sum(1).mean() for k in (1, 2))
        weight = max(1.0, self.totals.max())
        alpha, beta = float(scheme.alpha), float(scheme.beta)
        run = fraboni.FraboniSetting(1.0, ROUNDS, alpha, beta, scheme.delay, steps=steps, weight=weight)
        rates = np.logspace(0, -6, 300)
        self.run = next(r for r in (replace(run, lr=lr) for lr in rates) if all(r.conditions().values()))
        self.bound = fraboni.theorem_1(self.run, FIRST - self.centre, residual, sigma1, sigma2)
        self.models = self.simulate(schedule, d, seeds)

    def losses(self, models):
        """L^n of models [..., N]."""
        return (self.q * client_losses(models)).sum(-1)

    def simulate(self, schedule, d, seeds):
        stream, lr, steps = np.random.default_rng(0), self.run.lr, self.run.steps
        model = [np.full(seeds, FIRST)]
        virtual = np.empty((seeds, ROUNDS, steps))
        for n, clients in enumerate(schedule):
            local = {i: model[version].copy() for i, version in clients.items()}
            now = model[-1].copy()
            for k in range(steps):
                virtual[:, n, k] = now
                for i in clients:
                    gradient = CURVATURE[i] * (local[i] - CENTRES[i]) + NOISE * stream.normal(size=seeds)
                    local[i] -= lr * gradient
                    now -= lr * d[i] * gradient
            model.append(now)
        return virtual

    def excess(self):
        """Mean of L^n(θ^{n,k}) − min L^n."""
        return np.mean(
            [self.losses(self.models[:, :, k]) - self.losses(self.optima) for k in range(self.run.steps)]
        )

    def wanted_excess(self):
        """Mean of L(θ^{n,k}) − min L."""
        best = np.array(CURVATURE @ CENTRES / CURVATURE.sum())
        return np.mean(client_losses(self.models)) - np.mean(client_losses(best))

    def wanted_slope(self):
        """Mean of ‖∇L(θ^{n,k})‖²."""
        return np.mean((CURVATURE * (self.models[..., None] - CENTRES)).mean(-1) ** 2)


@pytest.fixture(scope="module", params=[(name, steps) for name in SCHEMES for steps in (1, 3)], ids=str)
def measured(request):
    return Measured(*request.param)


def test_the_schedule_has_the_said_delay():
    for scheme, schedule in SCHEMES.values():
        assert max(n - v for n, clients in enumerate(schedule) for v in clients.values()) == scheme.delay


def test_theorem_1_dominates(measured):
    excess = measured.excess()
    assert excess <= measured.bound.value
    assert measured.bound.value < 50 * excess  # and is no empty promise


def test_theorem_2_dominates(measured):
    assert np.all(measured.totals > 0)  # no empty ticks here
    unseen = np.where(measured.share > 0, 0, 1 / CLIENTS)  # r_j of clients that are not there
    value = fraboni.theorem_2(
        1.0,
        measured.bound.value,
        chi2=fraboni.chi_square(np.full(CLIENTS, 1 / CLIENTS), measured.share),
        totals=measured.totals,
        unfair=(measured.share * client_losses(measured.optima)).sum(1),
        unseen=(unseen * client_losses(measured.models).mean((0, 2))).sum(1),
    )
    assert measured.wanted_slope() <= value


@pytest.mark.parametrize("steps", [1, 3])
@pytest.mark.parametrize("name", ["synchronous", "fedfix"])  # their windows close
def test_theorem_4_dominates(name, steps):
    measured, window = Measured(name, steps), SCHEMES[name][0].window
    assert ROUNDS % window == 0
    slopes = np.abs(CURVATURE * (measured.models[..., None] - CENTRES))
    largest = np.sqrt(slopes.max() ** 2 + NOISE**2)
    assert measured.wanted_excess() <= fraboni.theorem_4(measured.run, measured.bound, window, largest)


def test_corollary_3_is_theorem_1_without_residual():
    synchronous = Measured("synchronous", 1)
    assert synchronous.bound.residual == pytest.approx(0, abs=1e-12)
    assert synchronous.wanted_excess() <= synchronous.bound.vanishing


@pytest.mark.parametrize(("delay", "steps"), [(0, 1), (1, 1), (3, 5), (10, 10)])
def test_the_printed_limit_implies_the_proofs_conditions(delay, steps):
    """For α, β ≤ 1, as the paper says; not for a larger β."""
    run = fraboni.FraboniSetting(
        1.0, 10, alpha=1.0, beta=1.0, delay=delay, steps=steps, smoothness=2.0, server_lr=0.7
    )
    assert all(replace(run, lr=run.lr_limit()).conditions().values())
    assert not all(replace(run, lr=run.lr_limit(), beta=1000.0).conditions().values())


def test_step_sizes_outside_of_the_theorem_are_refused():
    with pytest.raises(ValueError, match="too large for Theorem 1: Lemma 11"):
        fraboni.theorem_1(fraboni.FraboniSetting(1.0, 10, alpha=1.0, beta=0.0, delay=2), 1, 0, 0, 0)


def test_what_the_terms_scale_with():
    run = fraboni.FraboniSetting(1e-4, 100, alpha=1.0, beta=0.5, delay=3)
    bound = fraboni.theorem_1(run, 2.0, 0.1, 1.0, 0.5)
    assert bound.local == 0  # K = 1
    longer = fraboni.theorem_1(replace(run, rounds=200), 2.0, 0.1, 1.0, 0.5)
    assert longer.start == pytest.approx(bound.start / 2)
    assert fraboni.theorem_1(replace(run, beta=0.0), 2.0, 0.1, 1.0, 0.5).alone == 0
    assert fraboni.theorem_1(replace(run, alpha=0.0), 2.0, 0.1, 1.0, 0.5).joint == 0
    assert fraboni.theorem_4(run, bound, 1, 5.0) == bound.vanishing  # W = 1


def test_corollary_5():
    assert fraboni.corollary_5(window=0.3, delay=0.2, lr=0.5)
    assert not fraboni.corollary_5(window=0.6, delay=0.2, lr=0.5)
    assert not fraboni.corollary_5(window=0.0, delay=0.0, lr=1.0)
    assert not fraboni.corollary_5(window=1.0, delay=0.0, lr=0.9)  # W = N: no rate will do


@pytest.mark.parametrize(("window", "delay", "lr"), [(0.3, 0.2, 0.5), (0.6, 0.2, 0.5)])
def test_corollary_5_by_the_bound(window, delay, lr):
    values = []
    for rounds in (1e8, 1e12, 1e16):
        run = fraboni.FraboniSetting(1e-3 * rounds**-lr, int(rounds), 1.0, 1.0, int(rounds**delay))
        bound = fraboni.theorem_1(run, 1.0, 0.1, 1.0, 1.0)
        values.append(fraboni.theorem_4(run, bound, int(rounds**window), 1.0))
    falls = values[0] > 3 * values[1] > 9 * values[2]
    assert falls == fraboni.corollary_5(window, delay, lr)
