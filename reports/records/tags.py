"""Runs from the tags and parameters that MLflow holds of them; what need not be there may be invalid."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fl_core.metrics import from_text
from fl_core.schema import Status
from reports.records.records import RecordedRun
from reports.records.values import clean, moment, number, table


def read_run(
    info: Any, tags: Mapping[str, str], params: Mapping[str, str], metrics: Mapping[str, float]
) -> RecordedRun:
    """A run from what MLflow says of it; files come later."""

    def tag(name: str, otherwise: str = "") -> str:
        return clean(tags.get(f"asyncfl.{name}", "")) or otherwise

    return RecordedRun(
        id=info.run_id,
        key=tag("key"),
        scenario=tag("scenario"),
        problem=tag("problem"),
        partition=tag("partition"),
        timing=tag("timing"),
        strategy=tag("strategy"),
        paper=tag("paper"),
        seed=int(tag("seed")),
        status=Status(tag("status")),
        reason=tag("reason"),
        metric=tag("metric"),
        higher_is_better=tag("higher_is_better", "true").lower() != "false",
        target=number(tag("target")),
        show=tuple(name for part in tag("show").split(",") if (name := part.strip())),
        params={name: clean(value) for name, value in params.items()},
        totals=dict(metrics),
        started=moment(info.start_time),
        ended=moment(info.end_time),
        wall_seconds=number(tag("wall_seconds")) or 0.0,
        version=tag("version"),
        commit=tag("commit"),
        versions=table(tag("versions")),
        data=table(tag("data")),
        code=table(tag("code")),
        execution=tag("execution"),
        machine=tag("machine"),
        superseded=bool(tag("superseded")),
        metrics=from_text(tag("metrics")),
    )
