"""Many simulations side by side: runs of one problem share stacked calls; a campaign becomes few large ones.

Each simulation is a generator that stops where it needs a result. When all that are open have stopped, what
they need is computed together, and each goes on. Their randomness is named, so none notices the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from weakref import WeakValueDictionary

from fl_core.execution.one_by_one import Execution, Need
from fl_core.execution.stacked import AllInFlight
from fl_core.experiment import Experiment
from fl_core.loop.simulation import Event, Simulation
from fl_core.problems.problem import Problem, World
from fl_core.recording.recorder import Record, Recorder


def run_together(
    experiments: Iterable[Experiment], at_once: int = 16, execution: Execution | None = None
) -> Iterator[tuple[int, Record]]:
    """Run experiments to their ends; yields the place and the record of each as soon as it has ended.

    The events of each are those of `measure.run` exactly, its models equal up to the last bits of a sum. At
    most `at_once` are open at a time; an experiment is taken from its iterable only when there is room.
    """
    for place, recorder in advance(_begun(experiments), at_once, execution):
        if recorder.simulation.status != "running":
            yield place, recorder.finish()


def advance(
    recorders: Iterable[Recorder], at_once: int = 16, execution: Execution | None = None
) -> Iterator[tuple[int, Recorder]]:
    """Advance recorders side by side; yields place and recorder after every evaluation and at the end.

    They were started, or loaded from checkpoints; at most `at_once` are open at a time. One that has ended
    has another status than "running", and wants to be finished.
    """
    opened: dict[int, Recorder] = {}

    def simulations() -> Iterator[Simulation]:
        for place, recorder in enumerate(recorders):
            opened[place] = recorder
            yield recorder.simulation

    for place, event in simulate_together(simulations(), at_once, execution):
        if event is None:
            yield place, opened.pop(place)
        elif opened[place].see(event):
            yield place, opened[place]


def simulate_together(
    simulations: Iterable[Simulation], at_once: int = 16, execution: Execution | None = None
) -> Iterator[tuple[int, Event | None]]:
    """The events of many simulations, each with the simulation's place; None at its end."""
    execution = execution or AllInFlight()
    waiting = enumerate(simulations)
    lanes: list[tuple[int, Iterator[Event | Need]]] = []
    while True:
        while len(lanes) < at_once and (entry := next(waiting, None)):
            lanes.append((entry[0], entry[1].events()))
        if not lanes:
            return
        needs: list[Need] = []
        going = []
        for place, events in lanes:
            for event in events:
                if isinstance(event, Need):
                    needs.append(event)
                    going.append((place, events))
                    break
                yield place, event
            else:
                yield place, None
        lanes = going
        if needs:
            execution.fill(needs)


def _begun(experiments: Iterable[Experiment]) -> Iterator[Recorder]:
    """Started recorders of experiments; open runs of one problem and seed share a world."""
    worlds: WeakValueDictionary[tuple[Problem, int], World] = WeakValueDictionary()
    for experiment in experiments:
        key = experiment.scenario.problem, experiment.seed
        world = worlds.get(key) or key[0].world(key[1])
        worlds[key] = world
        recorder = Recorder(Simulation(experiment, world))
        recorder.start()
        yield recorder
