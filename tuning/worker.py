"""The driver's side of a worker process, and of the trials that it simulates."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.context import ForkServerContext
from statistics import fmean
from typing import TYPE_CHECKING

from benchmarks.messages import Died
from tuning.computing import Batch, Message, serve
from tuning.ledger import Ledger
from tuning.objective import Curve, Point

if TYPE_CHECKING:
    from optuna import Trial

BY_EVALUATION, BY_SEED = ("median", "hyperband"), ("wilcoxon",)  # pruners, by what they look at


@dataclass
class Pending:
    """A trial that is being simulated."""

    trial: Trial
    run: Future[str | None]  # MLflow's id of it
    curves: list[Curve]  # one a seed
    reported: int = 0  # evaluations, or seeds, that the pruner has seen
    pruned: bool = False
    error: str = ""


@dataclass
class Worker:
    """The driver's side of one worker process."""

    context: ForkServerContext
    ledger: Ledger | None = None  # of what it computes
    pending: list[Pending] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.pipe, theirs = self.context.Pipe()
        self.process = self.context.Process(target=serve, args=(theirs,), daemon=True)
        self.process.start()
        theirs.close()  # so that its death ends the pipe

    def send(self, message: Batch | int) -> None:
        """Let it compute a batch, or stop a trial of it."""
        with suppress(OSError):  # it has died; whoever listens to it will learn that
            self.pipe.send(message)

    def hear(self) -> Message | Died:
        """Its next message; waits for one."""
        try:
            return self.pipe.recv()
        except (EOFError, OSError):
            self.process.join()
            return Died(f"exit code {self.process.exitcode}")

    def end(self) -> None:
        """Kill it: nothing of a trial is kept before its end."""
        self.process.kill()
        self.process.join()
        self.pipe.close()


def is_hopeless(ledger: Ledger, one: Pending) -> bool:
    """Whether the pruner, told what is new, stops the trial."""
    plan = ledger.plan
    if plan.pruner in BY_EVALUATION:
        rows = min(len(curve.points) for curve in one.curves)
        for row in range(max(one.reported, 1), rows):  # the first model is the same for all
            values = [plan.objective.value(curve, curve.points[row]) for curve in one.curves]
            one.trial.report(fmean(values), row)
            one.reported = row + 1
            if one.trial.should_prune():
                return True
    elif plan.pruner in BY_SEED:
        ended = [curve for curve in one.curves if curve.status in ("done", "diverged", "stalled")]
        for seed in range(one.reported, len(ended)):
            one.trial.report(plan.objective.of(ended[seed]), seed)
            one.reported = seed + 1
        return len(ended) < len(one.curves) and one.trial.should_prune()
    return False


def mean_curve(curves: Sequence[Curve]) -> list[tuple[int, float]]:
    """Iteration and metric, means over seeds, as far as all seeds have come."""
    rows: Iterator[tuple[Point, ...]] = zip(*(curve.points for curve in curves), strict=False)
    return [(round(fmean(p.iteration for p in row)), fmean(p.value for p in row)) for row in rows]
