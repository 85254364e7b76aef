"""ACE's memory overhead (arXiv 2511.19066, 2025, appendix F.3.3)."""

from collections.abc import Sequence

from fl_core.schema import Total
from reports.records.runs import RecordedRun


def kept_bytes(runs: Sequence[RecordedRun]) -> float:
    """Bytes kept at the end, at the server and at the clients, where ACE's incremental form has its cache."""
    (run,) = runs
    return run.totals[Total.KEPT_BY_SERVER] + run.totals[Total.KEPT_BY_CLIENTS]
