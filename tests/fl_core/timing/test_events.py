"""The queue: the order of ties, and saving it."""

from __future__ import annotations

from itertools import islice

from hypothesis import given
from hypothesis import strategies as st

from fl_core.loop.events import EventKind, EventQueue

entries = st.lists(st.tuples(st.integers(0, 4), st.sampled_from(EventKind), st.integers(-1, 3)), max_size=40)


def filled(pushed: list[tuple[int, EventKind, int]]) -> EventQueue:
    """A queue whose payloads number the pushes, and cannot be compared with each other."""
    queue = EventQueue()
    for number, entry in enumerate(pushed):
        queue.push(*entry, {"number": number})
    return queue


def expected(pushed: list[tuple[int, EventKind, int]]) -> list[tuple[int, EventKind, int, dict[str, int]]]:
    """By (time, kind, client), first pushed first: what a stable sort gives."""
    numbered = [(*entry, {"number": number}) for number, entry in enumerate(pushed)]
    return sorted(numbered, key=lambda entry: (entry[0], int(entry[1]), entry[2]))


@given(entries)
def test_ties_are_broken_by_kind_then_client_then_sequence(pushed: list[tuple[int, EventKind, int]]) -> None:
    queue = filled(pushed)
    popped = []
    while len(queue):
        first = queue.peek()
        popped.append(queue.pop())
        assert popped[-1] == first
    assert popped == expected(pushed)


@given(entries, entries)
def test_a_queue_filled_from_another_goes_on_alike(
    before: list[tuple[int, EventKind, int]], after: list[tuple[int, EventKind, int]]
) -> None:
    queue, again = filled(before), EventQueue()
    for time, kind, client, _, payload in queue.earliest():
        again.push(time, kind, client, payload)
    for entry in after:
        queue.push(*entry, None)
        again.push(*entry, None)
    assert [queue.pop() for _ in range(len(queue))] == [again.pop() for _ in range(len(again))]


def test_kinds_come_back_as_they_went_in() -> None:
    """The loop tells kinds apart by identity."""
    queue = filled([(1, EventKind.TICK, -1), (1, EventKind.PRESENCE, 0), (1, EventKind.ARRIVAL, 9)])
    assert [queue.pop()[1] for _ in range(3)] == [EventKind.ARRIVAL, EventKind.PRESENCE, EventKind.TICK]
    assert [int(kind) for kind in EventKind] == [0, 1, 2, 3, 4]


@given(entries, st.integers(0, 40))
def test_looking_ahead_gives_the_order_and_changes_nothing(
    pushed: list[tuple[int, EventKind, int]], many: int
) -> None:
    queue = filled(pushed)
    ahead = [(*entry[:3], entry[-1]) for entry in islice(queue.earliest(), many)]
    assert ahead == expected(pushed)[:many]
    assert [queue.pop() for _ in range(len(queue))] == expected(pushed)
