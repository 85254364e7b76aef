"""The metrics of an evaluated model, and the choice of data for evaluations in the course of a run.

The `Recorder` calls `metrics` at every mark. A suite sets `evaluate:` to one of the values of `Evaluate`.

Fixed: names and values, which are recorded, and read by suites, claims and pages.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from fl_core.loop.simulation import Simulation
from fl_core.metrics import Metric, name_fault
from fl_core.parts import Count, Frozen
from fl_core.problems.problem import Evaluation, InvalidProblemError


class EvaluationSample(Frozen):
    """A fixed sample of the clients' data, for estimating training losses."""

    sample: Count  # data points, of each client in proportion to what it holds

    def __str__(self) -> str:
        # Recorded, and compared: a run with another text may be computed again.
        return f"sample of {self.sample}"


# Data for evaluations before the end: the test data; the clients' training data, too; or a sample of these.
Evaluate = Literal["test", "clients"] | EvaluationSample


def metrics(
    evaluation: Evaluation,
    p: np.ndarray,
    surrogate: np.ndarray | None = None,
    of_clients: Sequence[Metric] = (),
) -> dict[str, float]:
    """Return all metrics of an evaluated model.

    fp/loss = Σ p_i L_i and fp/std = (Σ p_i (L_i − fp/loss)²)^½ on the federated problem; sp/* the same with
    the importance s_i that the strategy gives clients when all updates weigh the same (Fraboni et al., JMLR
    2023, eqs. 2, 6 and §5.2.1), where that is known; none of them if there are no losses. If these are
    estimates with standard errors e_i, that of fp/loss is fp/loss_se = (Σ p_i² e_i²)^½, and that of fp/std,
    to first order, fp/std_se = (Σ (p_i (L_i − fp/loss) / fp/std)² e_i²)^½.
    worst_client/* is the worst value over clients of a metric in `of_clients`.

    Raises:
        TypeError: A metric is no number.
        InvalidProblemError: A metric has a name that is reserved or cannot be recorded.
    """
    for name in evaluation.metrics:
        if fault := name_fault(name):
            raise InvalidProblemError(f"metric {fault}")
    values = {name: _number(name, value) for name, value in evaluation.metrics.items()}
    losses = evaluation.client_loss
    if losses is not None:
        importances = {"fp": p} if surrogate is None else {"fp": p, "sp": surrogate}
        for prefix, weights in importances.items():
            loss = float(weights @ losses)
            values[f"{prefix}/loss"] = loss
            spread = losses - loss if np.isfinite(loss) else np.full_like(weights, np.nan)
            values[f"{prefix}/std"] = std = float(np.sqrt(weights @ spread**2))
            if (errors := evaluation.client_error) is not None:
                values[f"{prefix}/loss_se"] = float(np.linalg.norm(weights * errors))
                slopes = weights * spread / std if std > 0 else weights
                values[f"{prefix}/std_se"] = float(np.linalg.norm(slopes * errors))
    for metric in of_clients:
        if metric.name in evaluation.client_metrics and metric.higher is not None:
            values[metric.worst_client.name] = metric.worst(evaluation.client_metrics[metric.name])
    return values


def _number(metric: str, value: Any) -> float:
    """Return a metric's value as a float; raise TypeError if it is no number."""
    try:
        return float(value)
    except (TypeError, ValueError):
        raise TypeError(f"{metric} must be evaluated to a number, not {value!r}") from None


def surrogate_weights(simulation: Simulation) -> np.ndarray | None:
    """Return s_i [n], of sum 1 (Fraboni et al., JMLR 2023, eq. 6); None where no formula is known."""
    participation = simulation.experiment.participation
    if participation is None:
        return None
    share = np.asarray(participation(simulation.server), float)
    return share / share.sum()
