"""Results of a campaign as tables: one line per strategy, and rows for programs."""

from collections.abc import Sequence
from dataclasses import replace
from math import isnan, nan
from statistics import stdev

import pandas as pd

from reports import numbers
from reports.records.studies import RecordedStudy, Sensitivity
from reports.sections.tuning_text import Sensitivities, percent
from reports.tables import UNKNOWN, PageTable, TableEntry


def table(studies: Sequence[RecordedStudy], basins: Sensitivities) -> PageTable:
    """Return one line per strategy of a scenario."""
    parameters = list(dict.fromkeys(parameter.name for study in studies for parameter in study.space))
    measure = studies[0].measure
    tops = [study.best.worth for study in studies if study.best]
    top = measure.text((max if measure.higher else min)(tops, default=nan))
    headings = ["Strategy", measure.heading, "Within 5 %", "Diverged", *parameters, "Importance"]
    lines = [
        (
            TableEntry(study.strategy),
            _objective(study, top),
            _near(basins[study.id]),
            _diverged(study, basins[study.id]),
            *(_best(study, name) for name in parameters),
            _importance(study),
        )
        for study in studies
    ]
    return PageTable(studies[0].scenario, best_frame(studies, basins), headings, lines)


def _objective(study: RecordedStudy, top: str) -> TableEntry:
    if study.best is None:
        return replace(UNKNOWN, detail="no trial is complete")
    text = study.measure.text(study.best.worth)
    detail = "" if isnan(spread := _spread(study)) else f"± {study.measure.text(spread)}"
    return TableEntry(text, detail, study.best.worth, best=text == top)


def _near(basin: Sensitivity) -> TableEntry:
    if isnan(basin.near):
        return UNKNOWN
    return TableEntry(percent(basin.near), "of the space" if basin.of_space else "of trials", basin.near)


def _diverged(study: RecordedStudy, basin: Sensitivity) -> TableEntry:
    lost, counted = len(study.diverged), len(study.counted)
    if not counted:
        return UNKNOWN
    space = f", {percent(basin.diverges)} of the space" if lost and basin.of_space else ""
    return TableEntry(percent(lost / counted), f"({lost} of {counted}{space})", lost / counted)


def _best(study: RecordedStudy, name: str) -> TableEntry:
    parameter = next((parameter for parameter in study.space if parameter.name == name), None)
    if parameter is None or study.best is None:
        return UNKNOWN
    value = study.best.parameters[name]
    distance, edge = parameter.to_edge(value), study.edge(parameter)
    if not parameter.ordered:
        return TableEntry(str(value))
    where = f"({edge} edge, {percent(distance)})" if edge else f"({percent(distance)} to edge)"
    return TableEntry(numbers.short(float(f"{value:.3g}")), "" if isnan(distance) else where, float(value))


def _importance(study: RecordedStudy) -> TableEntry:
    order = sorted(study.importance.items(), key=lambda item: -item[1])
    if not order:
        return UNKNOWN
    first, *others = (f"{name} {percent(share)}" for name, share in order)
    return TableEntry(first, f"({', '.join(others)})" if others else "", order[0][1])


def _spread(study: RecordedStudy) -> float:
    """Return the standard deviation over the seeds of the best trial."""
    return stdev(study.by_seed) if len(study.by_seed) > 1 else nan


def best_frame(studies: Sequence[RecordedStudy], basins: Sensitivities) -> pd.DataFrame:
    """Return one row per study and parameter."""
    return pd.DataFrame(
        {
            "scenario": study.scenario,
            "strategy": study.strategy,
            "objective": study.measure.name,
            "value": study.best.worth if study.best else nan,
            "std over seeds": _spread(study),
            "trials": len(study.counted),
            "seeds": len(study.seeds),
            "diverged trials": len(study.diverged),
            "within 5 %": basins[study.id].near,
            "diverges": basins[study.id].diverges,
            "share of": "space" if basins[study.id].of_space else "trials",
            "parameter": parameter.name,
            "best": study.best.parameters[parameter.name] if study.best else None,
            "low": parameter.choices[0] if parameter.choices else parameter.low,
            "high": parameter.choices[-1] if parameter.choices else parameter.high,
            "to edge": parameter.to_edge(study.best.parameters[parameter.name]) if study.best else nan,
            "edge": study.edge(parameter),
            "importance": study.importance.get(parameter.name, nan),
            "study": study.id,
        }
        for study in studies
        for parameter in study.space
    )


def trials_frame(studies: Sequence[RecordedStudy]) -> pd.DataFrame:
    """Return one row per trial."""
    return pd.DataFrame(
        {
            "scenario": study.scenario,
            "strategy": study.strategy,
            "trial": trial.number,
            "state": str(trial.state),
            "from": trial.origin,
            "objective": trial.worth,
            "diverged seeds": trial.diverged,
            **{f"parameter {name}": value for name, value in trial.parameters.items()},
            "run": trial.id,
        }
        for study in studies
        for trial in study.trials
    )
