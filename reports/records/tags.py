"""Runs from the tags and parameters that MLflow holds of them; what is odd is taken as not said."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import numpy as np

from fl_core.metrics import Metric, from_data
from reports.records.records import Run


def read_run(
    info: Any, tags: Mapping[str, str], params: Mapping[str, str], metrics: Mapping[str, float]
) -> Run:
    """A run from what MLflow says of it; files come later."""

    def tag(name: str, otherwise: str = "") -> str:
        return clean(tags.get(f"asyncfl.{name}", "")) or otherwise

    return Run(
        id=info.run_id,
        key=tag("key"),
        scenario=tag("scenario", "(unnamed scenario)"),
        problem=tag("problem"),
        partition=tag("partition"),
        timing=tag("timing"),
        strategy=tag("strategy", "(unnamed strategy)"),
        paper=tag("paper"),
        seed=int(_number(tag("seed")) or 0),
        status=tag("status", "running"),
        reason=tag("reason"),
        metric=tag("metric", "test/accuracy"),
        higher_is_better=tag("higher_is_better", "true").lower() != "false",
        target=_number(tag("target")),
        show=tuple(name for part in tag("show").split(",") if (name := part.strip())),
        params={name: clean(value) for name, value in params.items()},
        totals=dict(metrics),
        started=_moment(info.start_time),
        ended=_moment(info.end_time),
        wall_seconds=_number(tag("wall_seconds")) or 0.0,
        version=tag("version"),
        commit=tag("commit"),
        versions=_table(tag("versions")),
        data=_table(tag("data")),
        execution=tag("execution"),
        machine=tag("machine"),
        superseded=bool(tag("superseded")),
        metrics=declared(tag("metrics")),
    )


def clean(text: str) -> str:
    """A text without what neither HTML nor XML can hold, and without what cannot be seen."""
    return re.sub(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]+", " ", text).strip()


def declared(text: str) -> tuple[Metric, ...]:
    """The metrics that a tag declares; none where it is not there."""
    try:
        return from_data(json.loads(text or "[]"))
    except (TypeError, ValueError):
        return ()


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if np.isfinite(value) else None


def _table(text: str) -> dict[str, str]:
    """A JSON object as names and texts; empty if it is none."""
    try:
        found = json.loads(text or "{}")
    except ValueError:
        return {}
    return {str(key): str(value) for key, value in found.items()} if isinstance(found, dict) else {}


def _moment(milliseconds: int | None) -> datetime | None:
    return None if not milliseconds else datetime.fromtimestamp(milliseconds / 1000, UTC)
