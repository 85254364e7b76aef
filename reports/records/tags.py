"""Runs from the tags and parameters that MLflow holds of them; what need not be there may be invalid."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fl_core.metrics import from_text
from fl_core.schema import Status, Tag
from reports.records.records import RecordedRun
from reports.records.values import clean, moment, number, table


def read_run(
    info: Any, tags: Mapping[str, str], params: Mapping[str, str], metrics: Mapping[str, float]
) -> RecordedRun:
    """Return a run from what MLflow says of it; files come later."""

    def read(tag: Tag, otherwise: str = "") -> str:
        return clean(tags.get(tag, "")) or otherwise

    return RecordedRun(
        id=info.run_id,
        key=read(Tag.KEY),
        scenario=read(Tag.SCENARIO),
        problem=read(Tag.PROBLEM),
        partition=read(Tag.PARTITION),
        timing=read(Tag.TIMING),
        strategy=read(Tag.STRATEGY),
        paper=read(Tag.PAPER),
        seed=int(read(Tag.SEED)),
        status=Status(read(Tag.STATUS)),
        reason=read(Tag.REASON),
        metric=read(Tag.METRIC),
        higher_is_better=read(Tag.HIGHER_IS_BETTER, "true").lower() != "false",
        target=number(read(Tag.TARGET)),
        show=tuple(name for part in read(Tag.SHOW).split(",") if (name := part.strip())),
        params={name: clean(value) for name, value in params.items()},
        totals=dict(metrics),
        started=moment(info.start_time),
        ended=moment(info.end_time),
        wall_seconds=number(read(Tag.WALL_SECONDS)) or 0.0,
        version=read(Tag.VERSION),
        commit=read(Tag.COMMIT),
        versions=table(read(Tag.VERSIONS)),
        data=table(read(Tag.DATA)),
        code=table(read(Tag.CODE)),
        execution=read(Tag.EXECUTION),
        machine=read(Tag.MACHINE),
        superseded=bool(read(Tag.SUPERSEDED)),
        metrics=from_text(read(Tag.METRICS)),
    )
