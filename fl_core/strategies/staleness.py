"""Staleness as counted by servers: from the dispatch of a job, or from the client's previous upload.

FedAsync and FedBuff count either way, to match other frameworks. A server that does not record dispatches
takes the version after a client's previous update for the one that the client works on. Both counts are equal
where clients are sent to as soon as their update has arrived.

Fixed: both counts. Entries of `benchmarks/peers.yaml` equal the servers of other frameworks by them.
"""

from collections.abc import Iterable
from typing import Literal

from fl_core.server.jobs import Update
from fl_core.server.server import Server

StalenessOrigin = Literal["dispatch", "upload"]


def begin(server: Server) -> None:
    """Allocate the versions after the clients' previous uploads; none yet: the first version."""
    server.memory.uploads = {}


def since_upload(server: Server, update: Update) -> int:
    """Return the server iterations since the client's previous upload; called before the step."""
    uploads: dict[int, int] = server.memory.uploads
    return server.version - uploads.get(update.client, 0)


def note_uploads(server: Server, updates: Iterable[Update]) -> None:
    """Note the version after the clients' uploads; called after any step."""
    server.memory.uploads.update((update.client, server.version) for update in updates)
