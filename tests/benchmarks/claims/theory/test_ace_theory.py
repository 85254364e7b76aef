"""ACE's errors and theorems, derived anew: identities, dominance on quadratics, and what the paper's miss."""

from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.claims.theory import ace

SEEDS = 40


class Cache:
    """Gradients of F_i = λ_i/2 (w − c_i)² with noise, cached and averaged, one arrival an iteration.

    The arriving client then gets the new model. With a threshold it is ACED: gradients that arrived longer
    ago are left out. Everybody is heard once before the first step. All for SEEDS seeds at once.
    """

    def __init__(self, order, *, lr, noise, curvature, centres, threshold=None, first=4.0):
        stream, n = np.random.default_rng(0), len(centres)
        start = np.full(SEEDS, first)

        def draw(i, w):
            return curvature[i] * (w - centres[i]) + noise * stream.normal(size=SEEDS)

        table = np.array([draw(i, start) for i in range(n)])
        heard, behind, held = np.zeros(n, int), np.zeros(n, int), np.zeros(n, int)
        used, weights = np.zeros(n), []  # of each cached gradient; of those that were replaced
        models, self.active, self.delay = [start], [], 0
        for t, i in enumerate([None, *order]):
            if i is not None:
                table[i] = draw(i, models[held[i]])
                weights.append(used[i])
                used[i], heard[i], behind[i] = 0, t, held[i]
            here = np.ones(n, bool) if threshold is None else t - heard <= threshold
            used[here] += 1 / here.sum()
            self.active.append(here.sum())
            self.delay = max(self.delay, (t - behind[here]).max())
            models.append(models[-1] - lr * table[here].mean(0))
            held[slice(None) if i is None else i] = t + 1
        self.active = np.array(self.active)
        rounds = len(self.active)
        self.models = np.array(models)[:-1]  # [T, S]
        self.run = ace.Caching(
            lr=lr,
            rounds=rounds,
            gap=gap(first, curvature, centres),
            noise=noise**2,
            delay=int(self.delay),
            reuse=(np.square(weights).sum() + np.square(used).sum()) / rounds,
            smoothness=curvature.max(),
        )
        self.slope = np.mean(
            ((curvature[:, None, None] * (self.models - centres[:, None, None])).mean(0)) ** 2
        )


def gap(first, curvature, centres):
    best = curvature @ centres / curvature.sum()
    return np.mean(curvature / 2 * ((first - centres) ** 2 - (best - centres) ** 2))


def orders(n, rounds):
    stream = np.random.default_rng(1)
    speed = np.arange(1, n + 1) / np.arange(1, n + 1).sum()
    return {
        "turns": np.arange(rounds) % n,
        "uniform": stream.integers(n, size=rounds),
        "by speed": stream.choice(n, rounds, p=speed),
    }


@pytest.mark.parametrize("curvature", [1.0, 0.0, -1.0])
@pytest.mark.parametrize(("participants", "steps"), [(1, 1), (5, 1), (4, 6)])
def test_sampling_noise(curvature, participants, steps):
    """Noise of the normalised delta; a concave loss spreads it. The bound holds for any |λ| ≤ L."""
    stream, lr, sigma, repeats = np.random.default_rng(0), 0.1, 0.7, 40_000
    y = np.zeros((repeats, participants))
    for _ in range(steps):
        y -= lr * (curvature * y + sigma * stream.normal(size=y.shape))
    measured = np.var(y.mean(1) / (lr * steps))
    bound = ace.sampling_noise(sigma**2, participants, local_steps=steps, local_lr=lr, smoothness=1.0)
    error = 4 * measured * np.sqrt(2 / repeats)
    assert measured - error <= bound
    if steps == 1:
        assert measured == pytest.approx(bound, abs=error)


@given(st.integers(1, 6), st.data())
def test_participation_bias(n, data):
    m = data.draw(st.integers(1, n))
    numbers = st.lists(st.floats(-3, 3), min_size=n, max_size=n)
    centres, stale = np.array(data.draw(numbers)), np.array(data.draw(numbers))
    gradients = stale - centres  # ∇F_i at client i's stale model, F_i = (w − c_i)²/2
    bias = gradients[:m].mean() - gradients.mean()
    dissimilarity = np.max((centres - centres.mean()) ** 2)
    bound = ace.participation_bias(m, n, dissimilarity, spread=np.ptp(stale) ** 2)
    assert bias**2 <= bound + 1e-12
    assert ace.participation_bias(n, n, dissimilarity, 9.0) == 0


