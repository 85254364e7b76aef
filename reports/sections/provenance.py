"""Sections on provenance: strategies with hyper-parameters, errata, and the MLflow runs behind each number.

`reports/page.py` calls `strategies`, `errata` and `section`.
"""

from collections.abc import Iterable, Mapping

from benchmarks.discrepancies import discrepancies
from benchmarks.mlflow_store.run_result import RunResult
from fl_core.recorded_names import JOINT, OF_STRATEGY, STRATEGY_NAME
from fl_core.text import duration, many, natural
from reports.records.records import RecordedSuite
from reports.sections.section import Results, Section
from reports.tables import PageTable, download

ERRATA_NOTE = (
    "Where a paper's text and its published code disagree, as far as this suite uses it: both readings, and "
    "which one is the default here. All of them: asyncfl list errata."
)
NOTE = "Every figure and table links to the runs behind it, which are listed here by scenario."
LOCAL_NOTE = "Links to MLflow open while asyncfl ui serves the store."


def strategies(results: Results) -> Section:
    """Return the section with an entry per strategy; common hyper-parameters are listed once, above."""
    suite = results.suite
    runs: dict[str, list[RunResult]] = {name: [] for name in suite.strategies}
    for run in suite.runs:
        runs[run.strategy].append(run)
    values = {name: hyperparameters(strategy_runs) for name, strategy_runs in runs.items()}
    common = set.intersection(*map(set, values.values())) if len(values) > 1 else set()
    entries = [
        {
            "index": results.index[name],
            "strategy": name,
            "papers": list(dict.fromkeys(run.paper for run in runs[name] if run.paper)),
            "settings": [setting for setting in values[name] if setting not in common],
        }
        for name in results.order
    ]
    shared = ", ".join(f"{name} {value}" for name, value in sorted(common))
    note = f"All of them ran with {shared}." if shared else ""
    return Section("strategies", "Strategies", "methods.html.j2", note, {"entries": entries})


def hyperparameters(runs: list[RunResult]) -> list[tuple[str, str]]:
    """Return the hyper-parameters of a strategy, with all values where scenarios differ."""
    names = set().union(*(run.params for run in runs)) - {STRATEGY_NAME}
    values = {
        name.removeprefix(OF_STRATEGY): {run.params.get(name, "") for run in runs} - {"None", ""}
        for name in names
        if name.startswith(OF_STRATEGY)
    }
    given = sorted((name for name in values if values[name]), key=natural)
    return [(name, " | ".join(sorted(values[name], key=natural))) for name in given]


def errata(results: Results) -> Section | None:
    """Return the section with the errata concerning the suite; None without any."""
    # Runs of a pair and a commit differ in seeds alone, on which errata do not depend
    runs = {(run.pair, run.commit, run.show): run for run in results.suite.runs}.values()
    entries = [
        entry for entry in discrepancies() if any(entry.concerns(run.params, run.show) for run in runs)
    ]
    if not entries:
        return None
    return Section("errata", "Errata", "errata.html.j2", ERRATA_NOTE, {"entries": entries})


def section(results: Results) -> Section:
    """Return the section with facts shared by the runs and a table of all runs."""
    suite = results.suite
    scenarios = [
        (
            scenario.place,
            scenario.label,
            [_row(run, suite) for run in scenario.runs],
        )
        for scenario in results.scenarios
    ]
    experiments = dict.fromkeys([suite.experiment, *(study.experiment for study in suite.studies)])
    opened = [(id_, suite.runs_address(id_)) for id_ in experiments if id_]
    shows = {"facts": facts(suite), "scenarios": scenarios, "experiments": opened}
    note, tables, links = "", [], []
    if scenarios:
        note = NOTE if suite.on_server else f"{NOTE} {LOCAL_NOTE}"
        table = results.runs.assign(run=results.runs["key"].map({run.key: run.run_id for run in suite.runs}))
        tables = [PageTable("runs", table)]
        links = [download("All runs", suite.name, "runs", table)]
    title, template = "Provenance", "provenance.html.j2"
    return Section("provenance", title, template, note, shows, tables=tables, downloads=links)


def _row(run: RunResult, suite: RecordedSuite) -> tuple[object, ...]:
    """Return the columns of a run in the table of runs; the last is the address of the run in MLflow."""
    columns = run.strategy, run.seed, run.status, run.reason, run.seconds, duration(run.seconds), run.run_id
    return *columns, suite.address(run.run_id)


def facts(suite: RecordedSuite) -> list[tuple[str, list[str]]]:
    """Return recorded properties with all values, several where runs differ."""
    runs = suite.runs
    libraries = {frozenset(run.versions.items()) for run in runs}
    # A suite may have only a campaign, whose experiment is a separate one.
    experiment = f"experiment {suite.name} (id {suite.experiment}) at " if suite.experiment else ""
    campaigns = ", ".join(sorted({study.experiment for study in suite.studies}))
    tuning = f"{many(len(suite.studies), 'study')} in the experiment of id {campaigns}" if campaigns else ""
    wall = f"{duration(sum(run.seconds for run in runs))}, all runs together" if runs else ""
    properties = {
        "MLflow": [f"{experiment}{suite.uri}"],
        "Tuning": [tuning],
        "Scenarios": _described(suite),
        "asyncfl": sorted({run.version for run in runs}),
        "Commit": sorted({run.commit for run in runs}),
        "Libraries": sorted(", ".join(map(" ".join, sorted(versions))) for versions in libraries),
        "Own code": _all_values(run.code for run in runs),
        "Data": _all_values(run.data for run in runs),
        "Execution": sorted({run.execution for run in runs}),
        "Machine": sorted({run.machine for run in runs}),
        "Computing": [wall],
        "Damaged records": list(suite.damaged),
        "Unreadable": [f"{run.run_id}: {run.files.unread}" for run in suite.unread],
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
