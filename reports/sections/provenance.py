"""Provenance: facts to reproduce the numbers, and the MLflow runs behind each number."""

from collections.abc import Iterable, Mapping

import pandas as pd

from fl_core.schema import JOINT, TO_TARGET
from fl_core.text import duration, many
from reports.records.records import RecordedSuite
from reports.records.runs import RecordedRun
from reports.sections.section import Results, Section
from reports.tables import PageTable, download

NOTE = "Every figure and table links to the runs behind it, which are listed here by scenario."
LOCAL_NOTE = "Links to MLflow open while asyncfl ui serves the store."


def section(results: Results) -> Section:
    """Return the section with facts shared by the runs and a table of all runs."""
    suite = results.suite
    table = frame(run for scenario in results.scenarios for run in scenario.runs)
    scenarios = [
        (
            scenario.place,
            scenario.label,
            [(run, suite.address(run.id), duration(run.wall_seconds)) for run in scenario.runs],
        )
        for scenario in results.scenarios
    ]
    experiments = dict.fromkeys([suite.experiment, *(study.experiment for study in suite.studies)])
    opened = [(id_, suite.runs_address(id_)) for id_ in experiments if id_]
    shows = {"facts": facts(suite), "scenarios": scenarios, "experiments": opened}
    note, tables, links = "", [], []
    if scenarios:
        note, tables = NOTE if suite.on_server else f"{NOTE} {LOCAL_NOTE}", [PageTable("runs", table)]
        links = [download("All runs", suite.name, "runs", table)]
    title, template = "Provenance", "provenance.html.j2"
    return Section("provenance", title, template, note, shows, tables=tables, downloads=links)


def facts(suite: RecordedSuite) -> list[tuple[str, list[str]]]:
    """Return recorded properties with all values, several where runs differ."""
    runs = suite.runs
    # A suite may have only a campaign, whose experiment is a separate one.
    experiment = f"experiment {suite.name} (id {suite.experiment}) at " if suite.experiment else ""
    campaigns = ", ".join(sorted({study.experiment for study in suite.studies}))
    tuning = f"{many(len(suite.studies), 'study')} in the experiment of id {campaigns}" if campaigns else ""
    wall = f"{duration(sum(run.wall_seconds for run in runs))}, all runs together" if runs else ""
    properties = {
        "MLflow": [f"{experiment}{suite.uri}"],
        "Tuning": [tuning],
        "Scenarios": _described(suite),
        "asyncfl": sorted({run.version for run in runs}),
        "Commit": sorted({run.commit for run in runs}),
        "Libraries": sorted({", ".join(map(" ".join, sorted(run.versions.items()))) for run in runs}),
        "Own code": _all_values(run.code for run in runs),
        "Data": _all_values(run.data for run in runs),
        "Execution": sorted({run.execution for run in runs}),
        "Machine": sorted({run.machine for run in runs}),
        "Computing": [wall],
        "Damaged records": list(suite.damaged),
        "Unreadable": [f"{run.id}: {run.files.unread}" for run in suite.unread],
    }
    recorded = {name: list(filter(None, values)) for name, values in properties.items()}
    return [(name, values) for name, values in recorded.items() if values]


def _described(suite: RecordedSuite) -> list[str]:
    """Return the conditions of scenarios with a label of the suite's own."""
    descriptions = {run.scenario: JOINT.join(run.conditions) for run in suite.runs if run.conditions}
    return [f"{label}: {conditions}" for label, conditions in descriptions.items() if label != conditions]


def _all_values(tables: Iterable[Mapping[str, str]]) -> list[str]:
    """Return each name with all values: a digest for every seed where seeds differ."""
    values: dict[str, set[str]] = {}
    for table in tables:
        for name, value in table.items():
            values.setdefault(name, set()).add(value)
    return [f"{name}: {', '.join(sorted(values[name]))}" for name in sorted(values)]


def frame(runs: Iterable[RecordedRun]) -> pd.DataFrame:
    """Return a table with a row per run: identity, status, final metrics."""
    rows = []
    for run in runs:
        reads = run.target is not None
        clocks = [clock for clock in TO_TARGET.values() if reads and clock in run.files.curve]
        rows.append(
            {
                "scenario": run.scenario,
                "strategy": run.strategy,
                "seed": run.seed,
                "status": str(run.status),
                **{name: run.final(name) for name in run.files.curve if "/" in name or name == run.metric},
                **{f"{clock} to target": run.time_to_target(clock, run.target) for clock in clocks},
                "wall seconds": run.wall_seconds,
                "run": run.id,
                "key": run.key,
            }
        )
    return pd.DataFrame(rows)
