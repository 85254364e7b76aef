"""Recorded runs side by side, for tests."""

from collections.abc import Iterable, Iterator
from weakref import WeakValueDictionary

from fl_core.execution.execution import ComputeRequest, Execution
from fl_core.experiment import Experiment
from fl_core.loop.simulation import Event, Simulation
from fl_core.problems.problem import Problem, World
from fl_core.recording.interleave import RunSlot, interleave
from fl_core.recording.recorder import Record, Recorder


class RecorderSlot(RunSlot):
    """A started or restored recorder and its simulation; the recorder is finished at the end."""

    def __init__(self, recorder: Recorder, place: int = 0) -> None:
        self.recorder, self.place = recorder, place
        super().__init__(self.events())

    def events(self) -> Iterator[Event | ComputeRequest]:
        for event in self.recorder.simulation.events():
            if not isinstance(event, ComputeRequest):
                self.recorder.see(event)
            yield event
        self.recorder.finish()


def run_together(
    experiments: Iterable[Experiment], at_once: int = 16, execution: Execution | None = None
) -> Iterator[tuple[int, Record]]:
    """Yield the place and the record of each experiment as soon as it has ended."""
    for slot, event in interleave(_begun(experiments), at_once, execution):
        if slot.error is not None:
            raise slot.error
        if event is None:
            yield slot.place, slot.recorder.record


def _begun(experiments: Iterable[Experiment]) -> Iterator[RecorderSlot]:
    """Open runs of one problem and seed share a world."""
    worlds: WeakValueDictionary[tuple[Problem, int], World] = WeakValueDictionary()
    for place, experiment in enumerate(experiments):
        key = experiment.scenario.problem, experiment.seed
        world = worlds.get(key) or key[0].world(key[1])
        worlds[key] = world
        recorder = Recorder(Simulation(experiment, world))
        recorder.start()
        yield RecorderSlot(recorder, place)
