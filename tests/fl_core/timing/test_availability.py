"""Availability laws: invariants of every one, and their distributions."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from scipy import stats

from fl_core.scenario import Timing
from fl_core.streams import stream
from fl_core.timing.availability import Availability
from fl_core.timing.clock import VirtualClock, common_unit
from fl_core.timing.durations import Fixed, Lengths

TINY = 1e-3  # a right law fails with this probability; seeds are fixed, so that it does not


def law(name: str, **fields: Any) -> Availability:
    return Availability.model_validate({"name": name, **fields})


LAWS = [
    law("always"),
    law("dropouts", share=0.3, at=2.5),
    law("dropouts", share=0.7, at=0, back="10/3"),
    law("spells", mean_on=3, mean_off=0.5),
    law("spells", mean_on="1/1000000", mean_off="1/1000000"),
    law("bernoulli", probability=0.4),
    law("bernoulli", probability=0, up_to=1, period="1/3"),
    law("bernoulli", probability=0),
    law("bernoulli", probability=1),
    law("diurnal"),
    law("diurnal", share=0.01, ratio=99, day=1, peak="1/3", zones=[0, 0.5]),
]


def first(durations: Iterator[Any], count: int = 30) -> list[Any]:
    return list(islice(durations, count))


def present(availability: Availability, client: int, n: int, seed: int, times: list[Fraction]) -> list[bool]:
    """Whether the client is there at each of `times`, which increase."""
    absences = availability.absences(client, n, seed)
    leaves, returns = next(absences, (None, None))
    there = []
    for time in times:
        while leaves is not None and returns is not None and returns <= time:
            leaves, returns = next(absences, (None, None))
        there.append(leaves is None or time < leaves)
    return there


@given(st.sampled_from(LAWS), st.integers(0, 9), st.integers(0, 2**32), st.sampled_from(["1", "1/7"]))
def test_absences_are_whole_numbers_of_ticks_for_every_strategy(
    availability: Availability, client: int, seed: int, period: str
) -> None:
    """So that clients come and go at the same virtual time whatever Δt a strategy has."""
    clock = Lengths(Fixed(), 10, seed, [*availability.times(), Fraction(period)]).clock
    for time in (t for absence in first(availability.absences(client, 10, seed)) for t in absence if t):
        assert clock.round(time) * clock.unit == time


@given(st.integers(1, 40), st.integers(0, 10), st.integers(0, 2**32))
def test_the_right_number_drops_out_and_shares_are_nested(n: int, tenths: int, seed: int) -> None:
    """⌊share · n + ½⌋ clients, all at one time; whoever leaves with 30 % leaves with 40 % too."""
    out = {
        share: {
            client
            for client in range(n)
            if first(law("dropouts", share=share / 10, at=5, back=7).absences(client, n, seed)) == [(5, 7)]
        }
        for share in (tenths, min(10, tenths + 1))
    }
    assert len(out[tenths]) == (2 * tenths * n + 10) // 20
    assert out[tenths] <= out[min(10, tenths + 1)]


def test_dropouts_are_chosen_at_random() -> None:
    """Over seeds each of ten clients leaves as often as another (χ²)."""
    availability = law("dropouts", share=0.3, at=1)
    gone = np.zeros(10)
    for seed in range(500):
        gone += [any(availability.absences(client, 10, seed)) for client in range(10)]
    assert gone.sum() == 1500
    # Three of ten a seed are drawn without replacement, which makes counts more even than χ² expects.
    assert stats.chisquare(gone).pvalue > TINY
    assert len(set(gone)) > 1


def test_spells_are_exponential_with_their_means() -> None:
    availability = law("spells", mean_on=3, mean_off=0.5)
    on, off = [], []
    for client in range(20):
        absences = first(availability.absences(client, 20, 0), 150)
        off += [float(returns - leaves) for leaves, returns in absences]
        on += [float(leaves - returns) for (_, returns), (leaves, _) in pairwise(absences)]
    assert stats.kstest(on, stats.expon(scale=3).cdf).pvalue > TINY
    assert stats.kstest(off, stats.expon(scale=0.5).cdf).pvalue > TINY


@pytest.mark.parametrize("time", [Fraction(0), Fraction(1, 2), Fraction(20)])
def test_spells_are_stationary_from_the_beginning(time: Fraction) -> None:
    """P(there at t) = on/(on + off) at time 0 as at any other."""
    availability = law("spells", mean_on=3, mean_off=1)
    there = sum(present(availability, client, 2000, 7, [time])[0] for client in range(2000))
    assert stats.binomtest(there, 2000, 0.75).pvalue > TINY


def test_bernoulli_periods_are_independent_with_the_given_probability() -> None:
    """Period by period as if a coin were thrown for each: frequency, and no memory from one to the next."""
    availability = law("bernoulli", probability=0.3, period="1/3")
    middles = [Fraction(2 * k + 1, 6) for k in range(200)]
    there = np.array([present(availability, client, 50, 1, middles) for client in range(50)])
    edges = [Fraction(k, 3) for k in range(200)]  # at an edge the new period has begun
    assert (there == np.array([present(availability, client, 50, 1, edges) for client in range(50)])).all()
    assert stats.binomtest(int(there.sum()), there.size, 0.3).pvalue > TINY
    after = there[:, 1:][there[:, :-1]]  # those that follow a period of presence
    assert stats.binomtest(int(after.sum()), after.size, 0.3).pvalue > TINY
    assert stats.binomtest(int(there[:, 0].sum()), 50, 0.3).pvalue > TINY


def test_bernoulli_probabilities_of_clients_are_uniform_in_their_range() -> None:
    """MIFA's range [.1, 1]: the mean frequency over clients is .55, and clients differ as U(.1, 1) does."""
    availability = law("bernoulli", probability=0.1, up_to=1)
    middles = [Fraction(2 * k + 1, 2) for k in range(400)]
    frequency = [float(np.mean(present(availability, client, 300, 2, middles))) for client in range(300)]
    # A frequency over 400 periods is within .025 of its probability (one standard deviation).
    assert stats.ks_2samp(frequency, np.random.default_rng(0).uniform(0.1, 1, 300)).pvalue > TINY
    assert np.mean(frequency) == pytest.approx(0.55, abs=4 * 0.9 / 12**0.5 / 300**0.5)


