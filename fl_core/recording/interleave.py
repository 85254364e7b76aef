"""Interleaved simulations: one worker runs several simulations of a problem, whose jobs share stacked calls.

Each simulation is a generator that stops when it needs a result. When all open simulations have stopped,
their requests are computed together, and each continues. Random streams are named, so runs do not affect each
other. An error ends only its own simulation. Real time is charged to each run: the time of its own events,
and a share of every common call, by the number of its jobs that were computed.

Fixed: the events of each run. Free: which runs share a call, and how time is charged.
"""

from collections.abc import Iterable, Iterator, Sequence
from time import perf_counter
from typing import TypeVar

from fl_core.execution.execution import ComputeRequest, Execution
from fl_core.execution.stacked import AllInFlight
from fl_core.loop.simulation import Event


class LapClock:
    """Real time of a process, cut into laps without gaps; each lap is charged to a slot or shared."""

    def __init__(self) -> None:
        self._last = perf_counter()

    def lap(self) -> float:
        """Return the seconds since the last lap ended."""
        last, self._last = self._last, perf_counter()
        return self._last - last


class RunSlot:
    """A simulation among interleaved simulations, with its open request and its share of real time.

    A worker's subclass also evaluates the model and saves checkpoints (`benchmarks/runs/run_jobs.py`).
    """

    def __init__(self, events: Iterator[Event | ComputeRequest]) -> None:
        self.seconds = 0.0  # real time charged
        self.beside = 1  # the most slots open at once, this one included
        self.request: ComputeRequest | None = None  # None before the start and after the end
        self.error: BaseException | None = None  # the error that ended the simulation, if any
        self.clock = LapClock()  # shared by all slots that run together
        self._events = events

    def charge(self) -> None:
        """Charge the time since the last lap to the slot."""
        self.seconds += self.clock.lap()

    def until_request(self) -> Iterator[Event]:
        """Yield events up to the next request, or the end."""
        self.request = None
        try:
            for event in self._events:
                if type(event) is ComputeRequest:
                    self.request = event
                    break
                yield event
        except (Exception, SystemExit) as error:  # noqa: BLE001 - ends this slot only
            self.error = error
        self.charge()


S = TypeVar("S", bound=RunSlot)


def interleave(
    slots: Iterable[S | None], at_once: float = 16, execution: Execution | None = None
) -> Iterator[tuple[S, Event | None]]:
    """Interleave runs; yield (slot, event), and (slot, None) at the end of a run.

    Args:
        slots: Slots, taken one at a time whenever there is room; None if no slot is ready yet: the iterable
            is asked again in the next round.
        at_once: The most slots open at a time.
        execution: What computes the requests of all open slots; `AllInFlight()` if left out.
    """
    execution = execution or AllInFlight()
    waiting, opened, clock = iter(slots), list[S](), LapClock()
    while True:
        while len(opened) < at_once and (slot := next(waiting, None)):
            slot.clock = clock
            opened.append(slot)
        if not opened:
            return
        for slot in opened:
            slot.beside = max(slot.beside, len(opened))
        clock.lap()  # the time to find a slot is charged to no run
        for slot in list(opened):
            for event in slot.until_request():
                yield slot, event
            if slot.request is None:
                opened.remove(slot)
                yield slot, None
                clock.lap()
        for slot in _execute(opened, execution, clock):
            opened.remove(slot)
            yield slot, None
        del slot  # frees the memory of an ended run before the next one is created


def _execute(slots: Sequence[S], execution: Execution, clock: LapClock) -> list[S]:
    """Compute the requests of all slots in a single call; return the failed slots."""
    requests = [slot.request for slot in slots if slot.request is not None]
    if not requests:
        return []
    try:
        jobs = execution.execute(requests)
    except (Exception, SystemExit) as error:  # noqa: BLE001
        if len(slots) == 1:
            slots[0].error = error
            slots[0].charge()
            return list(slots)
        # A second attempt, slot by slot, shows whose job failed.
        missing = [slot for slot in slots if slot.request is not None and slot.request.job.delta is None]
        return [failed for slot in missing for failed in _execute([slot], execution, clock)]
    seconds = clock.lap()
    for slot, computed in zip(slots, jobs, strict=True):
        slot.seconds += seconds * computed / sum(jobs)
    return []
