"""Who is present, idle and due, against the definitions (docs/rules.md, rules 4 and 9)."""

from __future__ import annotations

from sys import getsizeof

from hypothesis import given
from hypothesis import strategies as st
from worlds import Scripted, play, scenario

from fl_core.server.roster import Roster
from fl_core.server.server import Server

N = 3
CHANGES = ("job", "update", "dismissal", "step", "leave", "return")
histories = st.lists(st.tuples(st.sampled_from(CHANGES), st.integers(0, N - 1)), min_size=40, max_size=80)


class Defined:
    """The same as defined: a history is noted, and everything is looked up in it."""

    def __init__(self) -> None:
        self.time = 0  # changes so far
        self.steps = [0]  # when each version was made
        self.present, self.busy = [True] * N, [False] * N
        self.last_update_version: list[int | None] = [None] * N  # None: no update yet, or dismissed
        self.idle_since = [0] * N

    def possible(self, what: str, client: int) -> bool:
        """Only who is free gets a job here, only a busy client's job ends, only who is there can leave."""
        return {
            "job": not self.busy[client],
            "update": self.busy[client],
            "dismissal": self.busy[client],
            "step": True,
            "leave": self.present[client],
            "return": not self.present[client],
        }[what]

    def change(self, what: str, client: int) -> None:
        """Note it."""
        self.time += 1
        was_idle = self.idle(client)
        if what == "step":
            self.steps.append(self.time)
        elif what in ("leave", "return"):
            self.present[client] = what == "return"
        else:
            self.busy[client] = what == "job"
        if what in ("update", "dismissal"):
            self.last_update_version[client] = len(self.steps) - 1 if what == "update" else None
        if self.idle(client) and not was_idle:
            self.idle_since[client] = self.time

    def idle(self, client: int) -> bool:
        return self.present[client] and not self.busy[client]

    def due_since(self, client: int) -> int | None:
        """Since when it is idle and a step came after its last update; None: it is not due."""
        version = self.last_update_version[client]
        if not self.idle(client) or (version is not None and version == len(self.steps) - 1):
            return None
        return max(self.idle_since[client], 0 if version is None else self.steps[version + 1])

    @property
    def due(self) -> list[int]:
        """In the order in which they became due; those of one step in the order in which they became idle."""
        since = {client: self.due_since(client) for client in range(N)}
        found = [
            (when, self.idle_since[client], client) for client, when in since.items() if when is not None
        ]
        return [client for _, _, client in sorted(found)]


def change(what: str, client: int, defined: Defined, *rosters: Roster) -> None:
    """One change to all of them, if it is possible now."""
    if defined.possible(what, client):
        for roster in rosters:
            tell(roster, what, client, defined)
        defined.change(what, client)


def tell(roster: Roster, what: str, client: int, defined: Defined) -> None:
    """The change as the server and the loop tell it."""
    version = len(defined.steps) - 1
    if what == "job":
        roster.engage(client)
    elif what == "step":
        roster.step()
    elif what == "leave":
        roster.leave(client)
    elif what == "return":
        roster.come_back(client, not defined.busy[client], version)
    else:
        roster.release(client, version if what == "update" else -1)


@given(histories)
def test_everyone_is_where_the_definitions_say(history: list[tuple[str, int]]) -> None:
    """After every change; due in the order of becoming due, and everyone counted once."""
    roster, defined = Roster(N), Defined()
    for what, client in history:
        change(what, client, defined, roster)
        assert list(roster.present) == defined.present
        assert roster.absent == defined.present.count(False)
        assert list(roster.everyone()) == [one for one in range(N) if defined.present[one]]
        assert sorted(roster.idle) == [one for one in range(N) if defined.idle(one)]
        assert list(roster.due) == defined.due
        assert set(roster.waiting) == set(roster.idle) - set(roster.due)
        busy = sum(here and at_work for here, at_work in zip(defined.present, defined.busy, strict=True))
        assert len(roster.idle) + busy + roster.absent == N


def test_clients_that_are_no_longer_due_leave_no_places_behind() -> None:
    """A dict keeps the places of removed keys, through which every `list` of it goes."""
    roster = Roster(1000)
    for client in range(1000):
        roster.engage(client)
    assert getsizeof(roster.due) == getsizeof({})


@given(histories, histories)
def test_a_saved_roster_goes_on_alike(before: list[tuple[str, int]], after: list[tuple[str, int]]) -> None:
    """Also the order of `idle`, from which clients are drawn by place."""
    roster, defined = Roster(N), Defined()
    for one in before:
        change(*one, defined, roster)
    again = Roster.restored(roster.state())
    assert again.state() == roster.state()
    for one in after:
        change(*one, defined, roster, again)
        assert again.state() == roster.state()
        assert again.absent == roster.absent


def test_who_returns_before_a_step_is_not_due() -> None:
    """A client is due once the server stepped since its update, wherever the client was meanwhile."""
    roster = Roster(2)
    for client in (0, 1):
        roster.engage(client)
        roster.release(client, last_update_version=3)
        roster.leave(client)
    roster.come_back(0, free=True, version=3)
    roster.come_back(1, free=True, version=4)
    assert list(roster.due) == [1]
    assert list(roster.waiting) == [0]


def test_who_returns_amid_a_job_is_not_idle() -> None:
    """Client 0 is away from 1 to 2 of a job that lasts until 4: only client 1 is idle then."""
    idle: list[tuple[float, list[int]]] = []

    def asked(server: Server) -> list[int]:
        idle.append((server.time, sorted(server.idle)))
        return [0] if server.now == 0 else []

    away = {"name": "dropouts", "share": 1, "at": 1, "back": 2}
    play(Scripted(on_next=asked), scenario([4, 4], availability=away, time=9))
    assert idle == [(0.0, [0, 1]), (2.0, []), (2.0, [1]), (4.0, [0, 1])]
