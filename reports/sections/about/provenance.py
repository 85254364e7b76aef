"""Provenance: what is needed to reproduce the numbers, and the MLflow runs behind each of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import pandas as pd

from fl_core.schema import TO_TARGET
from fl_core.text import duration, many
from reports.downloads import download
from reports.records.records import RecordedRun, RecordedSuite
from reports.records.summary import time_to_target
from reports.sections.section import Results, Section, Table

NOTE = "Every figure and table links to the runs behind it, which are listed here by scenario."


def section(results: Results) -> Section:
    """Facts shared by the runs, and a table of all of them."""
    suite = results.suite
    runs = [run for scenario, _ in results.scenarios for run in scenario.runs]
    shows = {
        "facts": facts(suite),
        "scenarios": [
            (
                results.place(scenario),
                scenario.label,
                [(run, suite.address(run), duration(run.wall_seconds)) for run in scenario.runs],
            )
            for scenario, _ in results.scenarios
        ],
        "download": download(suite.name, "runs", frame(runs)),
    }
    tables = [Table("runs", frame(runs))] if runs else []
    note = NOTE if runs else ""
    return Section("provenance", "Provenance", "provenance.html.j2", note, shows, tables=tables)


def facts(suite: RecordedSuite) -> list[tuple[str, list[str]]]:
    """Recorded properties with all their values: more than one where runs differ."""
    runs = suite.runs
    # A suite may have only a campaign, whose experiment is a separate one.
    experiment = f"experiment {suite.name} (id {suite.experiment}) at " if suite.experiment else ""
    found = [
        ("MLflow", [f"{experiment}{suite.uri}"]),
        ("Tuning", _campaign(suite)),
        ("asyncfl", _texts(runs, lambda run: run.version)),
        ("Commit", _texts(runs, lambda run: run.commit)),
        ("Libraries", _texts(runs, lambda run: ", ".join(map(" ".join, sorted(run.versions.items()))))),
        ("Own code", _all_values(run.code for run in runs)),
        ("Data", _all_values(run.data for run in runs)),
        ("Execution", _texts(runs, lambda run: run.execution)),
        ("Machine", _texts(runs, lambda run: run.machine)),
        (
            "Computing",
            [f"{duration(sum(run.wall_seconds for run in runs))}, all runs together"] if runs else [],
        ),
        ("Damaged records", list(suite.damaged)),
        ("Unreadable", [f"{run.id}: {run.files.unread}" for run in suite.unread]),
    ]
    return [(name, values) for name, values in found if values]


def _campaign(suite: RecordedSuite) -> list[str]:
    """Where the studies of the suite's campaign are."""
    found = sorted({one.experiment for one in suite.studies})
    return (
        [f"{many(len(suite.studies), 'study')} in the experiment of id {', '.join(found)}"] if found else []
    )


def _texts(runs: Iterable[RecordedRun], of: Callable[[RecordedRun], str]) -> list[str]:
    return sorted({text for run in runs if (text := of(run))})


def _all_values(tables: Iterable[Mapping[str, str]]) -> list[str]:
    """Each name with its values: a digest for every seed where they differ."""
    found: dict[str, dict[str, None]] = {}
    for table in tables:
        for name, value in table.items():
            found.setdefault(name, {})[value] = None
    return [f"{name}: {', '.join(sorted(values))}" for name, values in sorted(found.items())]


def frame(runs: Iterable[RecordedRun]) -> pd.DataFrame:
    """One row per run: identity, status, final metrics."""
    return pd.DataFrame([_record(run) for run in runs])


def _record(run: RecordedRun) -> dict[str, object]:
    curve = run.files.curve
    metrics = {str(name): run.final(name) for name in curve.columns if "/" in str(name) or name == run.metric}
    late = (
        {}
        if run.target is None
        else {f"{clock} to target": time_to_target(run, clock, run.target) for clock in TO_TARGET.values()}
    )
    who = {"scenario": run.scenario, "strategy": run.strategy, "seed": run.seed, "status": str(run.status)}
    return {**who, **metrics, **late, "wall seconds": run.wall_seconds, "run": run.id, "key": run.key}