def test_never_there_and_always_there() -> None:
    assert first(law("bernoulli", probability=0).absences(3, 9, 0)) == [(0, None)]
    assert first(law("bernoulli", probability=1).absences(3, 9, 0)) == []
    assert first(law("always").absences(3, 9, 0)) == []


@pytest.mark.parametrize(
    "fields",
    [{}, {"share": 0.6, "peak": 3, "zones": [0, 6, 9]}, {"share": 0.1, "ratio": 50, "day": 5, "zones": [2]}],
)
def test_as_many_are_present_as_the_hour_says(fields: dict[str, Any]) -> None:
    """The mean over zones of share · (1 + a cos(2π (t − zone − peak)/day)), at all hours of three days."""
    diurnal, n = law("diurnal", **fields), 1500
    share, ratio, day, peak, zones = (
        {"share": 0.5, "ratio": 4, "day": 24, "peak": 0, "zones": [0]} | fields
    ).values()
    hours = [Fraction(3 * day * k, 17) for k in range(17)]
    there = np.mean([present(diurnal, client, n, 5, hours) for client in range(n)], axis=0)
    for hour, share_then in zip(hours, there, strict=True):
        angles = [2 * np.pi * (float(hour) - zone - peak) / day for zone in zones]
        expected = share * (1 + (ratio - 1) / (ratio + 1) * np.mean(np.cos(angles)))
        assert stats.binomtest(round(share_then * n), n, expected).pvalue > TINY / 17, float(hour)


ROWS = st.lists(
    st.tuples(st.integers(0, 99), st.integers(1, 100)).filter(lambda row: row[0] < row[1]), min_size=1
)


