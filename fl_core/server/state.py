"""The server's mutable state during a run; strategies have access through `Server`.

The loop adds its own fields in the subclass `RunState` (`loop/state.py`); a checkpoint saves both.

Fixed: which clients count as idle, gone and silent, and when. Free: fields may be added or renamed.
Checkpoints without them are refused, and their runs begin again.
"""

from dataclasses import dataclass, field, fields, is_dataclass
from types import SimpleNamespace
from typing import Any

from torch import Tensor

from fl_core.server.jobs import Job
from fl_core.server.roster import Roster


def attributes(memory: Any) -> dict[str, Any]:
    """Return the attributes of a memory by name: a namespace, or a dataclass with or without slots."""
    named = fields(memory) if is_dataclass(memory) else ()
    return {field.name: getattr(memory, field.name) for field in named} | getattr(memory, "__dict__", {})


def tensor_bytes(value: Any) -> int:
    """Return the bytes of all tensors in nested dicts, lists and namespaces."""
    if isinstance(value, Tensor):
        return value.numel() * value.element_size()
    if isinstance(value, SimpleNamespace):
        value = vars(value)
    if isinstance(value, dict):
        return sum(map(tensor_bytes, value.values()))
    return sum(map(tensor_bytes, value)) if isinstance(value, list | tuple) else 0


@dataclass(slots=True, kw_only=True, eq=False)
class ServerState:
    """The model, the clients, the jobs in flight, and the memory of strategy and local work."""

    versions: dict[int, Tensor]  # the versions kept, newest last [d]
    broadcasts: dict[int, dict[str, Tensor]] = field(default_factory=dict)  # version → tensors sent with it
    version: int = 0
    now: int = 0  # ticks
    updates: int = 0  # received so far
    local_lr: float  # η_l
    memory: Any = field(default_factory=SimpleNamespace)  # the strategy's
    local: Any = field(default_factory=SimpleNamespace)  # the local work's
    moments: dict[str, Tensor] = field(default_factory=dict)  # the server optimiser's, each [d]
    # Client → moments of its optimiser, each of any shape; empty if every job begins with fresh moments
    client_moments: dict[int, dict[str, Tensor]] = field(default_factory=dict)
    uplink: dict[int, Tensor] = field(default_factory=dict)  # client → its memory for error feedback [d]
    downlink: dict[int, Tensor] = field(default_factory=dict)  # client → the server's memory for it [d]
    roster: Roster
    flight: dict[int, list[Job]] = field(default_factory=dict)  # client → its jobs, the first in service
    gone: dict[int, None] = field(default_factory=dict)  # clients that are away for good
    silent: dict[int, None] = field(default_factory=dict)  # of these, clients that send no more updates
    asked: int = -1  # version at the latest call of `Strategy.stalled_by`
    unasked: list[int] = field(default_factory=list)  # clients that fell silent since that call
    in_flight: int = 0  # how many jobs `flight` holds
    draws: int = 0  # made by `Server.draw`
    alarms: dict[int, int] = field(default_factory=dict)  # pending, ticks by number
    woken: dict[int, int] = field(default_factory=dict)  # of these, set in this event
    ringing: int | None = None  # the number of the alarm that rings in this event
    misread: int = 0  # messages that a coding decoded wrong
    stepped: bool = False  # in this event
    dismissed: list[Job] = field(default_factory=list)  # in this event; empty between events
    collected: list[Job] = field(default_factory=list)  # likewise

    @property
    def model(self) -> Tensor:
        """θ^n, the newest version [d]."""
        return self.versions[self.version]

    def land(self, job: Job, last_update_version: int) -> None:
        """Take a job out of flight, and release the client unless another job of the client is in flight.

        Args:
            job: A job in flight.
            last_update_version: The server version at the update; −1 if the job is dismissed or refused.
        """
        queue = self.flight[job.client]
        queue.remove(job)
        job.event = None
        self.in_flight -= 1
        if not queue:
            del self.flight[job.client]
            self.roster.release(job.client, last_update_version)
        if self.gone and job.client in self.gone:
            self.lose(job.client)

    def in_service(self, client: int) -> Job | None:
        """Return a client's first job whose update has not reached the server; None if there is none."""
        return next((job for job in self.flight.get(client, ()) if job.reached is None), None)

    def lose(self, client: int) -> None:
        """Record a client as gone for good, and silent unless a job is in service."""
        self.gone[client] = None
        queue = self.flight.get(client)
        if client not in self.silent and not (queue and queue[0].began is not None):
            self.silent[client] = None
            self.unasked.append(client)
