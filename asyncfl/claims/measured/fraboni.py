"""Share of rates and local steps that are of no use (Fraboni et al., JMLR 2023, Figs. 4 to 7)."""

import math
from collections.abc import Sequence

from fl_core.metrics import FP_LOSS
from reports.records.runs import RecordedRun


def unusable_share(runs: Sequence[RecordedRun]) -> float:
    """Share of recorded runs, one per pair of η_l and K, that diverge or end above twice their best loss."""
    finals = [float(run.files.curve[FP_LOSS][-1]) if run.status.finite else math.inf for run in runs]
    return sum(final > 2 * min(finals) for final in finals) / len(finals)
