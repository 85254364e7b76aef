"""Tuning: trials and results of a suite's campaign, and which strategies need tuning most."""

from collections.abc import Mapping, Sequence
from math import isnan
from typing import Any

from fl_core.text import natural
from reports.figures import look
from reports.records.studies import POINTS, RecordedStudy, sensitivity
from reports.sections.section import Results, Section
from reports.sections.trial_objectives import Amounts, history
from reports.sections.tuned_rates import best_frame, table, trials_frame
from reports.sections.tuning_landscapes import landscape
from reports.sections.tuning_text import Sensitivities, at_edges, leads, remarks, shares
from reports.tables import PageTable, download

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
    """Return one block per scenario: a table, one landscape per strategy, and the history of all."""
    suite, studies = results.suite, results.suite.studies
    if not any(study.trials for study in studies):
        return None
    basins = {study.id: sensitivity(study) for study in studies}
    index = indices(results)
    blocks = [_block(group, index, basins) for group in by_scenario(studies)]
    shows = {
        "leads": leads(studies, basins),
        "shares": shares(suite),
        "remarks": remarks(suite),
        "blocks": blocks,
    }
    figures = [
        (f"{study.strategy} {block['title']}", drawing)
        for block in blocks
        for study, drawing, _ in block["cards"]
    ]
    figures += [(f"history {block['title']}", block["history"]) for block in blocks]
    trials, best = PageTable("trials", trials_frame(studies)), PageTable("best", best_frame(studies, basins))
    tables = [trials, best, *(block["table"] for block in blocks)]
    links = [
        download("What was found", suite.name, "tuned", best.numbers),
        download("All trials", suite.name, "trials", trials.numbers),
    ]
    note = _note(basins, any(block["error"] for block in blocks))
    return Section("tuning", "Tuning", "tuning.html.j2", note, shows, figures, tables, links)


def indices(results: Results) -> dict[str, int]:
    """Return colours: those of the suite's runs, and further ones for strategies that were only tuned."""
    tuned = sorted({study.strategy for study in results.suite.studies}, key=natural)
    order = list(dict.fromkeys([*results.index, *tuned]))
    first = 0 if len(order) <= len(look.LIGHT) else look.QUIET
    return {name: results.index.get(name, first + at) for at, name in enumerate(order)}


def by_scenario(studies: Sequence[RecordedStudy]) -> list[list[RecordedStudy]]:
    """Return studies with the same objective in the same scenario, in alphabetical order."""
    groups: dict[tuple[str, str, str], list[RecordedStudy]] = {}
    for study in sorted(studies, key=lambda study: (natural(study.scenario), natural(study.strategy))):
        if study.trials:
            groups.setdefault((study.scenario, study.objective, study.measure.title), []).append(study)
    return list(groups.values())


def _block(
    studies: Sequence[RecordedStudy], index: Mapping[str, int], basins: Sensitivities
) -> dict[str, Any]:
    shown = [study for study in studies if study.judged and study.space]
    amounts = Amounts.of(studies)
    keys = [(index[study.strategy], study.strategy) for study in studies]
    return {
        "title": studies[0].scenario,
        "table": table(studies, basins),
        "edges": at_edges(studies),
        "error": amounts.scale.kind == "error",
        "cards": [
            (study, landscape(study, index[study.strategy], amounts), index[study.strategy])
            for study in shown
        ],
        "history": history(studies, [colour for colour, _ in keys]),
        "legend": keys,
        "studies": studies,
    }


def _note(basins: Sensitivities, error: bool) -> str:
    note = NOTE.format(error=", by the logarithm of the error" if error else "")
    ways = {basin.of_space for basin in basins.values() if not isnan(basin.near)}
    if not ways:
        return note
    mixed = f"for random and grid search {BY_TRIALS}, else {BY_SPACE}"
    return f"{note} Within 5 %: {mixed if len(ways) > 1 else BY_SPACE if ways == {True} else BY_TRIALS}."
