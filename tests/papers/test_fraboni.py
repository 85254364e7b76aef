"""Theorems of Fraboni et al. (JMLR 2023): claims, values worked by hand, and bounds that can fail."""

import itertools
import math
from dataclasses import replace
from fractions import Fraction
from itertools import islice

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fl_core.experiment import Experiment
from fl_core.loop.simulation import Simulation, simulate
from fl_core.scenario import Budget, Scenario
from fl_core.theory import weights
from tests.papers import fraboni
from tests.papers.fraboni import equal, hardware, scheme_of, slack
from tests.papers.theorems import theorem

TIMES = st.lists(st.fractions(Fraction(1, 4), 3, max_denominator=4), min_size=2, max_size=4)


def oldest_update(times, rounds):
    """Largest staleness of asynchronous FedAvg, from the schedule in exact time."""
    events = sorted((k * time, i) for i, time in enumerate(times) for k in range(1, rounds))
    version, worst = [0] * len(times), 0
    for n, (now, client) in enumerate(events):
        if now > (rounds - 1) * min(times):
            break  # the fastest client has no more events
        worst = max(worst, n - version[client])
        version[client] = n + 1
    return worst


def test_published_values_of_asynchronous_fedavg():
    four, two, ten = (fraboni.async_fedavg(equal(m), hardware(m, x)) for m, x in [(4, 80), (2, 50), (10, 80)])
    assert (four.window, four.delay) == (732, 10)
    assert (two.window, two.delay, two.weights) == (3, 2, (Fraction(3, 2), Fraction(3, 4)))
    assert ten.window == 79_656_329_334
    rates = [float(sum(1 / time for time in hardware(m, 80))) for m in (10, 20, 50)]  # aggregations a unit
    assert rates == pytest.approx([21.28, 41.31, 101.61], abs=5e-3)


def test_published_values_of_fedfix():
    half, fifth = (fraboni.fedfix(equal(4), hardware(4, 80), Fraction(1, k)) for k in (2, 5))
    assert (half.window, fifth.window) == (2, 60)
    assert (half.delay, fifth.delay) == (1, 4)