@given(st.lists(st.tuples(st.floats(0, 2), st.floats(-3, 3)), min_size=1, max_size=6))
def test_delay_error(clients):
    curvature, moved = np.array(clients).T
    assert np.mean(curvature * moved) ** 2 <= ace.delay_error(2.0, np.abs(moved)) + 1e-12
    assert ace.delay_error(2.0, np.array([3.0, 3.0])) == 36


def test_reused_noise_drifts_further_than_fresh_noise():
    """No gradient at all, noise only: Lemma a.6 would make ACE's drift that of uncorrelated updates."""
    n, lr, delay = 20, 0.1, 20
    turns = np.arange(300) % n
    cache = Cache(turns, lr=lr, noise=1.0, curvature=np.full(n, 1e-12), centres=np.zeros(n))
    moved = np.mean((cache.models[100 + delay :] - cache.models[100:-delay]) ** 2)
    assert moved <= ace.drift(lr, delay, 1 / n, 0.0, reused=True)
    assert moved > 3 * ace.drift(lr, delay, 1 / n, 0.0, reused=False)
    fresh = lr**2 * delay * 1 / n  # of updates whose noise is drawn anew
    assert fresh <= ace.drift(lr, delay, 1 / n, 0.0, reused=False)


def test_mse_controls_convergence():
    """Any direction will do: here the gradient of the wrong problem, off by 1."""
    lr, rounds, w, slopes = 0.25, 200, 4.0, []
    for _ in range(rounds):
        slopes.append(w**2)
        w -= lr * (w - 1)
    bound = ace.mse_bound(8.0, lr, rounds, 1.0, 1.0)
    assert np.mean(slopes) <= bound < 5 * np.mean(slopes)
    with pytest.raises(ValueError, match=r"step size 0.3 is above 1/\(4L\) = 0.25"):
        ace.mse_bound(8.0, 0.3, rounds, 1.0, 1.0)


@pytest.mark.parametrize("order", ["turns", "uniform", "by speed"])
@pytest.mark.parametrize("spread", [0.0, 1.0, 100.0])
def test_ace_theorem_dominates_whatever_the_heterogeneity(order, spread):
    n, rounds = 8, 3000
    curvature, centres = np.linspace(0.5, 1, n), spread * np.linspace(-1, 1, n)
    schedule = orders(n, rounds)[order]
    first = Cache(schedule, lr=1e-3, noise=1.0, curvature=curvature, centres=centres)  # to know the delay
    cache = Cache(schedule, lr=1 / (8**0.5 * first.delay), noise=1.0, curvature=curvature, centres=centres)
    bound = ace.ace(cache.run, n)
    assert cache.slope <= bound < 60 * cache.slope


@pytest.mark.parametrize("clients", [5, 20])
def test_caching_does_not_divide_the_noise_by_the_clients(clients):
    """In the long run E‖∇F‖² is ρLησ²/2, with ρ = 1 where clients take turns: in the paper, as if ρ = 1/n."""
    lr, rounds = 2e-3, 15_000
    same = {"curvature": np.ones(clients), "centres": np.zeros(clients), "first": 0.0}
    cache = Cache(np.arange(rounds) % clients, lr=lr, noise=1.0, **same)
    assert cache.run.reuse == pytest.approx(1, abs=0.01)
    assert np.mean(cache.models[2000:] ** 2) == pytest.approx(lr / 2, rel=0.25)


@pytest.mark.parametrize("threshold", [2, 6, 1000])
def test_aced_theorem_dominates(threshold):
    n, rounds = 8, 3000
    curvature, centres = np.ones(n), np.linspace(-1, 1, n)
    order = orders(n, rounds)["by speed"]
    dissimilarity = np.max((centres - centres.mean()) ** 2)
    world = {"noise": 0.5, "curvature": curvature, "centres": centres, "threshold": threshold}
    first = Cache(order, lr=1e-3, **world)
    cache = Cache(order, lr=1 / (4 * first.delay), **world)
    bias = ace.partial_bias(cache.active, n, dissimilarity)
    assert (bias == 0) == (threshold == 1000)
    assert cache.slope <= ace.aced(cache.run, n, cache.active.min(), bias)


