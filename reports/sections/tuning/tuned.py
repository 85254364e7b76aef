"""Results of a campaign as tables: one line per strategy, and rows for programs."""

from __future__ import annotations

from collections.abc import Sequence
from math import isnan, nan
from statistics import stdev

import pandas as pd

from reports import numbers
from reports.records.studies import RecordedStudy
from reports.sections.section import Table
from reports.sections.tuning.text import Found, percent
from reports.statistics.ranking import RankingEntry
from reports.statistics.sensitivity import Sensitivity


def table(studies: Sequence[RecordedStudy], found: Found) -> Table:
    """One line per strategy."""
    parameters = list(dict.fromkeys(one.name for study in studies for one in study.space))
    measure = studies[0].measure
    tops = [study.best.worth for study in studies if study.best]
    top = (max if measure.higher else min)(tops, default=nan)
    headings = ["Strategy", measure.heading, "Within 5 %", "Diverged", *parameters, "Importance"]
    lines = [
        (
            RankingEntry(study.strategy),
            _objective(study, measure.text(top)),
            _near(found[study.id]),
            _diverged(study, found[study.id]),
            *(_best(study, name) for name in parameters),
            _importance(study),
        )
        for study in studies
    ]
    return Table(studies[0].scenario, best_frame(studies, found), headings, lines)


def _objective(study: RecordedStudy, top: str) -> RankingEntry:
    if study.best is None:
        return RankingEntry(numbers.MISSING, "no trial is complete", nan)
    text = study.measure.text(study.best.worth)
    spread = stdev(study.by_seed) if len(study.by_seed) > 1 else nan
    detail = "" if isnan(spread) else f"± {study.measure.text(spread)}"
    return RankingEntry(text, detail, study.best.worth, best=text == top)


def _near(found: Sensitivity) -> RankingEntry:
    if isnan(found.near):
        return RankingEntry(numbers.MISSING, value=nan)
    return RankingEntry(percent(found.near), "of the space" if found.of_space else "of trials", found.near)


def _diverged(study: RecordedStudy, found: Sensitivity) -> RankingEntry:
    lost, of = len(study.diverged), len(study.counted)
    if not of:
        return RankingEntry(numbers.MISSING, value=nan)
    space = f", {percent(found.diverges)} of the space" if lost and found.of_space else ""
    return RankingEntry(percent(lost / of), f"({lost} of {of}{space})", lost / of)


def _best(study: RecordedStudy, name: str) -> RankingEntry:
    parameter = next((one for one in study.space if one.name == name), None)
    if parameter is None or study.best is None:
        return RankingEntry(numbers.MISSING, value=nan)
    value = study.best.parameters[name]
    distance, edge = parameter.to_edge(value), study.edge(parameter)
    if not parameter.ordered:
        return RankingEntry(str(value))
    where = f"({edge} edge, {percent(distance)})" if edge else f"({percent(distance)} to edge)"
    return RankingEntry(numbers.short(float(f"{value:.3g}")), "" if isnan(distance) else where, float(value))


def _importance(study: RecordedStudy) -> RankingEntry:
    order = sorted(study.importance.items(), key=lambda one: -one[1])
    if not order:
        return RankingEntry(numbers.MISSING, value=nan)
    first, *others = (f"{name} {percent(share)}" for name, share in order)
    return RankingEntry(first, f"({', '.join(others)})" if others else "", order[0][1])


def best_frame(studies: Sequence[RecordedStudy], found: Found) -> pd.DataFrame:
    """One row per study and parameter."""
    return pd.DataFrame(
        {
            "scenario": study.scenario,
            "strategy": study.strategy,
            "objective": study.measure.name,
            "value": study.best.worth if study.best else nan,
            "std over seeds": stdev(study.by_seed) if len(study.by_seed) > 1 else nan,
            "trials": len(study.counted),
            "seeds": len(study.seeds),
            "diverged trials": len(study.diverged),
            "within 5 %": found[study.id].near,
            "diverges": found[study.id].diverges,
            "share of": "space" if found[study.id].of_space else "trials",
            "parameter": one.name,
            "best": study.best.parameters[one.name] if study.best else None,
            "low": one.choices[0] if one.choices else one.low,
            "high": one.choices[-1] if one.choices else one.high,
            "to edge": one.to_edge(study.best.parameters[one.name]) if study.best else nan,
            "edge": study.edge(one),
            "importance": study.importance.get(one.name, nan),
            "study": study.id,
        }
        for study in studies
        for one in study.space
    )


def trials_frame(studies: Sequence[RecordedStudy]) -> pd.DataFrame:
    """One row per trial."""
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
