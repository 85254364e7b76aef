"""Runs from the tags and parameters that MLflow holds of them; invalid values count as absent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reports.records.records import RecordedRun
from reports.records.values import clean, declared, moment, number, table


def read_run(
    info: Any, tags: Mapping[str, str], params: Mapping[str, str], metrics: Mapping[str, float]
) -> RecordedRun:
    """A run from what MLflow says of it; files come later."""

    def tag(name: str, otherwise: str = "") -> str:
        return clean(tags.get(f"asyncfl.{name}", "")) or otherwise

    return RecordedRun(
        id=info.run_id,
        key=tag("key"),
        scenario=tag("scenario", "(unnamed scenario)"),
        problem=tag("problem"),
        partition=tag("partition"),
        timing=tag("timing"),
        strategy=tag("strategy", "(unnamed strategy)"),
        paper=tag("paper"),
        seed=int(number(tag("seed")) or 0),
        status=tag("status", "running"),
        reason=tag("reason"),
        metric=tag("metric", "test/accuracy"),
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
        metrics=declared(tag("metrics")),
    )
