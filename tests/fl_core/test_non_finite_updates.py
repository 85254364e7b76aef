"""Updates with an infinity or NaN: they end the run, or are refused and counted (rule 14)."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any, ClassVar

import pytest
from side_by_side import run_together
from torch import Tensor
from worlds import scenario

from fl_core.diagnostics.diagnosis import Diagnostics
from fl_core.execution.stacked import AllInFlight
from fl_core.experiment import Experiment
from fl_core.local_work import SGD
from fl_core.loop.simulation import Simulation, simulate
from fl_core.problems.problem import World
from fl_core.recording.recorder import Recorder, run
from fl_core.scenario import Scenario
from fl_core.server.jobs import Job
from fl_core.strategies.ace import ACE
from fl_core.strategies.asgd import ASGD
from fl_core.strategies.asgrad import AsGrad
from fl_core.strategies.delay_adaptive import DelayAdaptive
from fl_core.strategies.favas import FAVAS
from fl_core.strategies.fedavg import FedAvg
from fl_core.strategies.fedbuff import FedBuff
from fl_core.strategies.mifa import MIFA
from fl_core.strategies.quafl import QuAFL
from fl_core.strategies.strategy import Strategy
from fl_core.testing.strategy_checks import resumed

LR = 0.1
CENTRES = [1.0, -2.0, 4.0]
FAULTY = 0  # the client whose updates are NaN …
GOOD = 2  # … but for its first ones


class Faulty(SGD):
    """Local work in which one client's gradients are NaN from a certain job on."""

    name: ClassVar[str] = "faulty"
    client: int = FAULTY
    good: int = GOOD  # jobs

    def samples(self, world: World, job: Job) -> Tensor:
        """Noise that is NaN in the faulty jobs."""
        noise = super().samples(world, job)
        return noise * math.nan if job.client == self.client and job.index >= self.good else noise


def experiment(
    strategy: Strategy, times: list[int], refuse: bool = True, updates: int = 30, **local: Any
) -> Experiment:
    where = scenario(times, centres=[[centre] for centre in CENTRES], updates=updates)
    where = where.model_copy(update={"non_finite": "refuse" if refuse else "end"})
    faulty = strategy.model_copy(update={"local_lr": LR, "local": Faulty(**local)})
    return Experiment(scenario=where, strategy=faulty)


def last(described: Experiment) -> tuple[Simulation, float]:
    """The simulation at its end, and its model."""
    simulation = Simulation(described)
    for _ in simulate(simulation):
        pass
    return simulation, float(simulation.server.model)


Receive = Callable[[float, int, float], float | None]


def plain(times: list[int], updates: int, receive: Receive) -> tuple[float, list[int]]:
    """The final model, and who was refused; written without the code under test.

    `receive(model, client, delta)` is the new model, or None if there is no step. A client is sent the newest
    model after the next step, and at once if it was refused.
    """
    model, refused, jobs = 0.0, list[int](), [0] * len(times)
    heap = [(time, client, model) for client, time in enumerate(times)]
    heapq.heapify(heap)
    waiting = list[int]()
    for _ in range(updates):
        now, client, start = heapq.heappop(heap)
        jobs[client] += 1
        if client == FAULTY and jobs[client] > GOOD:
            refused.append(client)
            heapq.heappush(heap, (now + times[client], client, model))
            continue
        waiting.append(client)
        stepped = receive(model, client, -LR * (start - CENTRES[client]))
        if stepped is not None:
            model = stepped
            for one in waiting:
                heapq.heappush(heap, (now + times[one], one, model))
            waiting = []
    return model, refused


def asgd() -> Receive:
    return lambda model, client, delta: model + delta


def ace() -> Receive:
    table: dict[int, float] = {}

    def receive(model: float, client: int, delta: float) -> float | None:
        table[client] = delta
        return model + sum(table.values()) / 3 if len(table) == 3 else None

    return receive


