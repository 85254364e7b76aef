"""Requirements of every strategy, whatever its aggregation rule.

`conformance.checks` runs `CHECKS` on a strategy. A docstring says what holds for a strategy that passes.
"""

import itertools
import json
import math
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from fl_core.diagnostics.shadow import Content, Shadow
from fl_core.execution.execution import Execution
from fl_core.execution.one_by_one import OneByOne
from fl_core.execution.stacked import AllInFlight
from fl_core.experiment import Experiment
from fl_core.local_work import SGD
from fl_core.loop.events import EventKind
from fl_core.loop.simulation import Simulation, simulate
from fl_core.problems.problem import World
from fl_core.recorded_names import Reason, Status
from fl_core.recording import checkpoint
from fl_core.recording.evaluation import surrogate_weights
from fl_core.recording.recorder import Record, Recorder, run
from fl_core.server.jobs import Job
from fl_core.strategies.strategy import Strategy
from fl_core.testing.check_experiments import TIMES, changed, experiment, must, scenario

LOCALS: tuple[dict[str, Any], ...] = ({"name": "sgd"}, {"name": "scaffold"})
STOPS = (1, 30, 80)  # events before a run is interrupted
EXACT = 1e-10  # how far models in float64 may be apart where only the order of sums differs
SETTLED, COUNTED = 500, 2500  # arrivals before shares are counted, and arrivals counted
PARTS = 25  # consecutive parts of the arrivals counted, whose shares differ by chance
ERRORS = 6  # standard errors that a client's mean share may be off: once in 300,000 for 24 degrees of freedom
ENDS = 2  # arrivals by which the two ends of what is counted may change a client's number


def its_description_gives_it_again(strategy: Strategy) -> None:
    """Description → JSON → experiment is the identity, and keeps the key; another seed has another key."""
    first = experiment(scenario(), changed(strategy))
    restored = Experiment.model_validate(json.loads(json.dumps(first.description())))
    must(restored == first and restored.key == first.key, "its description as JSON gives another experiment")
    must(experiment(scenario(), changed(strategy), seed=2).key != first.key, "two seeds have the same key")


def its_rates_are_tuned(strategy: Strategy) -> None:
    """A redeclared rate also redeclares `Tune(low, high)`."""
    for rate in ("local_lr", "server_lr"):
        must(rate in strategy.tunable(), f"{rate} has no range: {rate}: Annotated[Rate, Tune(low, high)]")


def a_run_repeats_bit_for_bit(strategy: Strategy) -> None:
    """An experiment gives a fixed curve and list of arrivals; another seed gives other numbers."""
    described = experiment(scenario(), changed(strategy))
    first, repeated = run(described), run(described)
    must(first.status is Status.DONE, f"a run ended as {first.status}: {first.reason}")
    must(first.curve == repeated.curve, "the same experiment gave another curve: is there hidden state?")
    must(
        first.arrivals == repeated.arrivals, "the same experiment gave other arrivals: is there hidden state?"
    )
    reseeded = run(experiment(scenario(), changed(strategy), seed=2))
    must(first.curve[-1] != reseeded.curve[-1], "another seed gave the same curve")


def a_run_learns(strategy: Strategy) -> None:
    """The excess loss falls, for some strategies slowly or to a biased limit."""
    curve = run(experiment(scenario(noise=0.0, updates=600), changed(strategy))).curve
    first, last = (point["excess_loss"] for point in (curve[0], curve[-1]))
    must(last < 0.65 * first, f"600 updates lowered the excess loss from {first:.3g} to {last:.3g} only")


def stacked_execution_changes_nothing(strategy: Strategy) -> None:
    """Jobs in stacks, under two kinds of local work, give equal events, and equal models to 1e-10."""
    for local in LOCALS:
        is_the_same_in_stacks(experiment(scenario(), changed(strategy, local={**local, "steps": 3})))


def is_the_same_in_stacks(described: Experiment) -> None:
    """Stacks of four and of all jobs give equal events, and equal models to 1e-10."""
    plain, models = _played(described, OneByOne())
    for execution in (AllInFlight(max_batch=4), AllInFlight()):
        events, stacked = _played(described, execution)
        apart = float((stacked - models).abs().max()) if events == plain else float("nan")
        work = described.strategy.local.reference()
        must(events == plain, f"with {work} as local work, stacked jobs gave other events")
        must(apart <= EXACT, f"with {work} as local work, stacked jobs moved a model by {apart:.2g}")


def _played(described: Experiment, execution: OneByOne | AllInFlight) -> tuple[list[Any], torch.Tensor]:
    """Return all events, and the model after each."""
    simulation = Simulation(described)
    seen = [(event, simulation.server.model) for event in simulate(simulation, execution)]
    return [event for event, _ in seen], torch.stack([model for _, model in seen])


def a_resumed_run_equals_an_uninterrupted_one(strategy: Strategy) -> None:
    """Interrupted three times and resumed in new objects, under drop-outs and in stacks: bit for bit."""
    is_the_same_when_resumed(changed(strategy, local={"name": "scaffold"}))


def is_the_same_when_resumed(strategy: Strategy) -> None:
    """A run's record does not depend on interruptions."""
    away = {"name": "dropouts", "share": 0.4, "at": 3, "back": 5}
    described = experiment(scenario(availability=away), strategy)
    recorders = [Recorder(Simulation(described)) for _ in range(len(STOPS) + 1)]
    must(
        resumed(recorders, STOPS, AllInFlight()) == run(described, execution=AllInFlight()),
        f"resumed after {', '.join(map(str, STOPS))} events, a run ended otherwise",
    )


