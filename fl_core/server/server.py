"""The interface `Server` between the loop and strategies: model, clients, jobs in flight, and actions.

`Simulation` makes one for each run and passes it to every method of the strategy, the local work and the
arrangement. Actions take effect after the event, in `Dispatch.settle`.

Fixed: names without an underscore, which users' strategies read, and the clients that `draw` returns.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import is_dataclass
from fractions import Fraction
from numbers import Integral
from types import SimpleNamespace
from typing import Any, Generic, NoReturn

import numpy as np
from torch import Tensor
from typing_extensions import TypeVar

from fl_core.server.block_sums import probabilities
from fl_core.server.jobs import Job
from fl_core.server.optimizers import ServerOptimizer, ServerSGD
from fl_core.server.state import ServerState
from fl_core.streams import Streams, stream
from fl_core.timing.clock import VirtualClock

M = TypeVar("M", default=Any)
EPSILON = float(np.finfo(float).eps)  # of a sum of two floats, relative


class Server(Generic[M]):
    """The view of a run for strategies, local work and arrangements; `Server[M]` where `memory` is an M.

    To read: `model`, `version`, `now` (ticks), `time`, `updates` (received so far), `n`, `p` [n],
    `sizes` [n], `mean_time` [n] and `service_time` (exact), `lr` (η_g), `blocks` (lengths of a model's
    tensors), `in_flight`, `jobs`, `due`, `idle`, `present`, `newly_gone`, `ringing`. To write: `memory` (the
    strategy's), `local` (the local work's), both of tensors and Python's own numbers, strings, lists, tuples
    and dicts only, `local_lr` and `misread`. Actions: `step`, `dismiss`, `collect`, `wake`, `draw`. Queries:
    `stream`, `zeros`, `ticks`, `losses`, `jobs_of`.
    """

    def __init__(
        self,
        state: ServerState,
        *,
        p: np.ndarray,
        sizes: np.ndarray,
        mean_time: tuple[Fraction, ...],
        service_time: Fraction = Fraction(0),
        blocks: list[int],
        clock: VirtualClock,
        seed: int,
        history: int = 1,
        losses: Callable[[Tensor], np.ndarray] | None = None,
        optimizer: ServerOptimizer,
        lr: float,
    ) -> None:
        self.n = len(p)
        self.p = p
        self.sizes = sizes
        self.mean_time = mean_time
        self.service_time = service_time  # mean time of the server for an update, 0 for none
        self.blocks = blocks
        self._state = state
        self._clock = clock
        self._seed = seed
        self._history = history  # versions kept
        self._losses = losses
        self._optimizer = optimizer
        self._lr = lr  # η_g
        self._selections = Streams(seed, "select")
        self._weighed: tuple[float, ...] | None = None  # the latest probabilities of `_of_all`
        self._cumulated = np.empty(0)  # and their cumulated sums

    @property
    def model(self) -> Tensor:
        """θ^n, the newest version [d]; never written to."""
        state = self._state
        return state.versions[state.version]

    @model.setter
    def model(self, _: Tensor) -> NoReturn:
        """Refuse `server.model = …` and `server.model += …`."""
        raise AttributeError("server.model has no setter: make a new version with server.step(...)")

    @property
    def version(self) -> int:
        """n, the number of server iterations."""
        return self._state.version

    @property
    def now(self) -> int:
        """The clock, in ticks."""
        return self._state.now

    @property
    def time(self) -> float:
        """Virtual time now."""
        return self._clock.time(self._state.now)

    @property
    def updates(self) -> int:
        """Number of client updates received."""
        return self._state.updates

    @property
    def lr(self) -> float:
        """η_g, the server's learning rate."""
        return self._lr

    @property
    def local_lr(self) -> float:
        """η_l of future jobs."""
        return self._state.local_lr

    @local_lr.setter
    def local_lr(self, lr: float) -> None:
        """Set η_l of future jobs."""
        self._state.local_lr = lr

    @property
    def misread(self) -> int:
        """Number of misdecoded messages, for strategies with a coding of both sides."""
        return self._state.misread

    @misread.setter
    def misread(self, count: int) -> None:
        """Set how many messages were decoded as others."""
        self._state.misread = count

    @property
    def memory(self) -> M:
        """The strategy's state: a namespace, unless `begin` sets a dataclass of the strategy's own."""
        memory: M = self._state.memory
        return memory

    @memory.setter
    def memory(self, memory: M) -> None:
        """Replace the strategy's state by another namespace, or a dataclass."""
        if isinstance(memory, type) or not (is_dataclass(memory) or isinstance(memory, SimpleNamespace)):
            kind = type(memory).__name__
            raise TypeError(f"server.memory must be a dataclass or a SimpleNamespace, not a {kind}")
        self._state.memory = memory

    @property
    def local(self) -> Any:
        """The local work's state."""
        return self._state.local

    @property
    def in_flight(self) -> int:
        """The number of jobs in flight."""
        return self._state.in_flight

    @property
    def jobs(self) -> Iterator[Job]:
        """All jobs in flight, also jobs waiting in a client's queue."""
        return (job for queue in self._state.flight.values() for job in queue)

    def jobs_of(self, client: int) -> Sequence[Job]:
        """Return a client's jobs in flight, the job in service first."""
        return tuple(self._state.flight.get(client, ()))

    @property
    def due(self) -> list[int]:
        """Idle clients whose last update came before the latest step, or whose last job was dismissed."""
        return list(self._state.roster.due)

    @property
    def idle(self) -> Sequence[int]:
        """Present clients without a job."""
        return self._state.roster.idle

    @property
    def present(self) -> Sequence[bool]:
        """Presence of each client [n]: the loop's own list, not a copy; strategies only read it."""
        return self._state.roster.present

    @property
    def newly_gone(self) -> Collection[int]:
        """Lost clients not yet passed to `Strategy.stalled_by` at the present version."""
        state = self._state
        return state.unasked if state.asked == state.version else state.silent

    def losses(self) -> np.ndarray:
        """Return L_i(θ^n) [n] of every client, present or not.

        This is an oracle: a server would have to send the model to all clients and wait for them, and here no
        virtual time passes. What a client reports of its own work is `Update.loss`.
        """
        assert self._losses is not None
        return self._losses(self.model)

    def ticks(self, time: Fraction) -> int:
        """Return a length of virtual time in ticks, exactly.

        Raises:
            ValueError: `time` is not a whole number of ticks.
        """
        return self._clock.ticks(time)

    def zeros(self, *shape: int) -> Tensor:
        """Return zeros of the model's dtype and device, of a shape followed by the model's length d."""
        return self.model.new_zeros((*shape, self.model.shape[-1]))

    def step(self, delta: Tensor | None = None, *, model: Tensor | None = None) -> None:
        """Make a new version: the newest plus `delta`, or `model`, or an unchanged copy (an empty tick).

        Args:
            delta: η_g Δ [d], added to the newest version, or handed to the server optimiser.
            model: The new version [d], copied; takes the place of `delta`.

        Raises:
            RuntimeError: A second step in one event, or a `model` where there is a server optimiser.
            TypeError: Neither is a tensor with one number for each of the model's, or it is of another dtype.
        """
        state = self._state
        if state.stepped:
            raise RuntimeError("server.step: called twice in one event. Add both deltas, and call it once")
        argument = delta if model is None else model
        if argument is not None and not (
            isinstance(argument, Tensor) and argument.shape == state.model.shape
        ):
            description = (
                f"of shape {list(argument.shape)}" if isinstance(argument, Tensor) else repr(argument)
            )
            raise TypeError(
                f"server.step: the argument must be a tensor of shape {list(state.model.shape)}, "
                f"not {description}"
            )
        if delta is not None and model is None:
            model = state.model + self._optimizer.step(delta, self._lr, state.moments)
        elif model is None:
            model = state.model
        elif self._optimizer != ServerSGD():
            name = self._optimizer.reference()
            raise RuntimeError(
                f"server.step(model=…) gives the server optimizer {name} no direction: call "
                "server.step(delta), or state the reason in refuses_optimizer"
            )
        else:
            model = model.clone()  # a strategy may go on writing into its own tensor
        if model.requires_grad:
            raise TypeError("server.step: the tensor requires a gradient: use tensor.detach()")
        if model.dtype is not state.model.dtype:
            raise TypeError(
                f"server.step: the tensor must be of {state.model.dtype}, as the model is, not {model.dtype}"
            )
        state.stepped = True
        state.version += 1
        state.versions[state.version] = model
        state.versions.pop(state.version - self._history, None)
        state.broadcasts.pop(state.version - self._history, None)
        state.roster.step()

    def dismiss(self, job: Job) -> None:
        """Abandon a job in flight: no update, no state written; the job's index is spent (rule 8).

        Raises:
            RuntimeError: The job is not in flight.
        """
        if job.dismissed or job not in self._state.flight.get(job.client, ()):
            raise RuntimeError("server.dismiss: the job is not in flight; take jobs from server.jobs")
        job.dismissed = True
        self._state.land(job, last_update_version=-1)
        self._state.dismissed.append(job)

    def collect(self, job: Job) -> None:
        """Collect a job early: the update, cut to the finished steps, arrives next (rule 19).

        Raises:
            RuntimeError: The job is not in service, or collected already.
        """
        state = self._state
        if job.began is None or job not in state.flight.get(job.client, ()) or job in state.collected:
            raise RuntimeError("server.collect: the job is not in service, or is collected already")
        state.collected.append(job)

    @property
    def ringing(self) -> int | None:
        """The number of the alarm that rings, during `Strategy.tick`; None at other events."""
        return self._state.ringing

    def wake(self, at: int | None, alarm: int = -1) -> None:
        """Set an alarm, in place of a pending alarm of equal number; at the time `tick` is called.

        Args:
            at: Ticks, later than now; None cancels the alarm.
            alarm: The alarm's number, such as that of a client.

        Raises:
            ValueError: `at` is not later than now.
            TypeError: `at` is no whole number.
        """
        state = self._state
        if at is not None and not isinstance(at, Integral):
            raise TypeError(f"server.wake: a tick must be a whole number, not {at!r}")
        if at is not None and at <= state.now:
            raise ValueError(f"server.wake: tick {at} is not later than now, {state.now}")
        if at is None:
            state.alarms.pop(alarm, None)
        elif state.alarms.get(alarm) != at:
            state.alarms[alarm] = state.woken[alarm] = at

    def draw(
        self,
        k: int,
        p: np.ndarray | tuple[float, ...] | None = None,
        *,
        busy: bool = False,
        replace: bool = False,
    ) -> list[int]:
        """Return k random distinct idle clients; all, if fewer are idle.

        Args:
            k: How many.
            p: Relative probability of each client [n], 0: never drawn; uniform if left out. With `replace`
                the sums of a tuple are cached as long as the same object is passed: draws cost O(√n).
            busy: Admit all present clients.
            replace: Admit repetitions.

        Raises:
            ValueError: A probability is negative or not finite.
        """
        if k <= 0:
            return []
        state, roster = self._state, self._state.roster
        size = self.n - roster.absent if busy else len(roster.idle)
        if not size:
            return []
        draw = state.draws
        state.draws += 1
        if k == 1 and p is None:
            # The same number as from `choice`, eight times as fast.
            place = self._selections.below(size, draw)
            return [roster.present_at(place) if busy else roster.idle[place]]
        rng = self._selections.at(draw)
        if replace and isinstance(p, tuple):
            return self._drawn(rng.random(k), p, busy=busy)
        weights = None
        if p is not None:
            weights = relative(p, roster.everyone() if busy else roster.idle)
            if weights is None:
                return []
        if not replace:
            k = min(k, size if weights is None else int(np.count_nonzero(weights)))
        client = roster.present_at if busy else roster.idle.__getitem__  # by place
        return [client(i) for i in rng.choice(size, k, replace=replace, p=weights)]

    def _drawn(self, shares: np.ndarray, p: tuple[float, ...], *, busy: bool) -> list[int]:
        """Return the client at each share of the cumulated probabilities, as `Generator.choice` does.

        The block sums differ from NumPy's by rounding. A share within the rounding error of a sum is looked
        up in NumPy's own sums, so that the client is the same.
        """
        roster = self._state.roster
        if busy and not roster.absent:
            upto = self._of_all(p)
            return upto.searchsorted(shares, side="right").tolist() if len(upto) else []
        sums = roster.present_weights(p) if busy else roster.idle_weights(p)
        total = float(sums.upto()[-1])
        if not total:
            return []
        error = 2 * (self.n + 8) * EPSILON * total
        drawn: list[int] = []
        for share in shares:
            interval = sums.find(share * total)
            if interval and interval.lower + error < share * total < interval.upper - error:
                drawn.append(interval.place if busy else roster.idle[interval.place])
            else:
                pool = roster.everyone() if busy else roster.idle
                drawn.append(pool[int(cumulated(p, pool).searchsorted(share, side="right"))])
        return drawn

    def _of_all(self, p: tuple[float, ...]) -> np.ndarray:
        """Return the cumulated probabilities of all clients [n]; cached for an identical tuple."""
        if p is not self._weighed:
            self._weighed, self._cumulated = p, cumulated(p, range(self.n))
        return self._cumulated

    def stream(self, purpose: str, *ids: int) -> np.random.Generator:
        """Return the random stream of the seed for a purpose of the strategy."""
        return stream(self._seed, purpose, *ids)


def cumulated(p: tuple[float, ...], pool: Sequence[int]) -> np.ndarray:
    """Return the cumulated probabilities of a pool of clients, with the rounding of `Generator.choice`."""
    weights = relative(p, pool)
    upto = np.empty(0) if weights is None else weights.cumsum()
    return upto / upto[-1:]


def relative(p: np.ndarray | tuple[float, ...], pool: Sequence[int]) -> np.ndarray | None:
    """Return the probabilities of a pool of clients, of sum 1; None if all are 0.

    Raises:
        ValueError: A probability is negative or not finite.
    """
    weights = probabilities(np.asarray(p, float)[pool])
    return weights / weights.sum() if weights.any() else None
