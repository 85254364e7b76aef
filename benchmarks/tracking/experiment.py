"""A suite as MLflow holds it: the index of its runs and groups."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from benchmarks.tracking.entries import ALL, Made
from fl_core.sources import digests

if TYPE_CHECKING:
    from mlflow.entities import Run

PARENT, COLOUR, OF = "mlflow.parentRunId", "mlflow.runColor", "asyncfl.mean_of"  # tags

Place = tuple[str, str, str]  # scenario, strategy, seed: runs equal in these look alike
Pair = tuple[str, str]  # scenario, strategy: a group


class MlflowStatus(StrEnum):
    """MLflow's status of a run."""

    RUNNING = "RUNNING"  # until all of it is written
    FINISHED = "FINISHED"
    FAILED = "FAILED"


@dataclass(slots=True)
class KnownRun:
    """A run that is in MLflow already."""

    id: str
    status: str  # MLflow's
    began: int
    place: Place
    superseded: bool
    parent: str  # the group's id; empty for a baseline
    made: Made

    @classmethod
    def of_run(cls, run: Run) -> KnownRun:
        """What MLflow says of a run."""
        tags, info = run.data.tags, run.info
        scenario, strategy, seed = (
            tags.get(f"asyncfl.{name}", "") for name in ("scenario", "strategy", "seed")
        )
        return cls(
            info.run_id,
            info.status,
            info.start_time,
            (scenario, strategy, seed),
            "asyncfl.superseded" in tags,
            tags.get(PARENT, ""),
            Made(tags.get("asyncfl.evaluate", ALL), _code(tags.get("asyncfl.code", "{}"))),
        )


def _code(tag: str) -> dict[str, str]:
    """Digests of the user's classes; none if the tag was damaged, so that the run is made again."""
    try:
        return digests(json.loads(tag))
    except (ValueError, AttributeError):  # not JSON, or no object of texts
        return {}


@dataclass(slots=True)
class Group:
    """The parent of a strategy's seeds in a scenario."""

    id: str
    of: str  # ids of the runs that its curve is the mean of; empty as long as it has none
    finished: bool  # whether all of that is written
    colour: str  # in charts

    @classmethod
    def of_run(cls, run: Run) -> Group:
        """What MLflow says of the run."""
        tags, info = run.data.tags, run.info
        return cls(info.run_id, tags.get(OF, ""), info.status == MlflowStatus.FINISHED, tags.get(COLOUR, ""))


@dataclass(slots=True)
class TrackedExperiment:
    """A suite in MLflow, and what is in it."""

    id: str
    name: str
    tags: dict[str, str] = field(default_factory=dict)
    runs: dict[str, KnownRun] = field(default_factory=dict)  # by key
    groups: dict[Pair, Group] = field(default_factory=dict)
    meant: dict[Pair, set[str]] = field(default_factory=dict)  # the keys of each group's seeds
    report: str = ""  # id of the run that holds the page

    def add(self, run: Run) -> None:
        """Take note of a run of MLflow's."""
        tags = run.data.tags
        if tags.get("asyncfl.kind") == "group":
            pair = tags["asyncfl.scenario"], tags["asyncfl.strategy"]
            self.groups[pair] = Group.of_run(run)
        elif tags.get("asyncfl.kind") == "report":
            self.report = run.info.run_id
        elif "asyncfl.key" in tags:
            self.runs[tags["asyncfl.key"]] = KnownRun.of_run(run)