@given(st.integers(2, 7), st.data())
def test_partial_bias_is_the_worst_case(n, data):
    deviations = np.array(data.draw(st.lists(st.floats(-1, 1), min_size=n, max_size=n)))
    deviations -= deviations.mean()
    a = data.draw(st.integers(1, n))
    bound = ace.partial_bias(np.array([a]), n, np.max(deviations**2))
    assert deviations[:a].mean() ** 2 <= bound + 1e-12


def test_steps_beyond_the_theorems_are_refused():
    run = ace.Caching(lr=0.1, rounds=10, gap=1.0, noise=1.0, delay=10, reuse=1.0)
    with pytest.raises(ValueError, match=r"step size 0.1 is above the theorem's 0.035"):
        ace.ace(run, 5)
    with pytest.raises(ValueError, match=r"step size 0.1 is above the theorem's 0.025"):
        ace.aced(run, 5, 1, 0.0)


def test_best_learning_rate():
    run = ace.Caching(lr=1.0, rounds=10**10, gap=3.0, noise=2.0, delay=1, reuse=0.5, smoothness=2.0)
    best = ace.learning_rate(run)
    values = [ace.ace(replace(run, lr=best * factor), 5) for factor in (0.9, 1, 1.1)]
    assert min(values) == values[1]
    rounds = 500  # the paper's scaling, √(n/T)
    paper = [
        ace.learning_rate(replace(run, reuse=1 / n, rounds=rounds)) * (rounds / n) ** 0.5 for n in (10, 100)
    ]
    assert paper[0] == pytest.approx(paper[1])


def test_active_clients():
    expected = [ace.expected_active(100, threshold) for threshold in (10, 50, 500)]
    assert expected == pytest.approx([10.5, 40.1, 99.3], abs=0.1)
    order = np.random.default_rng(0).integers(100, size=4000)
    cache = Cache(order, lr=1e-3, noise=0.0, curvature=np.ones(100), centres=np.zeros(100), threshold=10)
    assert cache.active[20:].mean() == pytest.approx(expected[0], abs=0.1)


def test_where_ace_ends_after_dropouts():
    curvature, centres = (
        np.array([1.0, 0.5, 2.0, 1.5]),
        np.array([[1.0, 0.0], [-2.0, 1.0], [3.0, 3.0], [0.0, -4.0]]),
    )
    dropped = np.array([False, True, False, False])
    w, table = np.zeros(2), -curvature[:, None] * centres  # gradients at w^0 = 0
    last, held = table.copy(), np.zeros((4, 2))
    for t in range(4000):
        i = [0, 2, 3][t % 3]
        table[i] = curvature[i] * (held[i] - centres[i])
        w = w - 0.05 * table.mean(0)
        held[i] = w
    limit = ace.dropout_limit(curvature, centres, dropped, last)
    np.testing.assert_allclose(w, limit, atol=1e-9)
    nobody = ace.dropout_limit(curvature, centres, np.zeros(4, bool), last)
    np.testing.assert_allclose(nobody, curvature @ centres / curvature.sum())
    assert np.linalg.norm(limit - nobody) > 0.1


def test_claimed_rates_at_equal_uploads():
    rates = ace.claimed_rates(1000, 100, local_steps=4)
    assert rates["ca2fl"] / rates["ace"] == pytest.approx((100 / 4) ** 0.5)
    assert rates["asgd"] / rates["fedbuff"] == pytest.approx(2)


