"""The `Recorder` evaluates a run in progress and produces its `Record`: curve, arrivals, clients.

Workers call `see` with each event of the simulation; `run` does all of it for a single experiment. What is
recorded under a name here becomes files and MLflow metrics in `benchmarks/mlflow_store/tags_and_metrics.py`.

Fixed: marks, names and values of all columns. Stored numbers and the golden values of baselines are read off
the curve.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from math import ceil, floor, inf, isfinite, nan
from typing import Any, NamedTuple

import numpy as np
from torch import Tensor

from fl_core.diagnostics.diagnosis import Diagnosis, Diagnostics
from fl_core.diagnostics.overhead import overhead
from fl_core.diagnostics.staleness import by_client, predicted
from fl_core.execution.execution import Execution
from fl_core.experiment import Experiment
from fl_core.loop.events import EventKind
from fl_core.loop.simulation import Event, Simulation, simulate
from fl_core.metrics import FP_LOSS, LOSS, TRAINING
from fl_core.problems.problem import Evaluation, World
from fl_core.recorded_names import (
    ARRIVALS,
    BYTES,
    CURVE,
    ENERGY,
    ITERATION,
    PHASES,
    PHASES_AT_SERVER,
    TIME,
    Name,
    Reason,
    Status,
)
from fl_core.recording.evaluation import Evaluate, EvaluationSample, metrics, surrogate_weights
from fl_core.time_to_target import first_meeting
from fl_core.timing.network import Way

CLOCKS = (*CURVE.columns, Name.UPLOADS, Name.DOWNLOADS, BYTES)  # columns of every row of a curve


class Marks:
    """Marks of a budget at k/E, k = 1 … E: the points of evaluation (docs/rules.md, rule 13)."""

    def __init__(self, budget: Fraction | int | None, evaluations: int, *, before: bool = False) -> None:
        self.step = None if budget is None else Fraction(budget) / evaluations
        self.before = before  # whether a mark is passed only by a value strictly above it
        self.reached = 0

    @property
    def reached(self) -> int:
        """The number of marks passed."""
        return self._reached

    @reached.setter
    def reached(self, count: int) -> None:
        """Continue after `count` passed marks."""
        self._reached = count
        # No smaller value passes the next mark; compared at every event, an integer is ten times as fast.
        self._next = inf if self.step is None else ceil(self.step * (count + 1))

    def passed(self, clock: int) -> bool:
        """Return whether a mark was passed since the last call."""
        if self.step is None or clock < self._next:
            return False
        reached = ceil(clock / self.step) - 1 if self.before else floor(clock / self.step)
        passed = reached > self.reached
        self.reached = reached
        return passed


class Clocks(NamedTuple):
    """All clocks of a run at a moment."""

    version: int
    updates: int
    time: float
    up: int  # bytes received by the server
    down: int  # bytes received by clients
    tokens: int | None  # of the mini-batches of all updates; None where data are no text
    energy: float | None = None  # joules; None where no power is given, and between evaluations

    def row(self) -> dict[str, float]:
        """Return the clocks as columns of a curve."""
        *clocks, tokens, energy = self
        row: dict[str, float] = dict(zip(CLOCKS, (*clocks, self.up + self.down), strict=True))
        optional = {Name.TOKENS: tokens, ENERGY: energy}
        return row | {name: value for name, value in optional.items() if value is not None}


@dataclass
class Record:
    """The results of a run: a row for each evaluation, arrival, client and diagnosed iteration."""

    status: Status = Status.RUNNING
    reason: str = ""
    curve: list[dict[str, float]] = field(default_factory=list)
    arrivals: dict[str, array[Any]] = field(
        default_factory=lambda: {name: array(kind) for name, kind in ARRIVALS.columns.items()}
    )
    clients: dict[str, list[Any]] = field(default_factory=dict)
    diagnostics: list[dict[str, float]] = field(default_factory=list)
    local_steps: int = 0  # of all updates
    non_finite: int = 0  # updates that were not finite
    misread: int = 0  # messages that a coding decoded wrong
    server_busy: float | None = None  # share of time in which the server was busy; None: updates take no time
    server_wait: float | None = None  # mean virtual time that an update waited for the server; None: likewise
    kept_bytes: dict[str, int] = field(default_factory=dict)  # at the end, at the server and at the clients


class Recorder:
    """Evaluation of a simulation, event by event, at marks (docs/rules.md, rule 13).

    Marks lie at k/E of every budget; a version is evaluated once, at its first mark; the last row is the end
    of the run. With `evaluate` "test", rows before the last have no training losses (fp/*, sp/*), unless
    these cost nothing; with a sample they have estimates and standard errors. The last row is exact.
    Evaluation and diagnostics do not change the run.

    Raises:
        ValueError: The run cannot be diagnosed.
    """

    def __init__(
        self,
        simulation: Simulation,
        diagnostics: Diagnostics | None = None,
        evaluate: Evaluate = "clients",
    ) -> None:
        self.simulation = simulation
        self.evaluate: Evaluate = evaluate
        self.record = Record()
        self.of_clients = simulation.experiment.scenario.problem.client_metrics()
        budget = simulation.budget
        count, unit = simulation.experiment.scenario.evaluations, simulation.lengths.clock.unit
        self.iteration_marks = Marks(budget.iterations, count)
        self.update_marks = Marks(budget.updates, count)
        self.byte_marks = Marks(budget.bytes, count)
        self.time_marks = Marks(budget.time and budget.time / unit, count, before=True)
        self.evaluated = -1  # the last version evaluated
        self.diagnosis = Diagnosis(simulation, diagnostics) if diagnostics else None
        self.resume()

    def resume(self) -> None:
        """Continue from the simulation's present state, at the start or after a checkpoint was loaded."""
        self._before = self._now()
        for place in range(len(self.record.curve)):
            self._compare(place)

    def start(self) -> None:
        """Evaluate the first model."""
        model, clocks = self._now()
        self._evaluate(model, self._with_energy(clocks))

    def see(self, event: Event) -> bool:
        """Record an event, and evaluate the model if a mark was passed; return True if evaluated."""
        server, record = self.simulation.server, self.record
        rows = len(record.curve)
        if self.diagnosis is not None and (row := self.diagnosis.see(event)) is not None:
            record.diagnostics.append(row)
        if event.kind is EventKind.ARRIVAL:
            seen = (self.simulation.time, event.client, event.staleness, event.version)
            for column, value in zip(record.arrivals.values(), seen, strict=True):
                column.append(value)
        first = self.time_marks.reached + 1  # an event may pass several time marks: one row, at the first
        if self.time_marks.passed(event.time):
            self._evaluate(self._before[0], self._at(first))
        model, clocks = self._before = self._now()
        reached = [self.iteration_marks.passed(server.version), self.update_marks.passed(server.updates)]
        if any(reached) | self.byte_marks.passed(clocks.up + clocks.down):
            self._evaluate(model, self._with_energy(clocks))
        return len(record.curve) > rows

    def end(self) -> None:
        """Evaluate the final model as at a mark; for a simulation at the end or stopped."""
        simulation, record = self.simulation, self.record
        model, clocks = self._now()
        mark = clocks = self._with_energy(clocks)
        if simulation.reason == Reason.TIME and simulation.budget.time is not None:
            # The run ends at its deadline, after the last event; no version is evaluated twice for it.
            clocks = clocks._replace(time=float(simulation.budget.time))
            clocks = self._with_energy(clocks, int(simulation.ends.deadline))
            mark = self._at(self.time_marks.reached + 1)
        if simulation.status is not Status.DIVERGED:
            self._evaluate(model, mark)
        if simulation.status is not Status.DIVERGED:  # which the evaluation may have found
            last, end = record.curve[-1], clocks.row()
            if all(end[name] == last[name] for name in CURVE.columns):
                record.curve.pop()  # the same version and times: only the bytes may differ
            record.curve.append({**last, **end})

    def finish(self, *, clients: bool = True) -> Record:
        """Evaluate the end and return the record.

        Args:
            clients: Whether to evaluate the clients' training losses on all their data, and to measure what
                server and clients keep; a tuning trial does without.
        """
        self.end()
        simulation, record = self.simulation, self.record
        record.status, record.reason = simulation.status, simulation.reason
        state = simulation.state
        record.local_steps, record.non_finite = state.local_steps, state.non_finite
        record.misread = state.misread
        if simulation.service.server_queue:
            waiting, busy = map(simulation.lengths.clock.time, state.server_ticks)
            record.server_busy = busy / simulation.time if simulation.time else 0.0
            record.server_wait = waiting / max(state.updates, 1)
        if not clients:
            return record
        metrics_at_end, version = (
            simulation.world.evaluate(simulation.server.model),
            simulation.server.version,
        )
        exact = self._metrics(metrics_at_end)
        if simulation.status is not Status.DIVERGED:
            self._must_rank(exact, version)
        record.curve = [
            {name: row[name] for name in self._with_energy(self._now()[1]).row()} | exact
            if row[ITERATION] == version
            else row
            for row in record.curve
        ]
        record.clients = self._clients(metrics_at_end)
        record.kept_bytes = overhead(simulation)
        return record

    def _at(self, mark: int) -> Clocks:
        """Return the clocks at a time mark after the latest event, with the messages complete by then."""
        assert self.time_marks.step is not None
        clocks, tick = self._before[1], mark * self.time_marks.step
        sent = {Way.UP: clocks.up, Way.DOWN: clocks.down}
        for end, way, size in self.simulation.service.messages:
            sent[way] += size if end <= tick else 0
        time = float(tick * self.simulation.lengths.clock.unit)
        clocks = clocks._replace(time=time, up=sent[Way.UP], down=sent[Way.DOWN])
        return self._with_energy(clocks, tick)

    def _with_energy(self, clocks: Clocks, tick: int | Fraction | None = None) -> Clocks:
        """Return clocks with the energy until a tick, now unless given."""
        simulation = self.simulation
        if simulation.energy is None:
            return clocks
        return clocks._replace(energy=simulation.energy.used(simulation.state.now if tick is None else tick))

    def _now(self) -> tuple[Tensor, Clocks]:
        """Return the newest model [d] and all clocks but energy."""
        state, world = self.simulation.state, self.simulation.world
        sent = state.sent[Way.UP], state.sent[Way.DOWN]
        tokens = state.local_steps * self.simulation.local.batch * world.tokens if world.tokens else None
        return state.model, Clocks(state.version, state.updates, self.simulation.time, *sent, tokens)

    def _evaluate(self, model: Tensor, clocks: Clocks) -> bool:
        """Add a row to the curve, unless the version has a row; return False if the run ends as diverged."""
        version = clocks.version
        if version == self.evaluated:
            return True
        self.evaluated = version
        row = self._metrics(self._judged(model))
        self.record.curve.append({**clocks.row(), **row})
        self._compare(len(self.record.curve) - 1)
        ranking = self.simulation.experiment.scenario.problem.metric
        if ranking not in TRAINING:  # with `evaluate: test` a row has no training losses
            self._must_rank(row, version)
        losses = [row[name] for name in (FP_LOSS, LOSS.name) if name in row]
        if not np.isfinite(losses).all():  # (14)
            self.simulation.diverge(f"the loss of version {version} is not finite")
        elif not model.isfinite().all():
            self.simulation.diverge(f"version {version} is not finite")
        elif not isfinite(row.get(ranking, 0.0)):
            self.simulation.diverge(f"{ranking} of version {version} is not finite")
        else:
            return True
        return False

    def _must_rank(self, row: Mapping[str, float], version: int) -> None:
        """Raise KeyError unless the ranking metric was evaluated."""
        ranking = self.simulation.experiment.scenario.problem.metric
        if ranking not in row:
            message = f"{ranking}, by which strategies are ranked, is not evaluated"
            raise KeyError(f"{message} at version {version}: {', '.join(row)}")

    def _compare(self, place: int) -> None:
        """Bring the end of the run forward if the evaluations up to a row meet the budget's target."""
        target, problem = self.simulation.budget.target, self.simulation.experiment.scenario.problem
        row, first = self.record.curve[place], max(0, place + 1 - problem.target_marks)
        if target is None or problem.metric not in row:
            return
        latest = [row.get(problem.metric, nan) for row in self.record.curve[first : place + 1]]
        if first_meeting(latest, target, problem.ranking.sign > 0, problem.target_marks) is not None:
            self.simulation.ends.met(row[TIME])

    def _judged(self, model: Tensor) -> Evaluation:
        """Evaluate a model on the data chosen by `evaluate`."""
        world, writes = self.simulation.world, model._version
        if isinstance(self.evaluate, EvaluationSample):
            evaluation = world.estimate(model, self.evaluate.sample)
        else:
            evaluation = world.evaluate(model) if self.evaluate == "clients" else world.test(model)
        if model._version != writes:
            raise RuntimeError(
                f"{type(world).__name__} writes into the model that it evaluates: use a .clone()"
            )
        return evaluation

    def _metrics(self, evaluation: Evaluation) -> dict[str, float]:
        return metrics(evaluation, self.simulation.world.p, self.surrogate, self.of_clients)

    @cached_property
    def surrogate(self) -> np.ndarray | None:
        """The weights s_i of the surrogate problem [n], computed when first used."""
        return surrogate_weights(self.simulation)

    def _clients(self, end: Evaluation) -> dict[str, list[Any]]:
        """Return the table of clients at the end, as columns: data, staleness, participation, times."""
        world, times = self.simulation.world, self.simulation.server.mean_time
        experiment = self.simulation.experiment
        timing, seed = experiment.scenario.timing, experiment.seed
        table: dict[str, list[Any]] = {
            Name.CLIENT: list(range(world.n)),
            **({Name.DEVICE: ids} if (ids := timing.device_ids(world.n, seed)) else {}),
            Name.IMPORTANCE: world.p.tolist(),
            Name.MEAN_TIME: [float(time) for time in times],
            Name.SIZE: world.sizes.tolist(),
            **({} if end.client_loss is None else {Name.LOSS: end.client_loss.tolist()}),
            **by_client(self.record.arrivals, world.n),
        }
        if self.simulation.transfers or self.simulation.service.server_queue:
            table |= self._phases()
        if (theory := predicted(self.simulation)) is not None:
            table["staleness_predicted"] = theory.tolist()
        for metric in self.of_clients:
            if metric.name in end.client_metrics and metric.short not in table:
                table[metric.short] = end.client_metrics[metric.name].tolist()
        return table

    def _phases(self) -> dict[str, list[float]]:
        """Return each client's virtual time of transfers, computation, and updates at the server."""
        simulation, clock = self.simulation, self.simulation.lengths.clock
        over = simulation.reason == Reason.TIME
        end = int(simulation.ends.deadline) if over else simulation.state.now
        phases: dict[str, list[Any]] = dict(zip(PHASES, simulation.service.spent(end), strict=True))
        if not simulation.transfers:
            phases = {Name.COMPUTATION: phases[Name.COMPUTATION]}
        if simulation.service.server_queue:
            phases |= zip(PHASES_AT_SERVER, simulation.service.spent_at_server(end), strict=True)
        return {phase: [clock.time(t) for t in ticks] for phase, ticks in phases.items()}


def run(
    experiment: Experiment,
    world: World | None = None,
    execution: Execution | None = None,
    watch: Callable[[Recorder], None] | None = None,
    diagnostics: Diagnostics | None = None,
    *,
    evaluate: Evaluate = "clients",
) -> Record:
    """Run an experiment to the end; return the record.

    Args:
        experiment: Scenario, strategy, seed.
        world: Built from the problem if left out.
        execution: What computes jobs; one by one if left out.
        watch: Called after every evaluation.
        diagnostics: What is measured beside the curve.
        evaluate: What is evaluated at marks before the last.
    """
    recorder = Recorder(Simulation(experiment, world), diagnostics, evaluate)
    recorder.start()
    for event in simulate(recorder.simulation, execution):
        if recorder.see(event) and watch is not None:
            watch(recorder)
    return recorder.finish()
