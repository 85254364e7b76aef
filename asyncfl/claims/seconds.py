"""How long runs take: their jobs, times what a job of their workload took once, scaled to this machine.

`results/seconds.csv` has a line for each workload, which is a problem with the mini-batches of a job, and
`results/updates.csv` the number of jobs in each schedule, by the key of a run with a problem that needs
neither data nor gradients. They are counted on its beginning.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass, fields
from math import inf
from pathlib import Path
from time import process_time
from typing import TYPE_CHECKING, NamedTuple, cast

from asyncfl.claims import kept
from benchmarks.runs.estimate import judged, unit
from benchmarks.runs.schedule import schedule, updates
from benchmarks.suite import labels
from benchmarks.suite.suite import NOT_IN_POOLED_TRAINING, PlannedRun
from fl_core.loop.events import Kind
from fl_core.loop.simulation import Simulation, simulate
from fl_core.problems.data.files import DataDamagedError
from fl_core.problems.problem import InvalidProblemError, World
from fl_core.text import many

if TYPE_CHECKING:
    from fl_core.problems.training.world import SupervisedWorld

MEASURED = 1.0  # seconds of a workload's jobs that are measured
JUDGED = 2.0  # seconds of an evaluation; a longer one is taken for a third of a gradient a data point
# A GPU's speed in cores: 10 TFLOP/s, and 60 GFLOP/s as measured with a CNN of seven layers
GPU = 10e12 / 60e9
# What a problem raises whose data are missing here, or whose network is too large for this machine
UNBUILT = (OSError, DataDamagedError, InvalidProblemError, MemoryError, RuntimeError)
LAUNCH = 1e-3  # seconds of a gradient on a GPU at least
ASSUMED = (
    f"The time of a GPU is assumed, not measured: {GPU:.0f} times as fast as a core (10 TFLOP/s against "
    f"60 GFLOP/s), but {1000 * LAUNCH:g} ms a gradient at least."
)


class Time(NamedTuple):
    """What a run takes, in seconds."""

    core: float  # of one core
    gpu: float  # assumed: as `GPU` and `LAUNCH` say


@dataclass(frozen=True, slots=True)
class Seconds:
    """What a workload took on one core, in seconds."""

    unit: float  # of the computation that compares machines, at that time
    job: float  # with the server's part in it
    test: float  # of one evaluation of a model on the test data
    training: float  # of one on the training data of all clients
    world: float  # to deal out the data


WORKLOADS = ("workload", *(field.name for field in fields(Seconds)))
SCHEDULES = ("schedule", "updates")


class Costs:
    """The recorded workloads of a folder of results; what is missing is measured once, and kept."""

    def __init__(self, folder: Path) -> None:
        self._seconds, self._updates = folder / "seconds.csv", folder / "updates.csv"
        self.workloads = {name: Seconds(*took) for name, took in _read(self._seconds, WORKLOADS).items()}
        self.counted = {key: jobs for key, (jobs,) in _read(self._updates, SCHEDULES).items()}
        self._failed: set[str] = set()

    def of(self, run: PlannedRun) -> Time:
        """Return what a run takes here; ∞ where its data are missing, or its network is too large."""
        name = workload(run)
        if name not in self.workloads and name not in self._failed:
            try:
                self.workloads[name] = measured(run)
            except UNBUILT:
                self._failed.add(name)
            else:
                _keep(self._seconds, WORKLOADS, name, astuple(self.workloads[name]))
        if name not in self.workloads:
            return Time(inf, inf)
        took, scenario, local = self.workloads[name], run.experiment.scenario, run.experiment.strategy.local
        jobs, marks = self.updates(run), scenario.evaluations
        judging = marks * took.test + (1 + marks * judged(run)) * took.training
        seconds = (jobs * took.job + judging + took.world) * unit() / took.unit
        return Time(seconds, max(seconds / GPU, jobs * local.usual(0, 0) * LAUNCH))

    def updates(self, run: PlannedRun) -> float:
        """Return the client updates of a run."""
        budget = run.experiment.scenario.budget
        if budget.time is None and budget.iterations is None:
            return float(budget.updates or 0)
        key = schedule(run.experiment).key
        if key not in self.counted:
            self.counted[key] = updates(run.experiment)
            _keep(self._updates, SCHEDULES, key, (self.counted[key],))
        return self.counted[key]


def _read(file: Path, columns: Sequence[str]) -> dict[str, tuple[float, ...]]:
    return dict(kept.table(file, columns, lambda cells: (cells[0], (*map(float, cells[1:]),))))


def _keep(file: Path, columns: Sequence[str], name: str, values: tuple[float, ...]) -> None:
    """Add a row to what other processes, too, have added meanwhile."""
    with kept.changing():
        rows = sorted({**_read(file, columns), name: values}.items())
        kept.write(file, columns, ([name, *(f"{value:.4g}" for value in row)] for name, row in rows))


def workload(run: PlannedRun) -> str:
    """Return problem and mini-batches of a job in words, without what hardly changes their time."""
    problem, local = run.problem.identity(), run.experiment.strategy.local
    own = {key: value for key, value in problem.items() if key not in NOT_IN_POOLED_TRAINING | {"clients"}}
    parts = [labels.value(part) for part in (own.pop("model", None), own) if part]
    return ", ".join([*parts, f"{many(local.usual(0, 0), 'step')} with {local.batch}"])


def measured(run: PlannedRun) -> Seconds:
    """Return what the jobs of a run's workload take, and its evaluations; raises what building it raises."""
    experiment, before = run.experiment, unit.__wrapped__()
    experiment.scenario.problem.world(experiment.seed)  # what is loaded once a process does not count
    began = process_time()
    world = experiment.scenario.problem.world(experiment.seed)
    built = process_time() - began
    simulation, jobs = Simulation(experiment, world), 0
    events = simulate(simulation)
    next(events, None)
    began = process_time()
    for event in events:
        jobs += event.kind is Kind.ARRIVAL
        if jobs and process_time() - began > MEASURED:
            break
    job = (process_time() - began) / max(1, jobs)
    local = experiment.strategy.local
    points = local.usual(0, int(world.sizes[0])) * local.batch
    test, training = _evaluations(world, job / points)
    return Seconds((before + unit.__wrapped__()) / 2, job, test, training, built)


def _evaluations(world: World, point: float) -> tuple[float, float]:
    """Seconds to judge a model on test and on training data, where a gradient takes `point` a data point."""
    model = world.initial() + 1e-3  # what is known of the first model is not computed again
    training = point / 3 * int(world.sizes.sum())
    if training < JUDGED:
        world.test(world.initial())  # the first time is slower
        return _took(lambda: world.test(model)), _took(lambda: world.losses(model))
    data = cast("SupervisedWorld", world).data
    return training * len(data.y_test) / len(data.y_train), training


def _took(work: Callable[[], object]) -> float:
    began = process_time()
    work()
    return process_time() - began
