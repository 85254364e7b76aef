"""The server: the global model, its version, the jobs in flight, and the verbs a strategy may use."""

from __future__ import annotations

from collections.abc import Callable, Iterator, MutableSequence, Sequence
from fractions import Fraction
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
from torch import Tensor

from fl_core.server.jobs import Job
from fl_core.server.roster import Roster
from fl_core.streams import Streams, stream

if TYPE_CHECKING:
    from fl_core.timing.clock import Clock


class Server:
    """All mutable state that strategies and local work share.

    To read: `model`, `version`, `now` (ticks), `updates` (received so far), `n`, `p` [n], `mean_time` [n]
    (exact), `in_flight`, `jobs`, `due`, `idle`, `present`. To write: `memory` (the strategy's), `local`
    (the local work's), both of tensors and Python's own numbers, strings, lists, tuples and dicts only, and
    `local_lr`.
    """

    def __init__(
        self,
        model: Tensor,
        *,
        p: np.ndarray,
        sizes: np.ndarray,
        mean_time: tuple[Fraction, ...],
        clock: Clock,
        seed: int,
        local_lr: float,
        history: int = 1,
        losses: Callable[[Tensor], np.ndarray] | None = None,
    ) -> None:
        self.n = len(p)
        self.p = p
        self.sizes = sizes
        self.mean_time = mean_time
        self.local_lr = local_lr
        self.memory: Any = SimpleNamespace()
        self.local: Any = SimpleNamespace()
        self.version = 0
        self.now = 0
        self.updates = 0
        self.in_flight = 0
        self.roster = Roster(self.n)
        self.flight: dict[int, MutableSequence[Job]] = {}  # client → its jobs, the head in service
        self.versions: dict[int, Tensor] = {0: model}  # the last `history` versions, newest last
        self.briefs: dict[int, dict[str, Tensor]] = {}  # what travels with each of them
        self.history = history
        self.alarm: int | None = None
        self.stepped = False  # in this event
        self.dismissed: list[Job] = []  # in this event
        self.collected: list[Job] = []  # in this event
        self.draws = 0
        self._clock = clock
        self._seed = seed
        self._losses = losses
        self._selections = Streams(seed, "select")

    @property
    def model(self) -> Tensor:
        """θ^n, the newest version [d]; never written to."""
        return self.versions[self.version]

    @property
    def time(self) -> float:
        """Virtual time now."""
        return self._clock.time(self.now)

    @property
    def jobs(self) -> Iterator[Job]:
        """All jobs in flight, those that wait in a client's queue included."""
        return (job for queue in self.flight.values() for job in queue)

    @property
    def due(self) -> list[int]:
        """Present, without a job, and the last update came before the latest step (or was dismissed)."""
        return list(self.roster.due)

    @property
    def idle(self) -> Sequence[int]:
        """Present clients without a job."""
        return self.roster.idle

    @property
    def present(self) -> Sequence[bool]:
        """Whether each client is there [n]."""
        return self.roster.present

    def losses(self) -> np.ndarray:
        """L_i(θ^n) [n]: what every client would report, present or not; takes no virtual time."""
        assert self._losses is not None
        return self._losses(self.model)

    def ticks(self, time: Fraction) -> int:
        """A length of virtual time in ticks; exact, ValueError if it is no whole number of them."""
        return self._clock.ticks(time)

    def zeros(self, *shape: int) -> Tensor:
        """Zeros like a model [*shape, d]."""
        return self.model.new_zeros((*shape, self.model.shape[-1]))

    def step(self, delta: Tensor | None = None, *, model: Tensor | None = None) -> None:
        """Make a new version: the newest plus `delta`, or `model`, or the same again (an empty tick)."""
        if self.stepped:
            raise RuntimeError("at most one server step an event")
        if model is None:
            model = self.model if delta is None else self.model + delta
        else:
            model = model.clone()  # a strategy may go on writing into its own tensor
        self.stepped = True
        self.version += 1
        self.versions[self.version] = model
        self.versions.pop(self.version - self.history, None)
        self.briefs.pop(self.version - self.history, None)
        self.roster.step()

    def dismiss(self, job: Job) -> None:
        """Abandon a job in flight: no update, no state written; its index is spent (rule 8)."""
        queue = self.flight.get(job.client, ())
        if job.dismissed or job not in queue:
            raise RuntimeError("only a job in flight can be dismissed")
        job.dismissed = True
        self.land(job, heard=-1)
        self.dismissed.append(job)

    def collect(self, job: Job) -> None:
        """Ask for what a job has done by now: its update, cut to the steps finished, arrives next (rule 19).

        RuntimeError unless the job is in service, or if it is collected already.
        """
        queue = self.flight.get(job.client, ())
        if job.began is None or job not in queue or job in self.collected:
            raise RuntimeError("only a job in service can be collected, and only once")
        self.collected.append(job)

    def land(self, job: Job, heard: int) -> None:
        """A job leaves flight; its client is released if no other job of its waits."""
        queue = self.flight[job.client]
        queue.remove(job)
        self.in_flight -= 1
        if not queue:
            del self.flight[job.client]
            self.roster.release(job.client, heard)

    def wake(self, at: int) -> None:
        """Set the alarm for the tick `at`, later than now; one alarm can be pending."""
        if self.alarm is not None:
            raise RuntimeError("an alarm is pending already")
        if at <= self.now:
            raise ValueError(f"an alarm must lie ahead: {at} ≤ {self.now}")
        self.alarm = at

    def draw(
        self, k: int, p: np.ndarray | None = None, *, busy: bool = False, replace: bool = False
    ) -> list[int]:
        """k random distinct idle clients (all, if fewer are idle), uniform or ∝ p [n].

        `busy` admits every present client, `replace` repetitions. The stream counts draws, not versions.
        """
        if k <= 0:
            return []
        pool = self.roster.everyone() if busy else self.roster.idle
        if not pool:
            return []
        draw = self.draws
        self.draws += 1
        if k == 1 and p is None:
            # The number that `choice` would give, eight times as fast.
            return [pool[self._selections.below(len(pool), draw)]]
        rng = self._selections.at(draw)
        weights = None
        if p is not None:
            weights = np.asarray(p, float)[pool]
            if not replace:
                k = min(k, int(np.count_nonzero(weights)))
            weights = weights / weights.sum()
        elif not replace:
            k = min(k, len(pool))
        return [pool[i] for i in rng.choice(len(pool), k, replace=replace, p=weights)]

    def stream(self, purpose: str, *ids: int) -> np.random.Generator:
        """The random stream of this seed for one purpose of the strategy."""
        return stream(self._seed, purpose, *ids)
