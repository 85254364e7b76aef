"""Theorems of Yang et al. (ICML 2022): claims, values worked by hand, and bounds that can fail."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from tests.papers import anarchic
from tests.papers.anarchic import AnarchicSetting
from tests.papers.theorems import theorem

WORKERS = len(anarchic.CENTRES)
FIRST = np.array([anarchic.FIRST])
RUN = AnarchicSetting(
    lr=1.0,
    server_lr=1.0,
    rounds=600,
    gap=(anarchic.FIRST - anarchic.CENTRES.mean()) ** 2 / 2,
    workers=WORKERS,
    arrivals=2,
    noise=anarchic.NOISE**2,
    dissimilarity=float(np.max((anarchic.CENTRES - anarchic.CENTRES.mean()) ** 2)),
)


def test_theorem_3_needs_the_condition_that_its_proof_does_not_state():
    """Everybody, no delay, one local step: as printed, any ηη_L would do, and gradient descent diverges."""
    run = replace(RUN, arrivals=WORKERS, lr=0.01, server_lr=250.0, rounds=100, noise=0.0)
    *printed, missing = anarchic.uniform(run).conditions.values()
    assert all(printed) and not missing
    models, _ = anarchic.played(run, anarchic.CENTRES, FIRST, seeds=1)
    assert np.mean((models - anarchic.CENTRES.mean()) ** 2) > anarchic.uniform(run).value


def test_a_single_worker_is_gradient_descent():
    alone = replace(RUN, workers=1, arrivals=1, lr=0.01, noise=0.0, dissimilarity=0.0)
    assert anarchic.uniform(replace(alone, server_lr=50.0)).holds
    assert not anarchic.uniform(replace(alone, server_lr=51.0)).holds  # Lηη_L ≤ 1/2


def test_floor_of_general_arrivals():
    """4 α_G σ_G² → 6 σ_G² as rates vanish, and no further."""
    run = replace(RUN, lr=1e-9, server_lr=1.0)
    assert anarchic.general(run).dissimilarity == pytest.approx(6 * RUN.dissimilarity)
    assert anarchic.uniform(run).dissimilarity < 1e-6
    assert anarchic.silo(run).dissimilarity < 1e-6


@pytest.mark.parametrize(("theorem", "clients"), [(anarchic.uniform, 2), (anarchic.silo, WORKERS)])
def test_corollaries_2_and_3(theorem, clients):
    """With η_L = 1/√T, η = √m or √M the bound falls as 1/√(mT) or 1/√(MT), whatever τ and K are."""
    limits = []
    for delay, steps in [(0, 1), (5, 10)]:
        rounds = 10**14
        lr, server_lr = anarchic.learning_rates(rounds, clients)
        run = replace(
            RUN, rounds=rounds, lr=lr, server_lr=server_lr, delay=delay, steps=steps, dissimilarity=0.0
        )
        bound = theorem(run)
        assert bound.holds
        limits.append(bound.value * (clients * rounds) ** 0.5)
    assert limits[0] == pytest.approx(limits[1], rel=1e-3)


def test_corollary_1_up_to_the_floor():
    values = []
    for rounds in (10**10, 10**14):
        lr, server_lr = anarchic.learning_rates(rounds, RUN.arrivals)
        bound = anarchic.general(replace(RUN, rounds=rounds, lr=lr, server_lr=server_lr, delay=3, steps=5))
        values.append(bound.start + bound.noise)
    assert values[0] / values[1] == pytest.approx(100, rel=1e-2)  # 1/√T


WORKED = AnarchicSetting(  # Lηη_L = 1/5, L²η_L² = 1/100
    lr=1 / 20,
    server_lr=2.0,
    rounds=100,
    gap=3.0,
    workers=5,
    arrivals=2,
    noise=0.5,
    dissimilarity=0.25,
    delay=3,
    steps=4,
    smoothness=2.0,
)


@pytest.mark.parametrize(
    ("theorem", "alpha_noise", "alpha_dissimilarity", "conditions"),
    [
        # 1/10 + 3·9/25/4 + 15/2·4/100; 3/2 + 45·16/100; 180·16·4/100 ≥ 1, 2/5 + 27/25 > 1
        (anarchic.general, 0.67, 8.7, [False, False]),
        # path 1/5 + 9/25 = .56, missing 3/8: .28 + .2 + .21·.6; 4.8 + .21·17.4; 6·21/100 > 1, …, .56 ≤ .8
        (anarchic.uniform, 0.606, 8.454, [False, False, True]),
        # stale 9·6/5 = 10.8, spread 12.9: .06 + .2·12.9; 4.8·12.9
        (anarchic.silo, 2.64, 61.92, [False, False]),
    ],
    ids=["theorem 2", "theorem 3", "theorem 4"],
)
def test_bounds_worked_by_hand(theorem, alpha_noise, alpha_dissimilarity, conditions):
    bound = theorem(WORKED)
    assert bound.start == pytest.approx(1.2)  # 4·3/(2/20·100)
    assert bound.noise == pytest.approx(4 * alpha_noise * 0.5)
    assert bound.dissimilarity == pytest.approx(4 * alpha_dissimilarity * 0.25)
    assert bound.value == pytest.approx(1.2 + 2 * alpha_noise + alpha_dissimilarity)
    assert list(bound.conditions.values()) == conditions
    assert bound.holds is False


def test_without_delay_one_local_step_and_unit_smoothness_unless_said():
    run = AnarchicSetting(1 / 20, 2.0, 100, 3.0, 2, 1, 0.5, 0.25)  # Lηη_L = 1/10, L²η_L² = 1/400
    bound = anarchic.general(run)
    assert bound.noise == pytest.approx(4 * (1 / 10 + 15 / 800) * 0.5)
    assert bound.dissimilarity == pytest.approx(4 * (3 / 2 + 45 / 400) * 0.25)
    assert list(bound.conditions.values()) == [True, True]  # 180/400 < 1, 1/5 ≤ 1


@pytest.mark.parametrize(
    ("workers", "alpha_noise", "alpha_dissimilarity"),
    [
        (1, 0.76, 4.8),  # none is missing: .56 + .2; 4.8
        (2, 1.096, 14.544),  # one of two: .56 + .2 + .56·.6; 4.8 + .56·17.4
    ],
)
def test_theorem_3_of_one_arrival(workers, alpha_noise, alpha_dissimilarity):
    bound = anarchic.uniform(replace(WORKED, workers=workers, arrivals=1))
    assert bound.noise == pytest.approx(4 * alpha_noise * 0.5)
    assert bound.dissimilarity == pytest.approx(4 * alpha_dissimilarity * 0.25)


@pytest.mark.parametrize(
    ("delay", "squares"),
    [
        # 3·2/(2·3) = 1 against 1/2 − 27/2·7/6·(1/6)² = 1/16
        (1, (15.99, 16.01, 17.0, 40.0)),
        # against 1/2
        (0, (1.99, 2.0, 17.0, 40.0)),
    ],
)
def test_share_of_loud_rounds(delay, squares):
    run = replace(WORKED, workers=3, noise=2.0, delay=delay, smoothness=1.0, lr=1 / 12)  # Lηη_L = 1/6
    assert anarchic.loud(run, np.array(squares)) == 3 / 4


def exact(local, step, **fields):
    """A setting in fractions with these KLη_L and Lηη_L."""
    run = replace(WORKED, smoothness=2, **fields)
    lr = Fraction(local) / run.steps / 2
    return replace(run, lr=lr, server_lr=Fraction(step) / lr / 2)


HAIR = 1 + Fraction(1, 10**9)


@pytest.mark.parametrize(
    ("theorem", "which", "local", "step", "fields"),
    [
        # (1/30)² 180 (4+1) = 1
        (anarchic.general, 0, "1/30", "1/99", {"delay": 4}),
        # 2/8 + 3·16/64 = 1
        (anarchic.general, 1, "1/99", "1/8", {"delay": 4}),
        # K = 25: 6 (2·625 − 75 + 1) (1/84)² = 1
        (anarchic.uniform, 0, "25/84", "1/99", {"steps": 25}),
        # all take part: 120/60² (29+1) = 1
        (anarchic.uniform, 1, "1/60", "1/99", {"delay": 29, "arrivals": 5}),
        # path 1/44 + 16/44² = 15/484, missing 8/18: (120/60² + 4·15/484·8/18·(90/60² + 3)) (4+1) = 1
        (anarchic.uniform, 1, "1/60", "1/44", {"delay": 4, "workers": 10}),
        # 1/2 + 1/4 = 2·3/(2·4·1)
        (anarchic.uniform, 2, "1/99", "1/2", {"delay": 1, "workers": 4}),
        # three of four, no delay: 9/16 = 3·3/(2·4·2)
        (anarchic.uniform, 2, "1/99", "9/16", {"delay": 0, "workers": 4, "arrivals": 3}),
        # all take part: 1/4 + 4/16 = 1/2
        (anarchic.uniform, 2, "1/99", "1/4", {"delay": 2, "arrivals": 5}),
        # 12/65 + (60·9·66/65 + 180 + 360/65)/30² = 1
        (anarchic.silo, 0, "1/30", "1/65", {"delay": 0}),
        # 120/251 + (60·9·261/251·3 + 180 + 3600/251)/60² = 1
        (anarchic.silo, 0, "1/60", "10/251", {"delay": 2}),
        # 27/2 (1+1/48) (64/7/48)² = 1/2
        (anarchic.silo, 1, "1/99", "1/48", {"delay": Fraction(64, 7)}),
    ],
)
def test_where_a_condition_ends(theorem, which, local, step, fields):
    met = exact(Fraction(local) / HAIR, Fraction(step) / HAIR, **fields)
    missed = exact(Fraction(local) * HAIR, Fraction(step) * HAIR, **fields)
    assert list(theorem(met).conditions.values())[which]
    assert not list(theorem(missed).conditions.values())[which]


@pytest.mark.parametrize(
    ("theorem", "run", "conditions"),
    [
        (anarchic.general, exact("1/30", "1/8", delay=4), [False, True]),
        (anarchic.uniform, exact("25/84", "1/4", delay=2, steps=25, arrivals=5), [True, False, True]),
        (anarchic.uniform, exact("1/60", "1/2", delay=1, workers=4), [True, False, True]),
        (anarchic.uniform, exact("1/60", "1/99", delay=29, arrivals=5), [True, False, True]),
        (anarchic.silo, exact("1/30", "1/65", delay=0), [False, True]),
        (anarchic.silo, exact("1/300", "1/48", delay=Fraction(64, 7)), [True, False]),
    ],
)
def test_at_the_bound(theorem, run, conditions):
    """Theorem 2's first, Theorem 3's second and Theorem 4's are strict, the others are not."""
    assert list(theorem(run).conditions.values()) == conditions


