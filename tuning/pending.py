"""Trials that are being simulated: what is known of them so far, and their results."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from math import isfinite
from statistics import fmean
from typing import TYPE_CHECKING

from fl_core.schema import Status, TrialState
from tuning.ledger import AGAIN, RESULT, Ledger, TrialResult
from tuning.objective import Curve, CurvePoint
from tuning.trials_job import Evaluated, SeedEnded

if TYPE_CHECKING:
    from optuna import Trial

BY_EVALUATION, BY_SEED = ("median", "hyperband"), ("wilcoxon",)  # pruners, by what they look at


@dataclass
class Pending:
    """A trial that is being simulated."""

    ledger: Ledger
    trial: Trial
    run: Future[str | None]  # MLflow's id of it
    curves: list[Curve] = field(init=False)  # one a seed
    reported: int = 0  # evaluations, or seeds, that the pruner has seen
    pruned: bool = False
    error: str = ""

    def __post_init__(self) -> None:
        self.curves = [Curve() for _ in self.ledger.seeds(self.trial)]
        # Of an attempt that was interrupted; asked about the last of them, the pruner answers as it did then.
        self._known = self.ledger.trials()[self.trial.number].intermediate_values
        self.reported = max(self._known, default=0)

    def see(self, message: Evaluated | SeedEnded) -> None:
        """Take note of an evaluation, or of the end of a seed, and ask the pruner."""
        curve = self.curves[message.seed]
        if isinstance(message, Evaluated):
            curve.points[message.row :] = [message.point]
        elif message.status is Status.ERROR:
            self.error = message.error
        else:
            curve.status = message.status
            if curve.points and not isfinite(curve.points[0].value):  # against which a diverged seed counts
                self.error = f"{self.ledger.plan.objective.metric.name} of the first model is not finite"
        self.pruned = self.pruned or self._should_prune()

    def _should_prune(self) -> bool:
        """Whether the pruner, given the new values, stops the trial."""
        plan = self.ledger.plan
        if plan.pruner in BY_EVALUATION:
            rows = min(len(curve.points) for curve in self.curves)
            for row in range(max(self.reported, 1), rows):  # the first model is the same for all
                values = [plan.objective.value(curve, curve.points[row]) for curve in self.curves]
                self._report(fmean(values), row)
                self.reported = row + 1
                if self.trial.should_prune():
                    return True
        elif plan.pruner in BY_SEED:
            ended = [curve for curve in self.curves if curve.status.terminated]
            for seed in range(self.reported, len(ended)):
                self._report(plan.objective.of(ended[seed]), seed)
                self.reported = seed + 1
            return len(ended) < len(self.curves) and self.trial.should_prune()
        return False

    def _report(self, value: float, step: int) -> None:
        if step not in self._known:
            self.trial.report(value, step)

    def end(self) -> bool:
        """Record its result in the storage; False if the trial was taken from this process meanwhile."""
        objective, run = self.ledger.plan.objective, self.run.result()
        if self.error:
            return self.ledger.tell(self.trial, TrialState.FAILED, None, TrialResult(error=self.error), run)
        curve = mean_curve(self.curves)
        if self.pruned:
            return self.ledger.tell(self.trial, TrialState.PRUNED, None, TrialResult(curve=curve), run)
        first = self._first()  # a repeated trial's result has the seeds of both
        by_seed = [*first.by_seed, *map(objective.of, self.curves)]
        diverged = first.diverged + sum(curve.diverged for curve in self.curves)
        unreached = first.unreached + sum(not objective.reached(curve) for curve in self.curves)
        measured = [objective.measured(curve) for curve in self.curves]
        result = TrialResult(by_seed, diverged, unreached, measured, curve)
        return self.ledger.tell(self.trial, TrialState.COMPLETE, fmean(by_seed), result, run)

    def _first(self) -> TrialResult:
        """The result of the trial that this one repeats; of none where it repeats none."""
        number = self.trial.user_attrs.get(AGAIN)
        if number is None:
            return TrialResult()
        return TrialResult(**self.ledger.trials()[number].user_attrs[RESULT])


def mean_curve(curves: Sequence[Curve]) -> list[tuple[int, float]]:
    """Iteration and metric, means over seeds, as far as all seeds have come."""
    rows: Iterator[tuple[CurvePoint, ...]] = zip(*(curve.points for curve in curves), strict=False)
    return [(round(fmean(p.iteration for p in row)), fmean(p.value for p in row)) for row in rows]
