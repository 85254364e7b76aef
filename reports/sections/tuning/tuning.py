"""Tuning: trials and results of a suite's campaign, and which strategies need tuning most."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import isnan
from typing import Any

from fl_core.text import natural
from reports.downloads import download
from reports.figures import look
from reports.records.records import RecordedSuite
from reports.records.studies import RecordedStudy, Trial
from reports.sections.section import Results, Section, Table
from reports.sections.tuning.best_so_far import history
from reports.sections.tuning.landscapes import landscape
from reports.sections.tuning.objectives import Amounts
from reports.sections.tuning.text import Found, at_edges, leads, remarks, shares
from reports.sections.tuning.tuned import best_frame, table, trials_frame
from reports.statistics.sensitivity import POINTS, sensitivity

NOTE = (
    "Circles: trials, the stronger the colour, the better; ringed: within 5 % of the best. ★ the best, □ the "
    "suite’s own values and the paper’s, ✕ a seed diverged, ▽ pruned. One colour scale per scenario"
    "{error}. "
    "Under the best values: how far they lie from the nearest end of what was searched, as a share of its "
    "range, on a log scale where it was searched on one. Objective: mean ± standard deviation over the seeds "
    "of the best trial."
)
BY_TRIALS = "the share of trials"
BY_SPACE = (
    f"the share of the space, estimated from {POINTS:,} points spread evenly over it (a Halton sequence; "
    "rates by their logarithms), each of which takes the result of the trial nearest to it"
)


def section(results: Results) -> Section | None:
    """One block per scenario: a table, one landscape per strategy, and the history of all."""
    studies = results.suite.studies
    if not any(study.trials for study in studies):
        return None
    found = {study.id: sensitivity(study) for study in studies}
    index = indices(results)
    blocks = [_block(of, index, found) for of in by_scenario(studies)]
    everything = trials_frame(studies)
    shows = {
        "leads": leads(studies, found),
        "shares": shares(results.suite),
        "remarks": remarks(results.suite),
        "blocks": blocks,
        "address": _addresses(results.suite),
        "trials": download(results.suite.name, "trials", everything),
        "best": download(results.suite.name, "tuned", best_frame(studies, found)),
    }
    figures = [
        (f"{study.strategy} {block['title']}", drawing)
        for block in blocks
        for study, drawing, _ in block["cards"]
    ]
    figures += [(f"history {block['title']}", block["history"]) for block in blocks]
    tables = [
        Table("trials", everything),
        Table("best", best_frame(studies, found)),
        *(block["table"] for block in blocks),
    ]
    return Section(
        "tuning",
        "Tuning",
        "tuning.html.j2",
        _note(found, any(block["error"] for block in blocks)),
        shows,
        figures,
        tables,
    )


def indices(results: Results) -> dict[str, int]:
    """Colours: those that the suite's runs have, and further ones for strategies that were only tuned."""
    tuned = sorted({study.strategy for study in results.suite.studies}, key=natural)
    order = [*results.index, *(name for name in tuned if name not in results.index)]
    first = 0 if len(order) <= len(look.LIGHT) else look.QUIET
    return {name: results.index.get(name, first + at) for at, name in enumerate(order)}


def by_scenario(studies: Sequence[RecordedStudy]) -> list[list[RecordedStudy]]:
    """Studies with the same objective in the same scenario, in alphabetical order."""
    groups: dict[tuple[str, str, str], list[RecordedStudy]] = {}
    for study in sorted(studies, key=lambda one: (natural(one.scenario), natural(one.strategy))):
        if study.trials:
            groups.setdefault((study.scenario, study.objective, study.measure.title), []).append(study)
    return list(groups.values())


def _block(studies: Sequence[RecordedStudy], index: Mapping[str, int], found: Found) -> dict[str, Any]:
    shown = [study for study in studies if study.judged and study.space]
    amounts = Amounts.of(studies)
    return {
        "title": studies[0].scenario,
        "table": table(studies, found),
        "edges": at_edges(studies),
        "error": amounts.scale.kind == "error",
        "cards": [(one, landscape(one, index[one.strategy], amounts), index[one.strategy]) for one in shown],
        "history": history(studies, [index[one.strategy] for one in studies]),
        "legend": [(index[one.strategy], one.strategy) for one in studies],
        "studies": studies,
    }


def _note(found: Found, error: bool) -> str:
    note = NOTE.format(error=", by the logarithm of the error" if error else "")
    ways = {one.of_space for one in found.values() if not isnan(one.near)}
    said = {frozenset([True]): BY_SPACE, frozenset([False]): BY_TRIALS}.get(
        frozenset(ways), f"for random and grid search {BY_TRIALS}, else {BY_SPACE}"
    )
    return f"{note} Within 5 %: {said}." if ways else note


def _addresses(suite: RecordedSuite) -> Callable[[RecordedStudy | Trial, RecordedStudy], str]:
    """Where MLflow shows a run; empty unless it is a server."""
    if not suite.uri.startswith(("http://", "https://")):
        return lambda run, study: ""
    return lambda run, study: f"{suite.uri.rstrip('/')}/#/experiments/{study.experiment}/runs/{run.id}"