def resumed(
    recorders: Sequence[Recorder], stops: Sequence[int], execution: Execution | None = None
) -> Record:
    """Return the record of a run that each recorder resumes where the one before was stopped.

    `stops` are numbers of events, counted from the start of the run.
    """
    recorders[0].start()
    numbers = itertools.count()
    for stop, (recorder, fresh) in zip(stops, itertools.pairwise(recorders), strict=True):
        for event in simulate(recorder.simulation, execution):
            recorder.see(event)
            if next(numbers) == stop:
                break
        with tempfile.TemporaryDirectory() as folder:
            checkpoint.save(recorder, Path(folder) / "run.pt")
            checkpoint.load(fresh, Path(folder) / "run.pt")
    for event in simulate(recorders[-1].simulation, execution):
        recorders[-1].see(event)
    return recorders[-1].finish()


def lost_clients_end_nothing_early(strategy: Strategy) -> None:
    """When half of the clients leave for good, the budget is spent, or the strategy names missing clients."""
    away = {"name": "dropouts", "share": 0.5, "at": 4}
    record = run(experiment(scenario(availability=away), changed(strategy)))
    may_stall = type(strategy).stalled_by is not Strategy.stalled_by
    ends = {Status.DONE, Status.STALLED} if may_stall else {Status.DONE}
    must(record.status in ends, f"without half of the clients it ended as {record.status}: {record.reason}")
    if record.status is Status.DONE:
        must(
            record.reason == Reason.UPDATES,
            f"without half of the clients it ended early: {record.reason}; does it wait for a lost one?",
        )


class Faulty(SGD):
    """Local work with NaN gradients in every third job of a client."""

    def samples(self, world: World, job: Job) -> Tensor:
        """The mini-batches, here noise, with NaN in the faulty jobs."""
        drawn = super().samples(world, job)
        return drawn * math.nan if job.index % 3 == 2 else drawn


def refused_updates_end_nothing_early(strategy: Strategy) -> None:
    """With every third update of a client refused, the budget is still spent."""
    setting = scenario().model_copy(update={"non_finite": "refuse"})
    record = run(experiment(setting, changed(strategy).model_copy(update={"local": Faulty()})))
    must(record.non_finite > 0, "no client was sent a third job")
    must(
        record.reason == Reason.UPDATES,
        f"with updates that are refused it ended as {record.status}: {record.reason}; if it waits for a "
        "number of jobs, define `lost`, which is called in place of `receive`",
    )


def its_steps_are_as_linear_as_it_says(strategy: Strategy) -> None:
    """The step on the mean of two updates is the mean of the steps: the basis of the error terms."""
    for linear in (strategy.linear, strategy.server.linear):
        must(bool(linear), "linear: True, or one sentence why not")
    if not (strategy.linear is strategy.server.linear is True):
        return
    simulation = Simulation(experiment(scenario(updates=60), changed(strategy)))
    shadows = [Shadow(simulation) for _ in range(3)]
    random = torch.Generator().manual_seed(0)
    for event in simulate(simulation):
        job = simulation.arrived
        contents: list[Content | None] = [None, None, None]
        if event.kind is EventKind.ARRIVAL and job is not None:
            x, y = torch.randn(2, 2, len(job.start), generator=random, dtype=job.start.dtype)
            contents = [Content(job.start, *pair) for pair in (x, y, (x + y) / 2)]  # Δ and gradient each
        model = simulation.server.model
        first, second, summed = (
            shadow.follow(event, content, model) for shadow, content in zip(shadows, contents, strict=True)
        )
        apart = float((summed - (first + second) / 2).abs().max())
        size = float((first.abs() + second.abs()).max())
        must(
            apart <= 1e-12 + 1e-9 * size,
            "its steps are not linear in the updates: say why in a class variable, "
            'linear: ClassVar[str] = "…"; the error terms are not measured then',
        )


def clients_take_part_as_often_as_it_says(strategy: Strategy) -> None:
    """Shares of arrivals under constant and exponential times are as `participation` says, if known."""
    for durations in ("fixed", "exponential"):
        law = {"name": durations, "times": TIMES}
        setting = scenario(noise=0.0, updates=SETTLED + COUNTED, durations=law)
        simulation = Simulation(experiment(setting, changed(strategy)))
        declared = surrogate_weights(simulation)
        if declared is None:
            continue
        senders = np.array(
            [event.client for event in simulate(simulation) if event.kind is EventKind.ARRIVAL]
        )
        parts = np.split(senders[SETTLED:], PARTS)
        shares = np.array([np.bincount(part, minlength=len(declared)) for part in parts]) / len(parts[0])
        counted, error = shares.mean(0), shares.std(0, ddof=1) / PARTS**0.5
        beyond = abs(counted - declared) - (ERRORS * error + ENDS / COUNTED)
        worst = int(beyond.argmax())
        must(
            beyond[worst] <= 0,
            f"with {durations} times client {worst} sent {counted[worst]:.3g} of all updates, but "
            f"participation gives it {declared[worst]:.3g}: override it, with None where no formula "
            "is known, or keep a number of clients at work (concurrency)",
        )


CHECKS = (
    its_description_gives_it_again,
    its_rates_are_tuned,
    a_run_repeats_bit_for_bit,
    a_run_learns,
    stacked_execution_changes_nothing,
    a_resumed_run_equals_an_uninterrupted_one,
    lost_clients_end_nothing_early,
    refused_updates_end_nothing_early,
    its_steps_are_as_linear_as_it_says,
    clients_take_part_as_often_as_it_says,
)
