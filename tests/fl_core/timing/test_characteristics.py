"""Characteristics of populations: closed forms."""

from math import log
from pathlib import Path

import pytest

from fl_core.timing.availability import Always, Availability, Dropouts
from fl_core.timing.characteristics import Characteristics, Links, characteristics
from fl_core.timing.durations import Durations, DurationTrace, Exponential, Fixed, TwoSpeed
from fl_core.timing.network import MBIT, Network, Shared


def of(durations: Durations, availability: Availability | None = None, n: int = 20) -> Characteristics:
    return characteristics(durations, availability or Always(), n, range(4), 100)


def test_clients_that_are_all_alike_have_none() -> None:
    assert of(Fixed()) == Characteristics(0, 0, 0, 0)


def test_a_fifth_ten_times_slower() -> None:
    """The standard deviation of log 10 times a coin of probability 0.2 is log 10 · √(0.2 · 0.8)."""
    found = of(TwoSpeed())
    assert found.spread == pytest.approx(0.4 * log(10))
    assert found.slowest == pytest.approx(log(10))
    assert (found.tail, found.absence) == (0, 0)


def test_exponential_jobs_have_the_quantile_of_their_law() -> None:
    """99 % of them are shorter than log 100 means."""
    found = of(Exponential(), n=60)
    assert (found.spread, found.slowest) == (0, 0)
    assert found.tail == pytest.approx(log(log(100)), abs=0.05)


def test_half_of_the_clients_leaving_half_way() -> None:
    assert of(Fixed(), Dropouts(share=0.5, at=50)).absence == pytest.approx(-log(0.75))
    assert of(Fixed(), Dropouts(share=0.5, at=20, back=30)).absence == pytest.approx(-log(0.95))


def test_clients_that_never_come_are_refused() -> None:
    with pytest.raises(ValueError, match="no client is present before time 100"):
        of(Fixed(), Dropouts(share=1, at=0))


def test_a_recorded_log(tmp_path: Path) -> None:
    """Means 1, 1 and 4."""
    (tmp_path / "log.csv").write_text("client,length\na,1\nb,1\nc,3,5\n")
    found = of(DurationTrace(path=tmp_path / "log.csv"), n=3)
    assert found.slowest == pytest.approx(log(4))
    assert found.spread == pytest.approx(log(4) * (2 / 9) ** 0.5)


def test_transfers_of_a_message_over_links_with_latency() -> None:
    """10 Mbit down in 1 s, up in 4 s, twice half a second: 6 s beside a job of 3 units of 2 s."""
    network = Network(downlink=10, uplink="5/2", latency="1/2")
    found = characteristics(
        Fixed(times=(3,)), Always(), 5, [0], 100, links=Links(network, message=10 * MBIT, unit=2)
    )
    assert found.transfers == pytest.approx(log(2))
    assert characteristics(Fixed(), Always(), 5, [0], 100, links=Links(Network(), 1e9, 1)).transfers == 0


@pytest.mark.parametrize(("at_work", "cells", "cycle"), [(None, 1, 20), (5, 1, 10), (None, 4, 6), (2, 1, 6)])
def test_a_shared_link_carries_no_more_than_its_capacity(
    at_work: int | None, cells: int, cycle: float
) -> None:
    """10 clients, 6.1 s a job with transfers; the link takes a message of 10 Mbit in 2 s: 20 s for all."""
    shared = Shared(uplink=5, cells=cells)
    network = Network(downlink=10, uplink="5/2", latency="1/2", shared=shared)
    links = Links(network, message=10 * MBIT, unit=1)
    durations = Fixed(times=("1/10",))
    found = characteristics(durations, Always(), 10, [0], 100, links=links, at_work=at_work)
    assert found.transfers == pytest.approx(log(max(cycle, 6.1) / 0.1))


def test_clients_at_work_among_those_that_are_present() -> None:
    """Of 20 half are away on average, and 5 of the other 10 are at work; 15 at work leaves nobody idle."""
    law = Dropouts(share=1, at=50)
    found = [characteristics(Fixed(), law, 20, [0], 100, at_work=n).idleness for n in (5, 15)]
    assert found == [pytest.approx(log(2)), 0]


def test_the_distance_of_factors_two_and_three() -> None:
    one, other = Characteristics(0, log(2), 0, 0), Characteristics(0, 0, log(3), 0)
    assert one.distance(other) == pytest.approx((log(2) ** 2 + log(3) ** 2) ** 0.5)
