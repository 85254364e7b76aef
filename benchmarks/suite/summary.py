"""The hyper-parameters with which the strategies of a suite are tried."""

from collections.abc import Iterator
from typing import Any

from benchmarks.suite import labels
from benchmarks.suite.suite import PlannedRun
from fl_core.parts import Part
from fl_core.strategies.strategy import Strategy


def strategies(runs: list[PlannedRun]) -> tuple[str, list[tuple[str, str]]]:
    """The hyper-parameters that all strategies share, and each label with the others, over the whole grid."""
    tables: dict[str, dict[str, dict[str, None]]] = {}
    for run in runs:
        table = tables.setdefault(run.strategy, {})
        for key, value in _hyper_parameters(run.experiment.strategy):
            table.setdefault(key, {})[value] = None
    every = list(tables.values())
    shared = {k: v for k, v in every[0].items() if all(table.get(k) == v for table in every)}
    own = [(label, {k: v for k, v in table.items() if k not in shared}) for label, table in tables.items()]
    return _listed(shared), [(label, _listed(table)) for label, table in own]


def _listed(table: dict[str, dict[str, None]]) -> str:
    return ", ".join(f"{key} {' | '.join(values)}" for key, values in table.items())


def _hyper_parameters(strategy: Strategy) -> Iterator[tuple[str, str]]:
    """Keys and values in readable order: local work first; what is left open or switched off is left out."""
    fields: dict[str, Any] = strategy.model_dump(mode="json")
    local: dict[str, Any] = fields.pop("local")
    parts = {key: part.label() for key, part in strategy if isinstance(part, Part) and key != "local"}
    work = {"local work": local.pop("name")}
    work |= {f"local {key}": value for key, value in local.items()}
    for key, value in {**work, **fields, **parts}.items():
        if key != "name" and value is not None and value is not False:
            yield key.replace("_", " "), labels.value(value)