def fedbuff() -> Receive:
    buffer: list[float] = []

    def receive(model: float, client: int, delta: float) -> float | None:
        buffer.append(delta)
        if len(buffer) < 2:
            return None
        mean = sum(buffer) / 2
        buffer.clear()
        return model + mean

    return receive


@pytest.mark.parametrize("times", [[1, 2, 3], [3, 1, 2], [2, 2, 2]], ids=str)
@pytest.mark.parametrize(
    ("strategy", "rule"),
    [
        (ASGD(), asgd),
        (ACE(), ace),  # the faulty client's row stays what it was
        (FedBuff(buffer=2, concurrency=None, scaling="none"), fedbuff),
    ],
    ids=["asgd", "ace", "fedbuff"],
)
def test_as_in_a_plain_loop(strategy: Strategy, rule: Callable[[], Receive], times: list[int]) -> None:
    """The others' updates make the model; a refused one is an upload, and its client is sent a new job."""
    simulation, model = last(experiment(strategy, times))
    wanted, refused = plain(times, 30, rule())
    assert math.isclose(model, wanted, rel_tol=1e-12)
    assert simulation.state.non_finite == len(refused) > 1
    assert simulation.server.updates == 30
    assert simulation.reason == "budget of client updates"


@pytest.mark.parametrize("times", [[1, 2, 3], [3, 1, 2], [2, 2, 2]], ids=str)
def test_a_round_of_fedavg_goes_on_without_it(times: list[int]) -> None:
    """θ ← θ + Σ p_i Δ_i over the others, whether it is the last of the round or not."""
    simulation, model = last(experiment(FedAvg(), times))
    wanted = 0.0
    for number in range(10):
        answers = [client for client in range(3) if number < GOOD or client != FAULTY]
        wanted += sum(-LR * (wanted - CENTRES[client]) for client in answers) / 3
    assert math.isclose(model, wanted, rel_tol=1e-12)
    assert (simulation.server.version, simulation.state.non_finite) == (10, 10 - GOOD)


def test_a_round_in_which_all_are_lost_begins_again() -> None:
    """One client, lost from its third job on: two steps, and no more."""
    where = scenario([1], centres=[[1.0]], updates=10).model_copy(update={"non_finite": "refuse"})
    strategy = FedAvg(local_lr=LR, local=Faulty())
    simulation, model = last(Experiment(scenario=where, strategy=strategy))
    assert math.isclose(model, 1 - (1 - LR) ** 2, rel_tol=1e-12)
    assert (simulation.server.version, simulation.state.non_finite) == (2, 8)


def test_rounds_of_mifa_and_polls_go_on() -> None:
    """MIFA keeps the old row; of s polled clients a lost one counts as the server's own model."""
    simulation, model = last(experiment(MIFA(), [3, 1, 2]))
    table, wanted = [0.0] * 3, 0.0
    for number in range(10):
        for client in range(3):
            if number < GOOD or client != FAULTY:
                table[client] = wanted - CENTRES[client]
        wanted -= LR / (number + 1) * sum(table) / 3
    assert math.isclose(model, wanted, rel_tol=1e-12) and simulation.server.version == 10

    # All three are polled every 4 time units, when all have made their step and wait.
    simulation, model = last(experiment(FAVAS(sample=3, period=Fraction(4)), [3, 1, 2]))
    wanted = 0.0
    for number in range(10):
        moved = [-LR * (wanted - CENTRES[client]) for client in range(3) if number < GOOD or client != FAULTY]
        wanted += sum(moved) / 4
    assert math.isclose(model, wanted, rel_tol=1e-12) and simulation.server.version == 10


