"""Fraboni's theorems: dominance on quadratics with every constant known, and what each term scales with."""

import heapq
from dataclasses import FrozenInstanceError, replace
from fractions import Fraction

import numpy as np
import pytest

from asyncfl.claims.theory import fraboni, schemes

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


WORKED = fraboni.FraboniSetting(  # η̃ = 1/2000, D = 6/100, η̃ + 16·3·2 (15/2000)² = .0059
    lr=1 / 40,
    rounds=100,
    alpha=0.5,
    beta=0.75,
    delay=5,
    smoothness=2.0,
    steps=3,
    server_lr=1 / 50,
    weight=3.0,
)


def test_theorem_1_worked_by_hand():
    bound = fraboni.theorem_1(WORKED, 4.0, residual=5.0, sigma1=7.0, sigma2=2.0)
    assert bound.residual == 5
    assert bound.start == pytest.approx(16 / 0.15)  # 4²/(3·100/2000)
    assert bound.local == pytest.approx(1.2 + 0.63)  # 4·.06·5, 6·3 (2/40)² 2·7
    # .5·.0059 times 24·3·2·5, 3·9·.06·7 and 6·9·2
    assert bound.joint == pytest.approx(0.00295 * (720 + 11.34 + 108))
    # .75·.0059 times 12·3·2·5 and 6·9·7
    assert bound.alone == pytest.approx(0.004425 * (360 + 378))
    vanishing = 16 / 0.15 + 1.83 + 2.476053 + 3.26565
    assert bound.vanishing == pytest.approx(vanishing)
    assert bound.value == pytest.approx(5 + vanishing)
    # 3·3/2000 (6−1) 4²
    assert fraboni.theorem_4(WORKED, bound, window=6, gradient=4.0) == pytest.approx(vanishing + 0.36)


def test_theorem_1_with_one_step_and_unit_rates_unless_said():
    run = fraboni.FraboniSetting(0.01, 10, alpha=0.5, beta=0.25, delay=2)  # .01 + 16·.02² = .0164
    bound = fraboni.theorem_1(run, 4.0, residual=5.0, sigma1=7.0, sigma2=2.0)
    assert bound.start == pytest.approx(160)
    assert bound.local == 0
    assert bound.joint == pytest.approx(0.0082 * (120 + 12))
    assert bound.alone == pytest.approx(0.0041 * (60 + 42))


@pytest.mark.parametrize(
    ("server_lr", "limit"),
    [
        (1 / 50, 1 / 288 / 3.24),  # 48·3·2 and 3·9·6/50
        (1 / 1000, 1 / 288),  # 3·9·6/1000 < 1
    ],
)
def test_printed_limit_worked_by_hand(server_lr, limit):
    assert replace(WORKED, server_lr=server_lr).lr_limit() == pytest.approx(limit)


def exact(lr, server_lr, beta, **fields):
    """A setting in fractions, α = 1/2."""
    rates = {"lr": Fraction(lr), "server_lr": Fraction(server_lr), "smoothness": 2, "weight": 3}
    return replace(WORKED, alpha=Fraction(1, 2), beta=Fraction(beta), **rates, **fields)


HAIR = 1 + Fraction(1, 10**9)


@pytest.mark.parametrize(
    ("condition", "run"),
    [
        # 12·3² (1/2 + 1) (15·2/540)² = 1/2
        ("Lemma 11", exact("1/20", "20/540", "1")),
        # 3·3 (1/2 + 1) 2/27 = 1
        ("A.5, models", exact("1/20", "20/27", "1")),
        # one local step, no delay: 12·3 (1 + 1) 2/144 = 1
        ("A.5, losses", exact("1/20", "20/144", "1", steps=1, delay=0)),
        # 24 (4/20)² = .96, and 12·3 (1 + 1) 2 (1/10800 + 16·3·2 (15/10800)²) = .04
        ("A.5, losses", exact("1/20", "1/540", "1")),
    ],
)
def test_where_a_condition_ends(condition, run):
    """At the bound it is met, a hair above it not."""
    assert run.conditions()[condition]
    assert replace(run, lr=run.lr / HAIR).conditions()[condition]
    assert not replace(run, lr=run.lr * HAIR).conditions()[condition]


def test_where_the_condition_of_lemma_8_ends():
    """6 (2·2 η_l)² = 1/2."""
    limit = 1 / (4 * 12**0.5)
    assert replace(WORKED, lr=limit * (1 - 1e-9)).conditions()["Lemma 8"]
    assert not replace(WORKED, lr=limit * (1 + 1e-9)).conditions()["Lemma 8"]


def test_theorem_2_worked_by_hand():
    wanted = np.array([0.5, 0.3, 0.2])
    given = np.array([[0.25, 0.75, 0.0], [0.2, 0.3, 0.5]])
    # .25²/.25 + .45²/.75, .3²/.2 + .3²/.5
    with np.errstate(all="raise"):  # an importance of 0 is not divided by
        assert fraboni.chi_square(wanted, given) == pytest.approx([0.52, 0.63])
        assert fraboni.chi_square(wanted, given[0]) == pytest.approx(0.52)
    value = fraboni.theorem_2(
        3.0,
        5.0,
        chi2=np.array([0.5, 2.0]),
        totals=np.array([0.4, 2.0]),
        unfair=np.array([0.7, 0.1]),
        unseen=np.array([0.3, 0.2]),
    )
    # the largest of 2/.4 and 5/2; the mean of .35 + .3 and .2 + .2
    assert value == pytest.approx(4 * 3 * (5 * 5 + 2 * 0.525))


@pytest.mark.parametrize(
    "changed", [WORKED, fraboni.theorem_1(WORKED, 4.0, 5.0, 7.0, 2.0)], ids=["setting", "bound"]
)
def test_settings_and_bounds_stay_as_they_are(changed):
    with pytest.raises(FrozenInstanceError):
        changed.alpha = changed.alone = 0.0
    assert WORKED.step == pytest.approx(1 / 2000)
