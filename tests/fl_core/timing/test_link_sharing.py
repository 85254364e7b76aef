"""A shared link against closed forms and a plain reference that touches every transfer at every event."""

from __future__ import annotations

from fractions import Fraction
from math import inf
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fl_core.timing.link_sharing import GRAIN, Link, Rate

Arrivals = list[tuple[int, int, Rate]]  # tick, bytes, own rate in bytes a tick, of clients 0, 1, …


def played(link: Link, arrivals: Arrivals, again: bool = False) -> dict[int, int]:
    """When each transfer ends; with `again` the link is saved and restored after every event."""
    waiting = sorted((at, client) for client, (at, _, _) in enumerate(arrivals))
    due: dict[int, int | None] = {}
    ends: dict[int, int] = {}
    while waiting or due:
        ending = min((tick, client) for client, tick in [*due.items(), (-1, inf)] if tick is not None)
        if waiting and waiting[0][0] < ending[0]:
            now, client = waiting.pop(0)
            _, size, rate = arrivals[client]
            link.start(client, rate if rate == inf else int(rate * GRAIN), size * GRAIN, now)
        else:
            now, client = int(ending[0]), ending[1]
            link.stop(client, now)
            ends[client] = now
            del due[client]
        due |= link.changed
        link.changed.clear()
        if again:
            link = Link.restored(link.capacity, link.state())
    return ends


def plainly(capacity: int, arrivals: Arrivals) -> dict[int, Fraction]:
    """When each ends: max-min rates by filling up, exact fractions, every transfer at every event."""
    waiting = sorted((Fraction(at), client) for client, (at, _, _) in enumerate(arrivals))
    left: dict[int, Fraction] = {}
    ends: dict[int, Fraction] = {}
    now = Fraction(0)
    while waiting or left:
        rates: dict[int, Fraction] = {}
        free, slowest_first = Fraction(capacity), sorted(left, key=lambda i: arrivals[i][2])
        for place, i in enumerate(slowest_first):
            rates[i] = min(free / (len(left) - place), Fraction(min(arrivals[i][2], capacity)))
            free -= rates[i]
        end, client = min(((now + left[i] / rates[i], i) for i in left), default=(Fraction(10**9), -1))
        at = min(end, waiting[0][0]) if waiting else end
        left = {i: left[i] - rates[i] * (at - now) for i in left}
        now = at
        if waiting and at == waiting[0][0]:
            _, i = waiting.pop(0)
            left[i] = Fraction(arrivals[i][1])
        else:
            ends[client] = at
            del left[client]
    return ends


@pytest.mark.parametrize("k", [1, 2, 3, 7, 100])
def test_k_equal_transfers_take_k_times_as_long(k: int) -> None:
    """Exactly, whatever k is."""
    assert played(Link(5 * GRAIN), [(3, 10, inf)] * k) == dict.fromkeys(range(k), 3 + 2 * k)


def test_what_one_does_not_take_is_the_others() -> None:
    """Rates 1 and 9 on a link of 10, not 5 and 5; then the fast one has all."""
    assert played(Link(10 * GRAIN), [(0, 40, 1), (0, 360, inf)]) == {0: 40, 1: 40}
    assert played(Link(10 * GRAIN), [(0, 10, 1), (0, 100, inf)]) == {0: 10, 1: 11}


def test_a_transfer_that_is_taken_off_leaves_its_part_to_the_others() -> None:
    """Of 100 bytes at half of 10 a tick, 60 are left after 8 ticks; the other goes on with all of it."""
    link = Link(10 * GRAIN)
    link.start(0, inf, 100 * GRAIN, 0)
    link.start(1, inf, 100 * GRAIN, 0)
    assert link.stop(0, 8) == 60 * GRAIN
    assert link.changed == {1: 14}


arrivals = st.lists(
    st.tuples(
        st.integers(0, 20_000),
        st.integers(1000, 100_000),
        st.one_of(st.just(inf), st.integers(1, 40)),
    ),
    min_size=1,
    max_size=12,
)


@given(arrivals, st.integers(1, 60))
def test_any_arrivals_end_as_in_the_plain_reference(arrivals: Any, capacity: int) -> None:
    """Each end is rounded to a tick, which moves those after it by less than one; saved or not, alike."""
    ends = played(Link(capacity * GRAIN), arrivals)
    for client, end in plainly(capacity, arrivals).items():
        assert abs(ends[client] - end) <= len(arrivals)
    assert played(Link(capacity * GRAIN), arrivals, again=True) == ends


@given(arrivals, st.integers(1, 60))
def test_bytes_are_rate_times_busy_time(arrivals: Any, capacity: int) -> None:
    """A link that all could fill alone is never idle nor below its capacity while there is a transfer."""
    full = [(at, size, inf) for at, size, _ in arrivals]
    ends = played(Link(capacity * GRAIN), full)
    busy = until = 0
    for at, end in sorted((at, ends[client]) for client, (at, _, _) in enumerate(full)):
        busy += max(0, end - max(at, until))
        until = max(until, end)
    assert abs(capacity * busy - sum(size for _, size, _ in full)) <= capacity * len(full)


@pytest.mark.parametrize(("size", "rate", "end"), [(4, 3, 1), (5, 3, 2), (3, 2, 2), (6, 3, 2)])
def test_a_transfer_ends_at_the_nearest_tick(size: int, rate: int, end: int) -> None:
    """A half is rounded up: on the client's own link, on a shared one, and where the own one is slower."""
    assert played(Link(), [(0, size, rate)]) == {0: end}
    assert played(Link(rate * GRAIN), [(0, size, inf)]) == {0: end}
    assert played(Link(10 * GRAIN), [(0, size, rate)]) == {0: end}


def test_a_transfer_with_a_rate_of_its_own_ends_on_time() -> None:
    """Of 5 bytes a tick one takes 2 and ends at 3; the other gets 3, then 5, and ends at 3 + 21 / 5."""
    assert played(Link(5 * GRAIN), [(0, 6, 2), (0, 30, 10)]) == {0: 3, 1: 7}