@given(ROWS, st.booleans(), st.booleans(), st.booleans())
def test_clients_are_present_as_recorded(
    tmp_path_factory: pytest.TempPathFactory,
    rows: list[tuple[int, int]],
    repeat: bool,
    column: bool,
    shift: bool,
) -> None:
    """Present at t if a row holds t, or t in its period: looked up row by row, hour by hour."""
    path = tmp_path_factory.mktemp("presence") / "seen.csv"
    last = ",100" if column else ""
    path.write_text("client,from,to\n" + "".join(f"b,{begin},{end}{last}\n" for begin, end in rows))
    period = {"period": 100} if repeat and not column else {}
    fields = {"path": path, **period, "shift": shift and (repeat or column)}
    trace = law("trace", **fields)
    times = [Fraction(2 * t + 1, 2) for t in range(250)]
    there = present(trace, 0, 1, 3, times)
    begin = Fraction(0)
    if fields["shift"]:  # by how much is drawn: less than a period
        begin = Fraction(int(stream(3, "shift", 0).integers(100_000_000)), 1_000_000)
    looked_up = [(time + begin) % 100 if repeat or column else time for time in times]
    assert there == [any(begin <= time < end for begin, end in rows) for time in looked_up]
    absences = first(trace.absences(0, 1, 3))
    assert all(leaves < returns for leaves, returns in absences if returns is not None)
    assert all(one[1] < other[0] for one, other in pairwise(absences))
    assert Availability.model_validate_json(trace.model_dump_json()) == trace


def test_shifts_are_spread_over_the_period(tmp_path: Path) -> None:
    """A quarter of many clients is present at any time, where each is for a quarter of its period."""
    path, n = tmp_path / "seen.csv", 800
    path.write_text("".join(f"{client},5,30\n" for client in range(n)))
    trace = law("trace", path=path, period=100, shift=True)
    for time in (Fraction(0), Fraction(40), Fraction(399)):
        there = sum(present(trace, client, n, 1, [time])[0] for client in range(n))
        assert stats.binomtest(there, n, 0.25).pvalue > TINY


@pytest.mark.parametrize(
    ("text", "fields", "place"),
    [
        ("a,3,2", {}, "line 1"),
        ("a,0,9,8", {}, "line 1"),
        ("a,0,nan", {}, "line 1"),
        ("client,from,to\na,0,9", {"period": 8}, "line 2"),
        ("a,0,1,9\na,3,4,8", {}, "line 2"),
        ("a,1,5,0", {}, "line 1"),
        ("a,0,1", {"shift": True}, "shift"),
    ],
)
def test_rows_that_are_no_presence(tmp_path: Path, text: str, fields: dict[str, Any], place: str) -> None:
    (tmp_path / "seen.csv").write_text(text)
    with pytest.raises(ValidationError, match=place) as raised:
        law("trace", path=tmp_path / "seen.csv", **fields)
    assert raised.value.error_count() == 1


@pytest.mark.parametrize(
    "fields",
    [
        {"name": "diurnal", "share": 0.7},
        {"name": "dropouts", "share": 0.3, "at": 5, "back": 5},
        {"name": "dropouts", "share": 30, "at": 5},
        {"name": "dropouts", "share": 0.3},
        {"name": "bernoulli", "probability": 0.5, "up_to": 0.2},
        {"name": "spells", "mean_on": 0, "mean_off": 1},
        {"name": "dropout", "share": 0.3, "at": 5},
    ],
    ids=str,
)
def test_each_mistake_is_one_error(fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError) as found:
        Availability.model_validate(fields)
    assert found.value.error_count() == 1


def test_timing_survives_json() -> None:
    timing = Timing.model_validate(
        {
            "durations": {"name": "fx", "jobs": "exponential"},
            "availability": {"name": "dropouts", "share": 0.3, "at": 50},
        }
    )
    assert Timing.model_validate_json(timing.model_dump_json()) == timing
    assert timing.model_dump(mode="json")["durations"]["spread"] == "80"


def test_a_time_of_leaving_that_no_job_has_refines_the_clock() -> None:
    """Jobs of length 1 and a drop-out at 5/2: half a unit is the tick."""
    availability = law("dropouts", share=1, at=2.5)
    assert common_unit([Fraction(1), *availability.times()]) == Fraction(1, 2)
    clock = Lengths(Fixed(), 2, 0, availability.times()).clock
    assert (clock.unit, clock.round(Fraction(5, 2))) == (VirtualClock(Fraction(1, 2)).unit, 5)


def test_chances_in_a_range_of_no_width() -> None:
    """`up_to` may be the probability itself: then it changes nothing."""
    one, other = law("bernoulli", probability=0.4), law("bernoulli", probability=0.4, up_to=0.4)
    assert list(islice(one.absences(1, 3, 7), 20)) == list(islice(other.absences(1, 3, 7), 20))
