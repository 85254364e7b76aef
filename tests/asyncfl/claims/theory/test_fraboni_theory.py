"""Fraboni's theorems: dominance on quadratics with every constant known, and what each term scales with."""

from dataclasses import replace
from fractions import Fraction
from itertools import islice

import numpy as np
import pytest

from asyncfl.claims.computed import fraboni_theorems as theorems
from asyncfl.claims.computed.fraboni_schedules import hardware, scheme_of
from asyncfl.claims.theory import fraboni

SCHEMES = [("synchronous", "1/2"), ("asynchronous", "1/2"), ("fedfix", "1/2"), ("fedfix", "1/5")]


@pytest.mark.parametrize(("scheme", "period"), SCHEMES)
def test_the_schedule_has_the_said_delay(scheme, period):
    column, schedule = scheme_of(scheme, hardware(4, 80), period)
    delays = [n - v for n, clients in enumerate(islice(schedule, 1000)) for v in clients.values()]
    assert max(delays) == column.delay


@pytest.mark.parametrize("steps", [1, 3])
@pytest.mark.parametrize(("scheme", "period"), SCHEMES)
def test_theorem_1_dominates(scheme, period, steps):
    tightest = theorems.theorem_1_slack(scheme=scheme, period=period, steps=steps)
    assert 1 <= tightest < 50  # and is no empty promise


@pytest.mark.parametrize("steps", [1, 3])
@pytest.mark.parametrize(("scheme", "period"), SCHEMES[:3])  # no empty ticks here
def test_theorem_2_dominates(scheme, period, steps):
    assert theorems.theorem_2_slack(scheme=scheme, period=period, steps=steps) >= 1


@pytest.mark.parametrize("steps", [1, 3])
@pytest.mark.parametrize("scheme", ["synchronous", "fedfix"])  # their windows close
def test_theorem_4_dominates(scheme, steps):
    assert theorems.theorem_4_slack(scheme=scheme, steps=steps, windows=500) >= 1


def test_corollary_3_is_theorem_1_without_residual():
    synchronous = theorems.played("synchronous", 1, "1/2", 1000)
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
