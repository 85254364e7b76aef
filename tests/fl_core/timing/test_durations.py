"""Duration laws: their distributions, exact means, pairing, labels and complaints."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from scipy import stats

from fl_core.timing.durations import (
    FX,
    Durations,
    DurationTrace,
    Exponential,
    Fixed,
    Lengths,
    TwoSpeed,
    means,
)

TINY = 1e-3  # a right law fails with this probability; seeds are fixed, so that it does not


def law(name: str, **fields: Any) -> Durations:
    return Durations.model_validate({"name": name, **fields})


def drawn(durations: Durations, n: int = 50, jobs: int = 100, seed: int = 0) -> np.ndarray:
    """Lengths in virtual time [n, jobs]."""
    lengths = Lengths(durations, n, seed)
    ticks = [[lengths(client, job) for job in range(jobs)] for client in range(n)]
    return np.array(ticks) * float(lengths.clock.unit)


# -- distributions, against scipy's ----------------------------------------------------------------

DRAWN = [
    (law("exponential", mean=5), stats.expon(scale=5)),
    (law("shifted_exponential", mean=3, shift=2), stats.expon(loc=2, scale=1)),
    (law("lognormal", mean=2, sigma=0, noise=0.5), stats.lognorm(s=0.5, scale=2 * math.exp(-1 / 8))),
    (law("scipy", law="lognorm", shape=(0.5,), mean=2), stats.lognorm(s=0.5, scale=2 * math.exp(-1 / 8))),
    (law("scipy", law="halfnorm", shape=(), mean=2), stats.halfnorm(scale=2 / stats.halfnorm.mean())),
    (law("scipy", law="pareto", shape=(3,), mean=3), stats.pareto(b=3, scale=2)),
]


@pytest.mark.parametrize(
    ("durations", "distribution"),
    [*DRAWN[:3], *(pytest.param(*case, marks=pytest.mark.slow) for case in DRAWN[3:])],
    ids=lambda case: getattr(case, "name", ""),
)
def test_jobs_follow_the_law(durations: Durations, distribution: Any) -> None:
    """All jobs of all clients are one sample of it (Kolmogorov–Smirnov), with the mean asked for."""
    sample = drawn(durations, n=100, jobs=100).ravel()
    assert stats.kstest(sample, distribution.cdf).pvalue > TINY
    error = distribution.std() / math.sqrt(sample.size)
    assert abs(sample.mean() - distribution.mean()) < 4 * error
    assert float(durations.means(1, 0)[0]) == pytest.approx(distribution.mean(), rel=1e-12)


def test_jobs_are_independent_of_each_other() -> None:
    """Ranks of neighbours, along the jobs of a client and along the clients at one job, do not correlate."""
    sample = drawn(law("exponential"))
    for one, other in ((sample[:, :-1], sample[:, 1:]), (sample[:-1], sample[1:])):
        assert stats.spearmanr(one.ravel(), other.ravel()).pvalue > TINY


def test_persistent_means_are_exponential_and_so_are_the_jobs_around_them() -> None:
    """β_i ~ Exp(5) once a client, jobs ~ Exp(β_i)."""
    durations = law("persistent", mean=5)
    means = np.array([float(mean) for mean in durations.means(2000, 3)])
    assert stats.kstest(means, stats.expon(scale=5).cdf).pvalue > TINY
    sample = drawn(durations, seed=3) / means[:50, None]
    assert stats.kstest(sample.ravel(), stats.expon.cdf).pvalue > TINY


def test_log_normal_speeds_over_clients() -> None:
    """Mean and variance of 20,000 clients within five standard errors; without noise all jobs take the mean.

    The standard error of a sample variance is σ² √((κ − 1)/N), κ the kurtosis.
    """
    clients = law("lognormal", mean=3, sigma=0.7, noise=0)
    w = math.exp(0.7**2)
    variance, kurtosis = 9 * (w - 1), w**4 + 2 * w**3 + 3 * w**2 - 3
    sample = np.array([float(length) for length in clients.means(20_000, 5)])
    assert abs(sample.mean() - 3) < 5 * math.sqrt(variance / sample.size)
    assert abs(sample.var() - variance) < 5 * variance * math.sqrt((kurtosis - 1) / sample.size)
    lengths = Lengths(clients, 3, 5)
    assert [lengths(client, job) * lengths.clock.unit for client in range(3) for job in range(2)] == [
        length for length in clients.means(3, 5) for _ in range(2)
    ]


def test_phones_are_of_three_speeds_in_the_published_shares() -> None:
    """1642 : 588 : 179 in shares of 18820 : 16428 : 159; their mean is the one asked for."""
    drawn = law("phones", mean=3).means(40_000, 1)
    counts = Counter(drawn)
    slow, middle, fast = sorted(counts, reverse=True)
    assert (float(slow / fast), float(middle / fast)) == pytest.approx((1642 / 179, 588 / 179), rel=1e-5)
    shares = np.array([18820, 16428, 159]) / 35407
    observed = [counts[slow], counts[middle], counts[fast]]
    assert stats.chisquare(observed, 40_000 * shares).pvalue > TINY
    assert float(shares @ np.array([slow, middle, fast], float)) == pytest.approx(3, abs=1e-6)


def test_a_uniform_reading_of_fx_draws_uniform_means() -> None:
    durations = FX(reading="uniform")
    means = [float(mean) for mean in durations.means(2000, 1)]
    assert stats.kstest(means, stats.uniform(0.2, 0.8).cdf).pvalue > TINY
    assert durations.means(2000, 2) != durations.means(2000, 1)
    assert all((mean / durations.unit).denominator == 1 for mean in durations.means(50, 1))
    assert not durations.random  # the means are drawn, the jobs are not


@pytest.mark.parametrize("durations", [FX(jobs="exponential"), TwoSpeed(jobs="exponential")])
def test_exponential_jobs_around_the_speed_of_each_client(durations: Durations) -> None:
    means = np.array([float(mean) for mean in durations.means(10, 4)])
    sample = drawn(durations, n=10, jobs=500, seed=4) / means[:, None]
    assert stats.kstest(sample.ravel(), stats.expon.cdf).pvalue > TINY
    assert len(set(means)) > 1


def test_exponential_with_a_mean_for_each_client() -> None:
    """§5.2 of Generalized AsyncSGD: mean services 100, 10, 1; `mean` scales them all."""
    durations = law("exponential", times=[100, 10, 1], mean="1/2")
    assert durations.means(3, 0) == (50, 5, Fraction(1, 2))
    sample = drawn(durations, n=3, jobs=1000) / np.array([[50], [5], [0.5]])
    assert all(stats.kstest(row, stats.expon.cdf).pvalue > TINY for row in sample)


# -- exact laws ------------------------------------------------------------------------------------


@given(st.integers(2, 60), st.integers(0, 99))
def test_fx_is_an_even_grid_from_one_down(n: int, spread: int) -> None:
    """As coded: τ_i = 1 − X/100 · i/(n−1), client 0 slowest, the same for every seed."""
    means = FX(spread=spread).means(n, 0)
    assert means[0] == 1
    assert means[-1] == 1 - Fraction(spread, 100)
    assert {before - after for before, after in pairwise(means)} == {Fraction(spread, 100 * (n - 1))}
    assert FX(spread=spread).means(n, 9) == means


def test_fx_gives_the_published_rates() -> None:
    """Aggregations per unit of time under F80: 21.28, 41.31, 101.61 for 10, 20, 50 clients."""
    rates = [float(sum(1 / tau for tau in FX().means(n, 0))) for n in (10, 20, 50)]
    assert rates == pytest.approx([21.28, 41.31, 101.61], abs=0.005)
    assert FX().means(1, 0) == (1,)


@given(st.integers(1, 60), st.integers(0, 20), st.integers(0, 2**32))
def test_two_speeds_in_the_right_number(n: int, twentieths: int, seed: int) -> None:
    """⌊share · n + ½⌋ slow clients; more of a larger share, and the same ones among them."""
    share = twentieths / 20
    means = TwoSpeed(share=share, fast=Fraction(1, 2), slow=5).means(n, seed)
    counts = Counter(means)
    assert counts[Fraction(5)] == (2 * twentieths * n + 20) // 40
    assert counts[Fraction(5)] + counts[Fraction(1, 2)] == n
    larger = TwoSpeed(share=min(1, share + 0.1), fast=Fraction(1, 2), slow=5).means(n, seed)
    assert all(more >= less for less, more in zip(means, larger, strict=True))


def test_a_share_is_the_number_as_written() -> None:
    """.145 of 100 clients are 14.5, so 15; the nearest double is a little less."""
    assert Counter(TwoSpeed(share=0.145).means(100, 0))[Fraction(10)] == 15


def test_who_is_slow_changes_with_the_seed() -> None:
    slow = [TwoSpeed().means(20, seed).index(10) for seed in range(40)]
    assert len(set(slow)) > 5
    assert Lengths(TwoSpeed(), 20, 0).clock.unit == 1


def test_a_fixed_length_for_everyone_or_for_each() -> None:
    assert Fixed(times=[2]).means(3, 0) == (2, 2, 2)
    assert law("fixed", times=[0.1, "1/3"]).means(2, 0) == (Fraction(1, 10), Fraction(1, 3))
    assert Lengths(law("fixed", times=[0.1, "1/3"]), 2, 0).clock.unit == Fraction(1, 30)


def test_a_job_of_k_steps_takes_k_times_as_long_only_where_the_law_says_so() -> None:
    for name in ("fixed", "exponential"):
        once, each = Lengths(law(name), 2, 0), Lengths(law(name, per_step=True), 2, 0)
        assert once(1, 3, 7) == once(1, 3)
        assert each(1, 3, 7) == 7 * once(1, 3)


# -- pairing ---------------------------------------------------------------------------------------

ALL = [law(name) for name in Durations.members() if name != "trace"]
UNEVEN = [Fraction(1, 7), Fraction(3, 10), Fraction(22, 9)]


@pytest.mark.parametrize("durations", ALL, ids=lambda durations: durations.name)
def test_exact_times_refine_the_clock_and_change_no_length(durations: Durations) -> None:
    """Every job takes the same virtual time whatever Δt a strategy has, and Δt is a whole number of ticks."""
    plain, refined = Lengths(durations, 5, 2), Lengths(durations, 5, 2, UNEVEN)
    assert (plain.clock.unit / refined.clock.unit).denominator == 1
    assert all(refined.clock.ticks(time) * refined.clock.unit == time for time in UNEVEN)
    for client in range(5):
        for job in range(20):
            ticks = plain(client, job)
            assert ticks >= 1
            assert refined(client, job) * refined.clock.unit == ticks * plain.clock.unit


def test_a_longer_mean_stretches_the_same_draws() -> None:
    """I.i.d. delays of mean 30 are those of mean 5 times six, to the tick: nothing changes its order."""
    short, long = drawn(law("exponential", mean=5)), drawn(law("exponential", mean=30))
    np.testing.assert_allclose(long, 6 * short, rtol=0, atol=6e-6)


def test_a_length_is_never_zero_and_never_not_a_number() -> None:
    class Odd(Exponential):
        value: float

        def draw(self, mean: float, rng: np.random.Generator) -> float:
            return self.value

    assert Lengths(Odd(value=0), 1, 0)(0, 0) == 1
    for value in (-1.0, 1e400):
        with pytest.raises(ValueError, match="for client 0"):
            Lengths(Odd.model_construct(value=value), 1, 0)(0, 0)


def test_a_law_of_ones_own_is_named_by_its_import_path() -> None:
    """A class with `means` and `draw` is a random law, without registration."""
    assert Durations.model_validate("scripted_law:Coin").label() == "Coin"
    sample = drawn(Durations.model_validate("scripted_law:Coin"))
    assert set(np.unique(sample)) == {1.0, 3.0}
    assert stats.binomtest(int((sample == 3).sum()), sample.size).pvalue > TINY


# -- traces ----------------------------------------------------------------------------------------


def traced(folder: Path, text: str) -> Path:
    path = folder / "phones.csv"
    path.write_text(text)
    return path


def test_a_trace_is_played_in_order_and_starts_over(tmp_path: Path) -> None:
    path = traced(tmp_path, "client,length\n0,0.5\n1,1/3,2\n\n0, 1.25\n7,100\n")
    durations = DurationTrace(path=path)
    lengths = Lengths(durations, 2, 0)
    assert lengths.means == (Fraction(7, 8), Fraction(7, 6))
    assert lengths.clock.unit == Fraction(1, 12)  # of the clients that take part
    played = [[lengths(client, job) * lengths.clock.unit for job in range(3)] for client in (0, 1)]
    assert played == [[Fraction(1, 2), Fraction(5, 4), Fraction(1, 2)], [Fraction(1, 3), 2, Fraction(1, 3)]]


def test_the_content_of_a_trace_is_part_of_what_is_described(tmp_path: Path) -> None:
    path = traced(tmp_path, "0,1\n")
    first = DurationTrace(path=path)
    described = first.model_dump(mode="json")
    assert Durations.model_validate(described) == first
    traced(tmp_path, "0,2\n")
    assert DurationTrace(path=path) != first
    other = Durations.model_validate(described | {"digest": "0123456789abcdef"})
    with pytest.raises(ValueError, match=r"phones\.csv: .* 0123456789abcdef"):
        Lengths(other, 1, 0)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("0,1\n1,fast\n", 2),
        ("0,1\n1,0\n", 2),
        ("0\n", 1),
        ("-1,2\n", 1),
        ("0,nan\n", 1),
        ("0,1,\n", 1),
        ("client_id,length\nphone a,1\n,2\n", 3),
        ("client_id,length\nclient_id,length\n", 2),
    ],
)
def test_a_damaged_trace_is_refused_with_the_line(tmp_path: Path, text: str, line: int) -> None:
    with pytest.raises(ValidationError, match=f"line {line}") as found:
        DurationTrace(path=traced(tmp_path, text))
    assert found.value.error_count() == 1


def test_a_trace_that_is_missing_or_lacks_a_client(tmp_path: Path) -> None:
    with pytest.raises(ValidationError, match=r"phones\.csv") as found:
        DurationTrace(path=tmp_path / "phones.csv")
    assert found.value.error_count() == 1
    path = traced(tmp_path, "0,1\n2,1\n")
    with pytest.raises(ValueError, match="2 clients"):
        Lengths(DurationTrace(path=path), 3, 0)
    with pytest.raises(ValueError, match="no client 1"):
        Lengths(DurationTrace(path=path), 2, 0)


@pytest.mark.parametrize(
    "header", ["client,length", "client_id,length", "Client ID; 2,t (s)", "\ufeffid,length"]
)
def test_any_first_row_without_a_number_is_a_header(tmp_path: Path, header: str) -> None:
    durations = DurationTrace(path=traced(tmp_path, f"{header}\n0,1/2\n1,2\n"))
    assert durations.means(2, 0) == (Fraction(1, 2), 2)


def test_clients_with_texts_are_numbered_in_order_of_appearance(tmp_path: Path) -> None:
    durations = DurationTrace(path=traced(tmp_path, "client_id,length\npixel-7,3\n17,1\npixel-7,5\na3f,2\n"))
    assert durations.cycles(3, 0) == ((3, 5), (1,), (2,))
    long = DurationTrace(
        path=traced(tmp_path, f"client_id,length\n{'9' * 5000},3\n1,1\n")
    )  # more than int() takes
    assert long.cycles(2, 0) == ((3,), (1,))


def test_clients_of_a_longer_log_are_the_first_or_drawn(tmp_path: Path) -> None:
    path = traced(tmp_path, "".join(f"{client},{client + 1}\n" for client in range(50)))
    assert DurationTrace(path=path).means(4, 0) == DurationTrace(path=path).means(4, 1) == (1, 2, 3, 4)
    durations = DurationTrace(path=path, clients="random")
    draws = [durations.means(4, seed) for seed in range(200)]
    assert all(len(set(draw)) == 4 and set(draw) <= set(range(1, 51)) for draw in draws)
    assert draws[0] == durations.means(8, 0)[:4] != draws[1]
    # 800 draws of 50 clients: 16 of each, with a standard deviation below 4.
    counts = np.bincount([int(mean) for draw in draws for mean in draw], minlength=51)[1:]
    assert counts.min() > 0 and counts.max() < 16 + 6 * 4


def test_clients_are_drawn_whatever_their_numbers(tmp_path: Path) -> None:
    path = traced(tmp_path, "client_id,length\n2044,4\n1001,2\n3,7\n")
    assert set(DurationTrace(path=path, clients="random").means(3, 5)) == {2, 4, 7}


# -- names and complaints --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "fields",
    [
        {"name": "fx", "spread": 100},
        {"name": "fx", "reading": "even"},
        {"name": "two_speed", "slow": 0.5},
        {"name": "two_speed", "share": 1.5},
        {"name": "shifted_exponential", "shift": 1},
        {"name": "scipy", "law": "log_normal"},
        {"name": "scipy", "law": "gamma", "shape": []},
        {"name": "scipy", "law": "norm", "shape": []},
        {"name": "scipy", "law": "pareto", "shape": [1]},
        {"name": "fixed", "times": [1, 0]},
        {"name": "exponential", "mean": "fast"},
        {"name": "expnential"},
        {"name": "trace"},
    ],
    ids=str,
)
def test_each_mistake_is_one_error(fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError) as found:
        Durations.model_validate(fields)
    assert found.value.error_count() == 1


def test_times_must_fit_the_number_of_clients() -> None:
    for name in ("fixed", "exponential"):
        with pytest.raises(ValueError, match="times: 2 given for 3 clients"):
            Lengths(law(name, times=[1, 2]), 3, 0)


class Odd(Durations):
    """A law of a user's own that gives one client a mean that cannot be."""

    mean: Any = Fraction(1)

    def means(self, n: int, seed: int) -> tuple[Fraction, ...]:
        return (*(Fraction(1),) * (n - 1), self.mean)