@pytest.mark.parametrize("duration", [Fraction(1), Fraction(7, 2), Fraction(100)])
def test_aggregations_in_a_time(duration):
    p, times = equal(4), hardware(4, 80)
    assert fraboni.fedavg(p, times).aggregations(duration) == math.floor(duration)
    assert fraboni.async_fedavg(p, times).aggregations(duration) == sum(duration // t for t in times)
    assert fraboni.fedfix(p, times, Fraction(1, 5)).aggregations(duration) == math.floor(duration * 5)


@given(TIMES)
def test_nobody_is_staler_than_said(times):
    scheme = fraboni.async_fedavg(equal(len(times)), times)
    seen = oldest_update(times, 200)
    assert len(times) - 1 <= seen <= scheme.delay
    assert scheme.delay <= (len(times) - 1) * math.ceil(max(times) / min(times))
    slowest = max(times) / fraboni.common_divisor(times)
    assert len(times) <= scheme.window <= len(times) * slowest ** (len(times) - 1)
    assert scheme.beta == max(scheme.weights) <= max(times) / min(times)


def test_the_said_staleness_is_reached():
    for clients, percent in [(4, 80), (2, 50)]:
        times = hardware(clients, percent)
        assert oldest_update(times, 400) == fraboni.async_fedavg(equal(clients), times).delay


@given(TIMES, st.fractions(Fraction(1, 4), 4, max_denominator=4))
def test_bounds_of_fedfix(times, period):
    scheme = fraboni.fedfix(equal(len(times)), times, period)
    slowest = math.ceil(max(times) / period)
    assert 0 <= scheme.delay < slowest
    assert 1 <= scheme.window <= slowest ** len(times)


@given(TIMES)
def test_limits(times):
    clients = len(times)
    p = equal(clients)
    synchronous, slow = fraboni.fedavg(p, times), fraboni.fedfix(p, times, max(times))
    assert (slow.weights, slow.delay, slow.window, slow.alpha, slow.beta) == (
        (synchronous.weights, 0, 1, synchronous.alpha, synchronous.beta)
    )
    unit = fraboni.common_divisor(times)  # Δt → 0: d_i Δt → τ_i p_i, asynchronous weights up to a factor
    fast = weights.fedfix(p, times, unit)
    assert [d * unit for d in fast] == [time / clients for time in times]
    same = fraboni.async_fedavg(p, [times[0]] * clients)
    assert (same.window, same.delay) == (clients, clients - 1)


@given(TIMES)
def test_common_multiple_and_divisor(times):
    cycle, unit = fraboni.common_multiple(times), fraboni.common_divisor(times)
    assert all((cycle / time).denominator == 1 and (time / unit).denominator == 1 for time in times)
    steps = range(1, int(cycle / times[0]))
    assert not any(all((k * times[0] / time).denominator == 1 for time in times) for k in steps)
    assert math.gcd(*(int(time / unit) for time in times)) == 1


@given(TIMES, st.data())
def test_sampling_against_enumeration(times, data):
    clients = len(times)
    size = data.draw(st.integers(1, clients))
    parts = data.draw(st.lists(st.integers(1, 5), min_size=clients, max_size=clients))
    p = [Fraction(part, sum(parts)) for part in parts]
    uniform, md = fraboni.uniform_sampling(p, times, size), fraboni.md_sampling(p, times, size)
    subsets = list(itertools.combinations(range(clients), size))
    draws = list(itertools.product(range(clients), repeat=size))
    for scheme, sets, chance in [
        (uniform, subsets, [Fraction(1, len(subsets))] * len(subsets)),
        (md, draws, [math.prod(p[i] for i in drawn) for drawn in draws]),
    ]:
        omega = [[scheme.weights[i] * drawn.count(i) for i in range(clients)] for drawn in sets]
        mean = [sum(c * w[i] for c, w in zip(chance, omega, strict=True)) for i in range(clients)]
        assert mean == p
        for i, j in itertools.combinations(range(clients), 2):
            joint = sum(c * w[i] * w[j] for c, w in zip(chance, omega, strict=True))
            assert joint == scheme.alpha * p[i] * p[j]
        for i in range(clients):  # γ_i = E[ω_i²] − α q_i² ≤ β q_i (Lemma 6)
            square = sum(c * w[i] ** 2 for c, w in zip(chance, omega, strict=True))
            assert square - scheme.alpha * p[i] ** 2 <= scheme.beta * p[i]
        longest = sum(c * max(times[i] for i in drawn) for c, drawn in zip(chance, sets, strict=True))
        assert scheme.periods == (longest,)


def test_rounds_have_no_delay_and_are_unbiased_each():
    """One aggregation a round, of updates on the newest model: τ = 0 and W = 1."""
    p, times = equal(4), hardware(4, 80)
    for scheme in (
        fraboni.fedavg(p, times),
        fraboni.uniform_sampling(p, times, 2),
        fraboni.md_sampling(p, times, 2),
    ):
        assert (scheme.delay, scheme.window) == (0, 1)


SHARES, LENGTHS = [Fraction(1, 2), Fraction(1, 3), Fraction(1, 6)], [Fraction(3), Fraction(2), Fraction(5, 2)]


def test_asynchronous_fedavg_worked_by_hand():
    """30 is the least common multiple, of 6, 4 and 5 halves; 1/3 + 1/2 + 2/5 = 37/30."""
    assert fraboni.async_fedavg(SHARES, LENGTHS) == fraboni.Scheme(
        weights=(Fraction(37, 20), Fraction(37, 45), Fraction(37, 72)),
        alpha=Fraction(0),
        beta=Fraction(37, 20),
        periods=tuple(LENGTHS),
        delay=1 + 2 + 2 - 1,
        window=10 + 15 + 12,
    )


def test_fedfix_worked_by_hand():
    """Δt = 1: every third, second and third aggregation."""
    assert fraboni.fedfix(SHARES, LENGTHS, Fraction(1)) == fraboni.Scheme(
        weights=(Fraction(3, 2), Fraction(2, 3), Fraction(1, 2)),
        alpha=Fraction(1),
        beta=Fraction(0),
        periods=(Fraction(1),),
        delay=2,
        window=6,
    )


def test_sampling_worked_by_hand():
    # α = 3·1/(2·2); 1/2 (3/2 − 3/4); the longest of two is 3 twice and 5/2 once
    uniform = fraboni.uniform_sampling(SHARES, LENGTHS, 2)
    assert (uniform.alpha, uniform.beta) == (Fraction(3, 4), Fraction(3, 8))
    assert uniform.periods == (Fraction(17, 6),)
    # 2 (1/3)² + 5/2 ((1/2)² − (1/3)²) + 3 (1 − (1/2)²)
    md = fraboni.md_sampling(SHARES, LENGTHS, 2)
    assert (md.alpha, md.beta, md.periods) == (Fraction(1, 2), Fraction(1, 2), (Fraction(203, 72),))
    # one client alone
    alone = fraboni.uniform_sampling([Fraction(1)], [Fraction(2)], 1)
    assert (alone.alpha, alone.beta, alone.periods) == (1, 0, (Fraction(2),))


SCHEMES = [("synchronous", "1/2"), ("asynchronous", "1/2"), ("fedfix", "1/2"), ("fedfix", "1/5")]


@pytest.mark.parametrize(("scheme", "period"), SCHEMES)
def test_the_schedule_has_the_said_delay(scheme, period):
    column, schedule = scheme_of(scheme, hardware(4, 80), period)
    delays = [n - v for n, clients in enumerate(islice(schedule, 1000)) for v in clients.values()]
    assert max(delays) == column.delay


def test_corollary_3_is_theorem_1_without_residual():
    synchronous = fraboni.played("synchronous", 1, "1/2", 1000)
    bound = synchronous.bound(1000)
    assert bound.residual == pytest.approx(0, abs=1e-12)
    assert synchronous.wanted().mean() <= bound.vanishing


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


F80 = fraboni.hardware(4, 80)
SCHEDULES = {
    "async_fedavg": lambda: fraboni.one_by_one(F80),
    "fedfix": lambda: fraboni.ticks(F80, Fraction(1, 2)),
    "fedbuff_c": lambda: fraboni.buffers(F80, 2),
    "fedavg": lambda: fraboni.synchronous(F80),
}


def simulation(name: str, updates: int, **more: object) -> Simulation:
    scenario = Scenario(
        problem={
            "name": "quadratic",
            "centres": [[centre] for centre in fraboni.CENTRES],
            "curvature": tuple(fraboni.CURVATURE),
            "start": (fraboni.FIRST,),
        },
        timing={"durations": {"name": "fx", "spread": 80}},
        budget=Budget(updates=updates),
    )
    return Simulation(Experiment(scenario=scenario, strategy={"name": name, **more}))


@pytest.mark.parametrize(
    ("name", "options"), [(name, {"buffer": 2} if name == "fedbuff_c" else {}) for name in SCHEDULES]
)
def test_schedules_are_those_of_the_simulator(name, options):
    seen = [
        (event.client, event.staleness)
        for event in simulate(simulation(name, 300, **options))
        if event.staleness is not None
    ]
    played = [
        (client, n - version)
        for n, here in enumerate(islice(SCHEDULES[name](), 400))
        for client, version in sorted(here.items())
    ]
    for client in range(4):
        mine = [age for who, age in seen if who == client]
        assert mine == [age for who, age in played if who == client][: len(mine)]
        assert len(mine) > 20


@pytest.mark.parametrize("name", ["async_fedavg", "fedfix"])
def test_models_are_those_of_the_simulator(name):
    running = simulation(name, 240, local_lr=0.1)
    found = [running.server.model.item() for event in simulate(running) if event.stepped]
    scheme = {"async_fedavg": "asynchronous"}.get(name, name)
    column, schedule = fraboni.scheme_of(scheme, F80)
    models = fraboni.virtual_models(
        list(islice(schedule, len(found))),
        np.array(column.weights, float),
        lr=0.1,
        steps=1,
        noise=0.0,
        seeds=1,
    )
    assert len(found) > 50
    np.testing.assert_allclose(found[:-1], models[0, 1:, 0], atol=1e-12)


def test_a_bound_that_is_too_low_is_seen(monkeypatch):
    honest = fraboni.theorem_1
    assert fraboni.theorem_1_slack(scheme="fedfix", steps=1, rounds=100) >= 1
    monkeypatch.setattr(fraboni, "theorem_1", lambda *given: replace(honest(*given), start=0.0, joint=0.0))
    assert fraboni.theorem_1_slack(scheme="fedfix", steps=1, rounds=100) < 1


def test_windows_that_are_too_short_are_not_fair(monkeypatch):
    honest = fraboni.scheme_of
    assert fraboni.window_is_fair(scheme="asynchronous", clients=4, spread=80)

    def shorter(*given: object) -> object:
        scheme, schedule = honest(*given)
        return replace(scheme, window=scheme.window - 1), schedule

    monkeypatch.setattr(fraboni, "scheme_of", shorter)
    assert not fraboni.window_is_fair(scheme="asynchronous", clients=4, spread=80)


def test_a_wrong_mean_is_not_passed_through():
    assert not fraboni.passes_through(scheme="fedfix", phi=0.1, printed=0.625)


@pytest.mark.parametrize(("q", "phi"), [((0.5, 0.5), 0.1), ((0.75, 0.25), 0.3)])
def test_attractor_is_where_example_2_ends(q, phi):
    """Two clients in turn, each from the model before the other's update."""
    exact = fraboni.example_2_attractor(q=[str(part) for part in q], phi=str(phi), optima=[1, -2])
    before = now = 0.0
    for n in range(40_000):
        before, now = now, now + q[n % 2] * phi * ((1, -2)[n % 2] - before)
    assert (before, now) == pytest.approx([float(x) for x in exact], abs=1e-12)


def test_exponential_participation_by_drawing():
    """A client whose remaining time is exponential joins a tick if it is at most Δt."""
    stream, rounds = np.random.default_rng(0), 200_000
    means = np.array([float(time) for time in fraboni.hardware(10, 80)])
    joins = (stream.exponential(means, (rounds, 10)) <= 0.5).mean(0)
    drawn = np.ceil(means / 0.5) * joins
    found = fraboni.fedfix_under_exponential_times(clients=10, spread=80, period="1/2")
    np.testing.assert_allclose(found, drawn, atol=4 * 2 * 0.5 / np.sqrt(rounds))


@pytest.mark.parametrize(
    ("slack", "theorem", "change"),
    [
        (lambda: fraboni.theorem_2_slack(scheme="asynchronous", steps=1, rounds=100), "theorem_2", 1e-3),
        (lambda: fraboni.theorem_4_slack(scheme="fedfix", steps=1, windows=100), "theorem_4", 0.1),
    ],
)
def test_lower_bounds_of_the_other_theorems_are_seen(monkeypatch, slack, theorem, change):
    honest = getattr(fraboni, theorem)
    assert slack() >= 1
    monkeypatch.setattr(fraboni, theorem, lambda *given, **named: change * honest(*given, **named))
    assert slack() < 1


def test_a_wrong_alpha_is_seen_by_enumeration(monkeypatch):
    honest = fraboni.sampled
    assert fraboni.property_1_holds(sampling="uniform", clients=4, size=2)
    wrong = lambda *given: replace(honest(*given), alpha=Fraction(1))  # noqa: E731
    monkeypatch.setattr(fraboni, "sampled", wrong)
    assert not fraboni.property_1_holds(sampling="uniform", clients=4, size=2)


def test_enumerated_sampling_by_hand():
    """Two of three: α = 3·1/(2·2) = 3/4; two MD draws: α = 1/2, β = 1/2."""
    assert fraboni.sampled("uniform", 2, 3).alpha == Fraction(3, 4)
    assert fraboni.sampled("MD", 2, 3).alpha == fraboni.sampled("MD", 2, 3).beta == Fraction(1, 2)


def test_biased_sampling_ends_at_the_optimum_of_those_it_takes():
    curvature, centres = fraboni.CURVATURE, np.array(fraboni.CENTRES)
    fast = curvature[2:] @ centres[2:] / curvature[2:].sum()
    apart = np.abs(centres - fraboni.OPTIMUM).mean()
    found = fraboni.biased_sampling_ends(criterion="fastest", size=2)
    assert found == pytest.approx(abs(fast - fraboni.OPTIMUM) / apart, rel=1e-6)
    assert fraboni.biased_sampling_ends(criterion="fastest", size=4) < 1e-9  # all of them: no bias


def test_slack_is_that_of_the_tightest_place():
    """Means of the first values are 2, 4, 3."""
    assert slack({1: 4.0, 2: 6.0, 3: 9.0}.__getitem__, [2.0, 6.0, 1.0]) == 1.5
    assert slack({1: 1.0, 2: 6.0, 3: 9.0}.__getitem__, [2.0, 6.0, 1.0]) == 0.5  # a bound that does not hold
    assert slack({1: 1.0, 2: 6.0, 3: 9.0}.__getitem__, [2.0, 6.0, 1.0], every=2) == 1.5
    assert slack({1: 0.0, 2: 9.0}.__getitem__, [0.0, 6.0]) == 3  # nothing is measured at first
    assert slack({1: 0.0}.__getitem__, [0.0]) == np.inf


# -- claims ----------------------------------------------------------------------------------------

test_window_is_fair = theorem(fraboni.window_is_fair)
test_bounds_hold = theorem(fraboni.bounds_hold)
test_as_often_as_clients = theorem(fraboni.as_often_as_clients)
test_async_under_exponential_times = theorem(fraboni.async_under_exponential_times)
test_fedfix_under_exponential_times = theorem(fraboni.fedfix_under_exponential_times)
test_example_1_ends = theorem(fraboni.example_1_ends)
test_example_2_attractor = theorem(fraboni.example_2_attractor)
test_passes_through = theorem(fraboni.passes_through)
test_theorem_1_slack = theorem(fraboni.theorem_1_slack)
test_step_limit_suffices = theorem(fraboni.step_limit_suffices)
test_theorem_2_slack = theorem(fraboni.theorem_2_slack)
test_corollary_3_slack = theorem(fraboni.corollary_3_slack, slow=True)
test_theorem_4_slack = theorem(fraboni.theorem_4_slack)
test_bound_vanishes = theorem(fraboni.bound_vanishes)
test_any_rate_vanishes = theorem(fraboni.any_rate_vanishes)
test_property_1_holds = theorem(fraboni.property_1_holds)
test_sampling_trends = theorem(fraboni.sampling_trends)
test_faster_rounds = theorem(fraboni.faster_rounds)
test_biased_sampling_ends = theorem(fraboni.biased_sampling_ends)
