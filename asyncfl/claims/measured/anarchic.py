"""How restless a learning curve is once it has climbed (Yang et al., ICML 2022, §E.2)."""

from collections.abc import Sequence

from fl_core.diagnostics.volatility import volatility
from reports.records.runs import RecordedRun


def zigzag(runs: Sequence[RecordedRun]) -> float:
    """Standard deviation of the steps of the accuracy over the second half of a run's evaluations."""
    (run,) = runs
    accuracy = run.files.curve["test/accuracy"].tolist()
    return volatility(accuracy[len(accuracy) // 2 :]).step_std
