"""The work of a client, in three stages: the strategy's request (`Send`), the `Job`, and the `Update`.

`Dispatch` turns a send into a job, executions compute its result, and `Simulation` turns it into an update.

Fixed: the attributes of `Send` and `Update`, which users' strategies read. Free: fields of `Job`; checkpoints
without them are refused, and their runs begin again.
"""

import operator
from contextlib import suppress
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Self

from torch import Tensor


@dataclass(slots=True)
class Send:
    """A request for a client to work, returned by `Strategy.next` or `Arrangement.next`.

    Where a field is None, the newest version, the usual K and the law's length are taken. `start` is a model
    other than a version of the server's, such as a client's own; it is copied when sent. The broadcast and
    the staleness are still those of `version`.
    """

    client: int
    version: int | None = None  # a kept version (Arrangement.history)
    steps: int | None = None  # K
    length: int | None = None  # ticks
    start: Tensor | None = None  # θ_start [d] in the place of θ^version
    waits: bool = False  # after its K steps the client waits until the server collects the job

    def __post_init__(self) -> None:
        """Raise ValueError for less than a step, a negative length, or a fraction."""
        if self.steps is not None:
            self.steps = whole(self.steps, 1, "Send.steps")
        if self.length is not None:
            self.length = whole(self.length, 0, "Send.length")


def whole(value: Any, minimum: int, noun: str) -> int:
    """Return an int, which checkpoints can save, from any integer type; raise ValueError below `minimum`."""
    with suppress(TypeError):
        if (number := operator.index(value)) >= minimum:
            return int(number)
    raise ValueError(f"{noun} must be a whole number, {minimum} or more, not {value!r}")


@dataclass(slots=True, eq=False)
class Job:
    """A client's work. Every input is fixed when the job is sent, so it can be computed at any later time.

    The result (`delta`, `gradient`) has no effect before the job arrives. All fields but `event` are saved in
    checkpoints.
    """

    client: int
    index: int  # the client's index-th job; names its random streams
    version: int
    start: Tensor  # θ_start [d], θ^version unless the sender set another; never written to
    broadcast: dict[str, Tensor]  # what travels down with the version
    steps: int  # K; for a collected job, the steps finished by then
    lr: float  # η_l
    sent: int  # ticks
    length: int | None = None  # ticks of computation, once service began, or if the sender fixed them
    waits: bool = False  # whether the client, after its K steps, waits until the job is collected
    bytes: dict[str, int] = field(default_factory=dict)  # of the messages, "down" to the client and "up"
    began: int | None = None  # ticks, when its download begins; None while it waits in the client's queue
    computes: int | None = None  # ticks, when its first step begins
    ends: int | None = None  # ticks, when its steps are finished
    leaves: int | None = None  # ticks, when its update is sent
    # Ticks, at a server that takes time: when the update reaches the server, when its service there begins,
    # and when the client's next job begins, if that is before the service ends
    reached: int | None = None
    served: int | None = None
    followed: int | None = None
    # The queued event that ends the present phase; an entry of the queue that is not this one is void. None
    # if the end is not yet known, or the job is in no phase
    event: tuple[int, int, int, int, Any] | None = None
    client_state: dict[str, Tensor] = field(default_factory=dict)  # the client's memory when service began
    moments: dict[str, Tensor] = field(default_factory=dict)  # of the client's optimiser when service began
    dismissed: bool = False
    delta: Tensor | None = None  # θ_end − θ_start [d]
    gradient: Tensor | None = None  # mean corrected gradient over the steps [d]
    new_moments: dict[str, Tensor] = field(default_factory=dict)  # after the steps, where there are `moments`
    reports: bool = False  # whether the strategy reads training losses, see `Update.reported`
    reported: dict[str, float] = field(default_factory=dict)  # means over the steps, by name
    finite: bool = True

    def undo(self) -> None:
        """Delete a result that was computed before the job's steps or inputs changed."""
        self.delta = self.gradient = None
        self.new_moments, self.reported, self.finite = {}, {}, True

    def spent(self, time: int | Fraction) -> tuple[Any, Any, Any]:
        """Return the ticks of download, computation and upload until a tick, latencies included."""
        assert self.began is not None
        dates = (
            time if date is None else min(date, time) for date in (self.computes, self.ends, self.leaves)
        )
        computes, ends, leaves = dates
        reached = time if self.reached is None else min(self.reached, time)
        return computes - self.began, ends - computes, reached - leaves

    def spent_at_server(self, time: int) -> tuple[int, int]:
        """Return the ticks of waiting for the server and of service until a tick.

        Only as long as the client has no other job: each tick of a client is counted once.
        """
        end = time if self.followed is None else min(self.followed, time)
        if self.reached is None or end <= self.reached:
            return 0, 0
        served = end if self.served is None else min(self.served, end)
        return served - self.reached, end - served


@dataclass(slots=True, eq=False)
class Update:
    """The result of a job as it arrives at the server: the argument of `Strategy.receive`."""

    client: int
    version: int  # the version that was sent, or that went with another `start`
    staleness: int  # server iterations between that version and this arrival
    steps: int  # K; 0 if the job was collected before its first step was finished
    lr: float  # η_l
    delta: Tensor  # θ_end − θ_start [d]
    gradient: Tensor  # mean corrected gradient [d]
    start: Tensor  # θ_start [d]
    broadcast: dict[str, Tensor]
    sent: int  # ticks
    began: int  # ticks
    time: int  # ticks, its arrival
    # Means of "loss" and other reported numbers over the mini-batches of the steps, each at the model before
    # the step. Empty unless the strategy `reads_losses`, without steps, and where a world gives no losses.
    reported: dict[str, float] = field(default_factory=dict)

    @classmethod
    def from_job(cls, job: Job, staleness: int, time: int) -> Self:
        """Return the update of a computed job on arrival."""
        assert job.delta is not None and job.gradient is not None and job.began is not None
        result = (job.delta, job.gradient, job.start, job.broadcast)
        dates = (job.sent, job.began, time)
        return cls(job.client, job.version, staleness, job.steps, job.lr, *result, *dates, job.reported)

    @property
    def loss(self) -> float | None:
        """The client's own training loss, or None."""
        return self.reported.get("loss")

    @property
    def model(self) -> Tensor:
        """θ_end [d]."""
        return self.start + self.delta
