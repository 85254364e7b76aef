"""The strategies: description, paper, and the hyper-parameters of the runs."""

from __future__ import annotations

from fl_core.schema import OF_STRATEGY, STRATEGY_NAME
from fl_core.text import natural
from reports.records.records import RecordedRun
from reports.sections.section import Results, Section


def section(results: Results) -> Section:
    """One entry per strategy; common hyper-parameters are listed once, above."""
    suite = results.suite
    runs = {name: [run for run in suite.runs if run.strategy == name] for name in suite.strategies}
    found = {name: settings(of) for name, of in runs.items()}
    common = set.intersection(*(set(of) for of in found.values())) if len(found) > 1 else set()
    entries = [
        {
            "index": results.index[name],
            "strategy": name,
            "papers": list(dict.fromkeys(run.paper for run in runs[name] if run.paper)),
            "settings": [one for one in found[name] if one not in common],
        }
        for name in results.order
    ]
    shared = ", ".join(f"{name} {value}" for name, value in sorted(common))
    note = f"All of them ran with {shared}." if shared else ""
    return Section("strategies", "Strategies", "methods.html.j2", note, {"entries": entries})


def settings(runs: list[RecordedRun]) -> list[tuple[str, str]]:
    """The hyper-parameters of a strategy; all values of one that changes from scenario to scenario."""
    found: dict[str, set[str]] = {}
    for run in runs:
        for name, value in run.params.items():
            if name.startswith(OF_STRATEGY) and name != STRATEGY_NAME and value not in {"None", ""}:
                found.setdefault(name.removeprefix(OF_STRATEGY), set()).add(value)
    return [(name, " | ".join(sorted(found[name], key=natural))) for name in sorted(found, key=natural)]