PAIR_RUN = AnarchicSetting(
    lr=0.1, server_lr=1.0, rounds=50, gap=1.0, workers=2, arrivals=2, noise=0.0, dissimilarity=1.0
)
PAIR, START = np.array([[1.0], [3.0]]), np.array([0.0])


def test_everybody_without_noise_is_gradient_descent():
    models, _ = anarchic.played(PAIR_RUN, PAIR, START, seeds=1)
    np.testing.assert_allclose(models[:, 0, 0], 2 - 2 * 0.9 ** np.arange(50), atol=1e-12)


def test_the_memory_keeps_what_the_other_worker_sent():
    """One of two in turn: G is the mean of a fresh gradient and of one that is a round old."""
    models, means = anarchic.played(
        replace(PAIR_RUN, arrivals=1, rounds=20), PAIR, START, memory=True, seeds=1
    )
    x, slots = 0.0, [-1.0, -3.0]
    for t in range(20):
        assert models[t, 0, 0] == pytest.approx(x)
        slots[t % 2] = x - PAIR[t % 2, 0]
        assert means[t, 0, 0] == pytest.approx(sum(slots) / 2)
        x -= 0.1 * sum(slots) / 2


def test_draws_have_the_given_chances_and_no_worker_twice():
    """Of the first worker alone: its gradient is the only one that is not 0."""
    lone = np.array([[1.0], [0.0], [0.0]])
    run = replace(PAIR_RUN, workers=3, arrivals=1, rounds=4000, lr=1e-12)
    _, means = anarchic.played(run, lone, START, chances=(0.5, 0.3, 0.2), seeds=5)
    assert np.mean(means < -0.5) == pytest.approx(0.5, abs=4 * 0.5 / np.sqrt(20_000))
    _, both = anarchic.played(replace(run, arrivals=3), lone, START, chances=(0.5, 0.3, 0.2), seeds=5)
    np.testing.assert_allclose(both, -1 / 3, atol=1e-6)