@pytest.mark.parametrize("assignment", ["pure", "random", "shuffled"])
def test_asgrad_assigns_as_many_jobs_as_came_back(assignment: Any) -> None:
    """No job is lost with an update: three are in flight until the end."""
    simulation = Simulation(experiment(AsGrad(buffer=2, assignment=assignment), [1, 2, 3], updates=60))
    for _ in simulate(simulation):
        memory = simulation.server.memory
        unassigned = memory.count if assignment == "pure" else memory.count + memory.free
        assert simulation.server.in_flight + unassigned == 3
    assert simulation.state.non_finite > 2 and simulation.server.version > 10


def test_the_first_pass_asks_again() -> None:
    """NaN in the first two jobs only: the third is the client's part of the first pass."""

    class FaultyAtFirst(SGD):
        def samples(self, world: World, job: Job) -> Tensor:
            noise = super().samples(world, job)
            return noise * math.nan if job.client == FAULTY and job.index < 2 else noise

    described = experiment(ACE(), [2, 1, 1])
    strategy = described.strategy.model_copy(update={"local": FaultyAtFirst()})
    simulation = Simulation(described.model_copy(update={"strategy": strategy}))
    seen = []
    for event in simulate(simulation):
        seen.append((event.time, event.client, event.version))
        if event.stepped:
            break
    assert seen == [(1, 1, 0), (1, 2, 0), (2, 0, 0), (4, 0, 0), (6, 0, 1)]
    assert math.isclose(float(simulation.server.model), LR * sum(CENTRES) / 3, rel_tol=1e-12)


def test_iterations_of_several_arrivals() -> None:
    """Where time is counted in iterations, the step is made of the others of the same tick (rule 20)."""
    described = experiment(DelayAdaptive(), [1, 1, 1])
    where = described.scenario.model_dump() | {
        "timing": {"durations": {"name": "iterations", "mean": "1/100"}}
    }
    simulation, model = last(described.model_copy(update={"scenario": Scenario.model_validate(where)}))
    wanted = 0.0
    for number in range(10):
        moved = [-LR * (wanted - CENTRES[client]) for client in range(3) if number < GOOD or client != FAULTY]
        wanted += sum(moved) / len(moved)
    assert math.isclose(model, wanted, rel_tol=1e-12)
    assert (simulation.server.version, simulation.state.non_finite) == (10, 8)


def test_it_ends_the_run_unless_refused() -> None:
    """As the default has always done; the one update is counted."""
    record = run(experiment(ASGD(), [1, 2, 3], refuse=False))
    assert (record.status, record.non_finite) == ("diverged", 1)
    assert record.reason == "the update of client 0 at time 3 is not finite"
    assert len(record.arrivals["client"]) == 2 + 1  # client 0 at 1 and 2, client 1 at 2
    assert run(experiment(ASGD(), [1, 2, 3], good=99)).non_finite == 0


@pytest.mark.parametrize("strategy", [ASGD(), ACE(), FedAvg(), QuAFL()], ids=lambda one: one.title)
def test_stacked_beside_others_and_resumed_it_is_the_same_run(strategy: Strategy) -> None:
    """A NaN in a stack stays in its row, and the count survives a checkpoint."""
    described = experiment(strategy, [1, 2, 3])
    wanted = run(described)
    assert wanted.non_finite > 1 and wanted.status == "done"
    recorders = [Recorder(Simulation(described)) for _ in range(2)]
    whole = [run(described, execution=AllInFlight()), resumed(recorders, [12])]
    whole += [record for _, record in run_together([described, described])]
    for record in whole:
        assert (record.arrivals, record.non_finite) == (wanted.arrivals, wanted.non_finite)
        assert math.isclose(record.curve[-1]["distance"], wanted.curve[-1]["distance"], abs_tol=1e-10)


def test_error_terms_are_not_measured() -> None:
    """What is refused depends on the content of updates, so no shadow can follow."""
    described = experiment(ASGD(), [1, 2, 3])
    assert Diagnostics(errors=1).refuses(described) and not Diagnostics(errors=1).possible(described)
    assert Diagnostics(errors=1).possible(experiment(ASGD(), [1, 2, 3], refuse=False))
