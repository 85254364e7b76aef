"""What waits on disk is sent to MLflow, without computing anything."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.errors import warn
from benchmarks.runs.session import only_one
from benchmarks.tracking import database
from benchmarks.tracking.delivery import Delivery
from benchmarks.tracking.outbox import Outbox
from benchmarks.tracking.store import Store


@dataclass(frozen=True, slots=True)
class Synced:
    """What came of it."""

    sent: int  # records
    waiting: int
    why: str  # they still wait


def sync(store: Store) -> Synced:
    """Send all records, oldest first, and tell MLflow which runs belong to their suites.

    UserError if another process works on the store, or its MLflow store cannot be used.
    """
    database.check(store.tracking_uri)
    with only_one(store):
        outbox = Outbox(store.outbox)
        for aside in outbox.sweep():
            warn(f"{aside.with_suffix('')} is damaged: set aside as {aside.name}; asyncfl run makes it again")
        before = len(list(outbox.waiting()))
        suites = list(outbox.announced())
        if not before and not suites:
            return Synced(0, 0, "")
        delivery = Delivery(store, outbox)
        try:
            for suite, description, places in suites:
                delivery.announce(suite, description, places)
                delivery.flush()
        finally:
            delivery.close()
        waiting = len(list(outbox.waiting()))
        if not (waiting or delivery.away or delivery.unread):
            outbox.heard()
        return Synced(before - waiting, waiting, delivery.why_waiting)