def test_noise_has_the_said_variance():
    run = replace(PAIR_RUN, workers=1, arrivals=1, noise=4.0, rounds=5000, lr=1e-12)
    _, means = anarchic.played(run, np.zeros((1, 3)), np.zeros(3), seeds=4)
    assert (means**2).sum(-1).mean() == pytest.approx(4.0, rel=0.05)


@pytest.mark.parametrize("theorem", ["general", "uniform", "silo"])
def test_a_bound_that_is_too_low_is_seen(monkeypatch, theorem):
    assert anarchic.bound_slack(theorem=theorem, steps=1, delay=2, rounds=200) >= 1
    honest = getattr(anarchic, theorem)
    lower = lambda run: replace(honest(run), start=0.0, dissimilarity=0.0)  # noqa: E731
    monkeypatch.setitem(anarchic.THEOREMS, theorem, lower)
    assert anarchic.bound_slack(theorem=theorem, steps=1, delay=2, rounds=200) < 1


def test_step_sizes_outside_of_the_theorem_are_refused():
    with pytest.raises(ValueError, match="outside the theorem's conditions at T = 100"):
        anarchic.speed_up(strategy="afa_cs", sizes=[8], horizons=[100], target=1.0)


# -- claims ----------------------------------------------------------------------------------------

test_lower_bound = theorem(anarchic.lower_bound)
test_lower_bound_slope = theorem(anarchic.lower_bound_slope)
test_first_pass = theorem(anarchic.first_pass)
test_speed_up = theorem(anarchic.speed_up, slow=True)
test_floor_exponent = theorem(anarchic.floor_exponent, slow=True)
test_floor_ratio = theorem(anarchic.floor_ratio, slow=True)
test_floor = theorem(anarchic.floor, slow=True)
test_delay_ratio = theorem(anarchic.delay_ratio, slow=True)
test_bound_slack = theorem(anarchic.bound_slack)
test_condition_7 = theorem(anarchic.condition_7, slow=True)
