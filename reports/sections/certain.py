"""What is certain: the largest differences that hold, how they were tested, how many seeds would show one."""

from collections.abc import Sequence
from math import inf, isfinite

from fl_core.schema import Clock
from fl_core.text import many
from reports import numbers
from reports.comparisons import PairedContrast, Question, seeds_to_show
from reports.records.cells import Cell
from reports.sections.section import Results


def what_holds(results: Results) -> str:
    """Return the largest contrast that holds of each question, times to target first.

    Where none holds, how many seeds would show the largest; empty where none was tested.
    """
    contrasts = results.contrasts
    if not contrasts:
        return ""
    holding = [contrast for contrast in contrasts if contrast.holds]
    if holding:
        first = [next((each for each in holding if each.question is question), None) for question in Question]
        sentences, before = [], None
        for contrast in filter(None, first):
            sentences.append(_sentence(contrast, results, again=contrast.scenario is before))
            before = contrast.scenario
        return " ".join(filter(None, [*sentences, _where_nothing_holds(contrasts)]))
    nothing = "No difference between two strategies is shown"
    if not (needed := seeds_to_show(contrasts)):
        return f"{nothing}."
    largest, seeds = needed
    names = f"{largest.first.strategy} ahead of {largest.second.strategy}"
    place = _place(largest, results)
    about = numbers.about_seeds(seeds)
    return f"{nothing}; {about} would show the largest, {names} in {largest.question}{place}."


def how_tested(results: Results) -> str:
    """Return how many contrasts were tested and hold, and by which test; empty where none was tested."""
    contrasts = results.contrasts
    if not contrasts:
        return ""
    asked = [question for question in Question if any(each.question is question for each in contrasts)]
    holding = sum(contrast.holds for contrast in contrasts)
    never = (
        " Where a run never meets the target, both are compared up to its end."
        if Question.TARGET in asked
        else ""
    )
    return (
        f"Differences between two strategies that hold, in {', '.join(asked)}: "
        f"{holding} of {len(contrasts)}. Paired t-tests over seeds at 5\N{NO-BREAK SPACE}%, "
        f"Holm’s adjustment for all of them.{never}"
    )


def _sentence(contrast: PairedContrast, results: Results, *, again: bool) -> str:
    """Return a contrast that holds, after its measure; `again`: in the scenario of the sentence before."""
    said = _times(contrast) if contrast.question is Question.TARGET else _finals(contrast)
    place, measure = _place(contrast, results), contrast.question.capitalize()
    if place and again:
        measure, place = f"{measure} there", ""
    return f"{measure}: {said}{place} ({many(contrast.effect.n, 'seed')}, {numbers.p_value(contrast.p)})."


def _place(contrast: PairedContrast, results: Results) -> str:
    """Return the scenario; empty where there is only one."""
    return f" in {contrast.scenario.label}" if len(results.scenarios) > 1 else ""


def _where_nothing_holds(contrasts: Sequence[PairedContrast]) -> str:
    """Return the scenarios in which none holds, in a sentence; empty without such a scenario."""
    tested = list(dict.fromkeys(contrast.scenario.label for contrast in contrasts))
    shown = {contrast.scenario.label for contrast in contrasts if contrast.holds}
    quiet = [label for label in tested if label not in shown]
    if not quiet:
        return ""
    where = quiet[0] if len(quiet) == 1 else f"{len(quiet)} of {len(tested)} scenarios"
    return f"In {where} no difference holds once all {len(contrasts)} are adjusted for."


def _times(contrast: PairedContrast) -> str:
    """Return when both met the target, or in how many seeds."""
    scenario = contrast.scenario
    assert scenario.target is not None
    target = f"{scenario.metric.in_text} {scenario.metric.round_text(scenario.target)}"
    unit = contrast.first.runs[0].time_unit or "units of time"
    first, second = _time(contrast.first, contrast, f" {unit}"), _time(contrast.second, contrast)
    return f"{contrast.first.strategy} meets {target} {first}, {contrast.second.strategy} {second}"


def _time(cell: Cell, contrast: PairedContrast, unit: str = "") -> str:
    reach = cell.reach(Clock.TIME)
    if isfinite(reach.median):
        return f"at {numbers.moment(reach.median)}{unit}"
    if reach.reached:
        return f"in {reach.reached} of {many(reach.of, 'seed')}"
    runs = [run for run in cell.runs if run.status.terminated and Clock.TIME in run.files.curve]
    last = min(run.observed_until(inf, Clock.TIME) for run in runs)
    return "never" if last == inf else f"never within {numbers.moment(last)}"


def _finals(contrast: PairedContrast) -> str:
    """Return the mean final values of both."""
    metric = contrast.scenario.columns[0]
    first, second = (
        metric.with_unit(cell.final[metric.name].mean) for cell in (contrast.first, contrast.second)
    )
    return (
        f"{contrast.first.strategy} ends at {metric.in_text} {first}, {contrast.second.strategy} at {second}"
    )