def test_errors_worked_by_hand():
    # 3/(5·4) (1 + 2/10)^6
    noise = ace.sampling_noise(3.0, 5, local_steps=4, local_lr=0.1, smoothness=2.0)
    assert noise == pytest.approx(0.15 * 2.985984)
    assert ace.sampling_noise(3.0, 5) == pytest.approx(0.6)  # one local step: 3/5
    # 3/(5·4), not amplified where η_l or L is 0, as both are unless given
    assert ace.sampling_noise(3.0, 5, local_steps=4, local_lr=0.1) == pytest.approx(0.15)
    assert ace.sampling_noise(3.0, 5, local_steps=4, smoothness=3.0) == pytest.approx(0.15)
    # 2 (1 − 2/5)² (4·3 + 7)
    assert ace.participation_bias(2, 5, 3.0, spread=7.0) == pytest.approx(13.68)
    assert ace.participation_bias(2, 5, 3.0) == pytest.approx(8.64)
    # 3² (1 + 4 + 49)/3
    assert ace.delay_error(3.0, np.array([1.0, 2.0, 7.0])) == pytest.approx(162)
    # 2·.2² (3·5 + 9·7), and (9·5 + 9·7)
    assert ace.drift(0.2, 3, 5.0, 7.0, reused=False) == pytest.approx(6.24)
    assert ace.drift(0.2, 3, 5.0, 7.0, reused=True) == pytest.approx(8.64)
    # (1 + 1 + (2/3)² + 0)/4, times 3
    assert ace.partial_bias(np.array([1, 2, 3, 5]), 5, 3.0) == pytest.approx(3 * 22 / 36)


def test_mean_squared_error_bound_worked_by_hand():
    # 4·3/(20/8) + 3·7, up to 1/(4·2) and no further
    assert ace.mse_bound(3.0, 1 / 8, 20, 7.0, 2.0) == pytest.approx(25.8)
    with pytest.raises(ValueError, match=r"above 1/\(4L\) = 0.125"):
        ace.mse_bound(3.0, 0.1251, 20, 7.0, 2.0)


RUN = ace.Caching(lr=0.01, rounds=50, gap=3.0, noise=5.0, delay=4, reuse=0.7, smoothness=2.0)


def test_theorems_worked_by_hand():
    # 4·3/.5 + 5 (2·.7/50 + 14/6·.08²)
    assert ace.ace(RUN, 6) == pytest.approx(24 + 0.14 + 0.448 / 6)
    # 16/3 + 6·6/9 = 28/3 for 14/6, and 8·11
    assert ace.aced(RUN, 6, 3, 11.0) == pytest.approx(24 + 0.14 + 0.032 * 28 / 3 + 88)
    # L = 1 unless said: 24 + 5 (2·.7/100 + 14/6·.04²)
    plain = ace.Caching(lr=0.01, rounds=50, gap=3.0, noise=5.0, delay=4, reuse=0.7)
    assert ace.ace(plain, 6) == pytest.approx(24 + 0.07 + 0.112 / 6)
    # 2·3/(.7·2·5·50)
    assert ace.learning_rate(RUN) == pytest.approx((6 / 350) ** 0.5)
    # 1/√100, 1/√(4·100) twice and 1/√(25·100)
    rates = ace.claimed_rates(100, 25, local_steps=4)
    assert rates == pytest.approx({"asgd": 1 / 10, "fedbuff": 1 / 20, "ca2fl": 1 / 20, "ace": 1 / 50})
    assert ace.claimed_rates(100, 25)["fedbuff"] == pytest.approx(1 / 10)


@pytest.mark.parametrize(
    ("theorem", "delay", "limit"),
    [
        (lambda run: ace.ace(run, 6), 0, 1 / 2),
        (lambda run: ace.ace(run, 6), 1, 1 / 8**0.5),
        (lambda run: ace.ace(run, 6), 5, 1 / (5 * 8**0.5)),
        (lambda run: ace.aced(run, 6, 3, 11.0), 0, 1 / 2),
        (lambda run: ace.aced(run, 6, 3, 11.0), 1, 1 / 4),
        (lambda run: ace.aced(run, 6, 3, 11.0), 5, 1 / 20),
    ],
)
def test_where_a_theorem_ends(theorem, delay, limit):
    """ηL: at the limit and a hair above it."""
    run = replace(RUN, delay=delay)
    theorem(replace(run, lr=limit / 2))
    with pytest.raises(ValueError, match="above the theorem's"):
        theorem(replace(run, lr=limit / 2 * (1 + 1e-9)))


def test_a_run_stays_as_it_is():
    with pytest.raises(FrozenInstanceError):
        RUN.noise = 0.0
    assert ace.learning_rate(RUN) > 0
