"""Strategies with papers and hyper-parameters; discrepancies between a paper's text and published code."""

from benchmarks.discrepancies import discrepancies
from fl_core.schema import OF_STRATEGY, STRATEGY_NAME
from fl_core.text import natural
from reports.records.runs import RecordedRun
from reports.sections.section import Results, Section

NOTE = (
    "Where a paper's text and its published code disagree, as far as this suite uses it: both readings, and "
    "which one is the default here. All of them: asyncfl list errata."
)


def strategies(results: Results) -> Section:
    """Return the section with an entry per strategy; common hyper-parameters are listed once, above."""
    suite = results.suite
    runs = {name: [run for run in suite.runs if run.strategy == name] for name in suite.strategies}
    values = {name: settings(strategy_runs) for name, strategy_runs in runs.items()}
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


def settings(runs: list[RecordedRun]) -> list[tuple[str, str]]:
    """Return the hyper-parameters of a strategy, with all values where scenarios differ."""
    values: dict[str, set[str]] = {}
    for run in runs:
        for name, value in run.params.items():
            if name.startswith(OF_STRATEGY) and name != STRATEGY_NAME and value not in {"None", ""}:
                values.setdefault(name.removeprefix(OF_STRATEGY), set()).add(value)
    return [(name, " | ".join(sorted(values[name], key=natural))) for name in sorted(values, key=natural)]


def errata(results: Results) -> Section | None:
    """Return the section with the errata concerning the suite; None without any."""
    runs = {(*run.params.items(), run.show): run for run in results.suite.runs}.values()
    entries = [
        entry for entry in discrepancies() if any(entry.concerns(run.params, run.show) for run in runs)
    ]
    if not entries:
        return None
    return Section("errata", "Errata", "errata.html.j2", NOTE, {"entries": entries})