@pytest.mark.parametrize("mean", [Fraction(0), Fraction(-1, 2), float("nan"), float("inf"), 0.5, "1"])
def test_a_mean_that_cannot_be_is_told_with_law_and_client(mean: Any) -> None:
    with pytest.raises(ValueError, match=r"^durations: .*:Odd gives client 2 "):
        Lengths(Odd.model_construct(mean=mean), 3, 0)


@pytest.mark.parametrize("given", [(Fraction(1),) * 2, None])
def test_there_is_a_mean_for_each_client(given: Any) -> None:
    class Short(Durations):
        def means(self, n: int, seed: int) -> tuple[Fraction, ...]:
            means: tuple[Fraction, ...] = given
            return means

    with pytest.raises(ValueError, match="Short"):
        means(Short.model_construct(), 3, 0)


class Cycling(Durations):
    """A law of a user's own that is not random."""

    given: Any = (Fraction(1),)

    def means(self, n: int, seed: int) -> tuple[Fraction, ...]:
        return (Fraction(1),) * n

    def cycles(self, n: int, seed: int) -> tuple[tuple[Fraction, ...], ...]:
        return (self.given,) * n


@pytest.mark.parametrize("given", [(), 1, (Fraction(3), Fraction(-1)), (0.5, 1.5)])
def test_the_lengths_of_a_law_that_is_not_random_are_exact(given: Any) -> None:
    with pytest.raises(ValueError, match=r"^durations: .*:Cycling\S* gives client 0 "):
        Lengths(Cycling.model_construct(given=given), 2, 0)


def test_integers_of_numpy_are_exact_and_come_back_as_python_s() -> None:
    """A checkpoint keeps no others."""
    lengths = Lengths(Cycling.model_construct(given=tuple(np.array([3, 6]))), 2, 0)
    assert [lengths(1, job) for job in range(3)] == [1, 2, 1] and type(lengths(0, 0)) is int


@pytest.mark.parametrize("length", [None, "1", np.ones(1), np.ones(2)])
def test_a_drawn_length_is_a_number(length: Any) -> None:
    class Kind(Exponential):
        def draw(self, mean: float, rng: np.random.Generator) -> float:
            drawn: float = length
            return drawn

    with pytest.raises(ValueError, match="for client 0"):
        Lengths(Kind(), 1, 0)(0, 0)
