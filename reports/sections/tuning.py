"""Tuning campaign: best values, sensitivity, trials over time, and landscapes of parameters."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import isnan, log10, nan, sqrt
from statistics import NormalDist, fmean, stdev
from typing import Any, Literal, Self

import numpy as np
import pandas as pd

from benchmarks.colours import slots
from benchmarks.tracking.run_result import TrialResult
from fl_core.schema import TrialState
from fl_core.text import listed, many, natural
from reports import numbers
from reports.figures import look, svg
from reports.figures.scale import Scale
from reports.numbers import Measure
from reports.records.cells import Array
from reports.records.records import RecordedSuite
from reports.records.studies import (
    POINTS,
    Parameter,
    RecordedStudy,
    Sensitivity,
    is_near,
    is_number,
    sensitivity,
)
from reports.sections.heatmap import level
from reports.sections.section import Results, Section
from reports.tables import UNKNOWN, PageTable, TableEntry, download

Sensitivities = Mapping[str, Sensitivity]  # by id of the study

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
    """Return the section with a block per scenario: a table, a landscape per strategy, the history."""
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
    """Return colours: the colours of the suite's runs, and colours for strategies only tuned, if few."""
    places = slots([*results.index, *(study.strategy for study in results.suite.studies)])
    first = 0 if len(places) <= look.MOST_COLOURED else look.QUIET
    return {name: results.index.get(name, first + place) for name, place in places.items()}


def by_scenario(studies: Sequence[RecordedStudy]) -> list[list[RecordedStudy]]:
    """Return the studies by scenario and objective, in alphabetical order."""
    groups: dict[tuple[str, str, str], list[RecordedStudy]] = {}
    for study in sorted(studies, key=lambda study: (natural(study.scenario), natural(study.strategy))):
        if study.trials:
            groups.setdefault((study.scenario, study.objective, study.measure.title), []).append(study)
    return list(groups.values())


def _block(
    studies: Sequence[RecordedStudy], index: Mapping[str, int], basins: Sensitivities
) -> dict[str, Any]:
    judged = [study for study in studies if study.judged and study.space]
    amounts = Amounts.of(studies)
    keys = [(index[study.strategy], study.strategy) for study in studies]
    return {
        "title": studies[0].scenario,
        "table": table(studies, basins),
        "edges": at_edges(studies),
        "error": amounts.scale.kind == "error",
        "cards": [
            (study, landscape(study, index[study.strategy], amounts), index[study.strategy])
            for study in judged
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


SAMPLERS = {"tpe": "TPE", "gp": "Gaussian processes", "cmaes": "CMA-ES"}


def leads(studies: Sequence[RecordedStudy], sensitivities: Sensitivities) -> str:
    """Return which strategies are easy to tune, and which diverge; means over scenarios.

    A strategy is easy to tune if a large share of what was searched comes near its best. Shares of a few
    trials are known to within Wilson's interval of 95 %, as if trials were drawn at random. The easiest and
    the hardest strategy are named where their intervals are apart.
    """
    basins = _means(studies, lambda study: sensitivities[study.id].near)
    scenarios = set(Counter(study.strategy for study in studies).values())  # of each strategy
    scope = f"{max(scenarios)} scenarios" if len(scenarios) == 1 else "its scenarios"
    over = f", mean over {scope}" if max(scenarios) > 1 else ""
    ways = {basin.of_space for basin in sensitivities.values()}
    searched = "what was searched" if len(ways) > 1 else "the space" if ways == {True} else "the trials"
    widest, narrowest = (end(basins, key=basins.__getitem__, default="") for end in (max, min))
    sentences = []
    trials = {name: sum(len(study.judged) for study in studies if study.strategy == name) for name in basins}
    intervals = {name: wilson_interval(share, trials[name]) for name, share in basins.items()}
    words = {
        name: f"{percent(basins[name])} ({percent(low)} to {percent(high)})"
        for name, (low, high) in intervals.items()
    }
    if len(basins) > 1 and intervals[widest][0] > intervals[narrowest][1]:
        sentences.append(
            f"{widest} is the easiest to tune: {words[widest]} of {searched} comes within 5 % of its "
            f"best{over}. {narrowest} is the hardest: {words[narrowest]}."
        )
    elif len(basins) > 1:
        sentences.append(
            f"The trials are too few to say which strategy is easier to tune. Within 5 % of its best{over} "
            f"comes {words[widest]} of {searched} for {widest}, {words[narrowest]} for {narrowest}."
        )
    elif basins:
        share = words[widest]
        sentences.append(f"Within 5 % of the best of {widest}{over} comes {share} of {searched}.")
    return " ".join([*sentences, _who_diverges(studies)])


def wilson_interval(share: float, trials: int) -> tuple[float, float]:
    """Return Wilson's interval of 95 % for a share of a number of trials."""
    z = NormalDist().inv_cdf(0.975)
    centre = (share + z**2 / (2 * trials)) / (1 + z**2 / trials)
    half = z / (1 + z**2 / trials) * sqrt(share * (1 - share) / trials + (z / (2 * trials)) ** 2)
    return max(0.0, centre - half), min(1.0, centre + half)


def _who_diverges(studies: Sequence[RecordedStudy]) -> str:
    lost = _means(studies, lambda study: len(study.diverged) / len(study.counted) if study.counted else nan)
    if not any(lost.values()):
        return "No trial diverged." if lost else ""
    diverging = sorted((name for name in lost if lost[name] > 0), key=lambda name: -lost[name])
    never = [name for name in lost if name not in diverging]
    rest = f"; {listed(never)} never did" if never else ""
    return f"Diverged: {listed([f'{name} in {percent(lost[name])} of trials' for name in diverging])}{rest}."


def shares(suite: RecordedSuite) -> str:
    """Return the tuning budget of every strategy, counted from the stored trials."""
    studies = [study for study in suite.studies if study.trials]
    total = sum(len(study.counted) for study in studies)
    simulations = sum(len(trial.runs) for study in studies for trial in study.counted)
    trials = _range((len(study.counted) for study in studies), "trial")
    seeds = _range((len(study.seeds) for study in studies), "seed")
    budgets = " or ".join(dict.fromkeys(study.budget for study in studies))
    alike = "" if unequal(studies) else ", the same for every strategy"
    all_seeds = sorted({seed for study in studies for seed in study.seeds})
    apart = suite.runs and not set(all_seeds) & set(suite.seeds)
    objectives = " or ".join(dict.fromkeys(study.measure.in_text for study in studies))
    data = " or ".join(dict.fromkeys(study.judged_on for study in studies))
    samplers = ", ".join(dict.fromkeys(SAMPLERS.get(study.sampler, study.sampler) for study in studies))
    pruners = list(dict.fromkeys(study.pruner for study in studies if study.pruner != "none"))
    return (
        f"Each strategy had, in each scenario, {trials} × {seeds} × {budgets}{alike}"
        f": {many(total, 'trial')} of {many(len(studies), 'study')}, {many(simulations, 'simulation')}. "
        f"Objective: {objectives}, on {data}. Seeds {', '.join(map(str, all_seeds))}"
        f"{', none of them a seed of the suite’s own runs' if apart else ''}. "
        f"Sampler: {samplers}; {f'pruned by {listed(pruners)}' if pruners else 'no pruner'}."
    )


def unequal(studies: Sequence[RecordedStudy]) -> list[str]:
    """Return the resources with unequal shares among strategies of a scenario."""
    shared: dict[str, Callable[[RecordedStudy], object]] = {
        "trials": lambda study: len(study.counted),
        "seeds": lambda study: study.seeds,
        "budget": lambda study: study.budget,
        "objective": lambda study: (study.objective, study.measure.title),
        "sampler": lambda study: study.sampler,
        "data": lambda study: study.judged_on,
    }
    scenarios = {study.scenario for study in studies}
    return [
        quantity
        for quantity, share in shared.items()
        if len({(study.scenario, share(study)) for study in studies}) > len(scenarios)
    ]


def remarks(suite: RecordedSuite) -> list[str]:
    """Return caveats for the results, a sentence for each."""
    studies = suite.studies
    differ = unequal(studies)
    missing = sum(max(0, study.planned - len(study.counted)) for study in studies)
    failed = sum(trial.state is TrialState.FAILED for study in studies for trial in study.counted)
    shared = sorted({seed for study in studies for seed in study.seeds} & set(suite.seeds))
    edges = sum(any(map(study.edge, study.space)) for study in studies)
    sentences = {
        f"Strategies of the same scenario had unequal shares: {listed(differ or [''])}.": differ,
        f"{many(missing, 'planned trial')} without an end as yet.": missing,
        f"{many(failed, 'trial')} failed; counted, but without a value.": failed,
        f"Tuned on seeds of the suite’s own runs: {', '.join(map(str, shared))}.": shared,
        f"In {edges} of {many(len(studies), 'study')} the best lies at an edge of the space: "
        "better values may lie beyond.": edges,
    }
    return [sentence for sentence, applies in sentences.items() if applies]


def at_edges(studies: Sequence[RecordedStudy]) -> str:
    """Return the strategies with the best at an edge, with parameter and edge; empty without any."""
    strategies = []
    for study in studies:
        edges = [f"{parameter.name}: {edge}" for parameter in study.space if (edge := study.edge(parameter))]
        if edges:
            strategies.append(f"{study.strategy} ({', '.join(edges)})")
    return f"At an edge of the space: {listed(strategies)}." if strategies else ""


def _means(studies: Sequence[RecordedStudy], share: Callable[[RecordedStudy], float]) -> dict[str, float]:
    """Return a value for each strategy, mean over the scenarios with a known value."""
    by_strategy: dict[str, list[float]] = {}
    for study in sorted(studies, key=lambda study: natural(study.strategy)):
        if not isnan(value := share(study)):
            by_strategy.setdefault(study.strategy, []).append(value)
    return {name: fmean(values) for name, values in by_strategy.items()}


def _range(counts: Iterable[int], thing: str) -> str:
    ordered = sorted(counts)
    lowest, highest = ordered[0], ordered[-1]
    return many(lowest, thing) if lowest == highest else f"{lowest} to {many(highest, thing)}"


def percent(share: float) -> str:
    """Return a share in per cent, with two digits if small: 7.2 %, 84 %."""
    return f"{numbers.number(100 * share, 2) if 0 < share < 0.1 else f'{100 * share:.0f}'} %"


def table(studies: Sequence[RecordedStudy], basins: Sensitivities) -> PageTable:
    """Return the table of a scenario with a line per strategy."""
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
    remark = f"({edge} edge, {percent(distance)})" if edge else f"({percent(distance)} to edge)"
    return TableEntry(numbers.short(float(f"{value:.3g}")), "" if isnan(distance) else remark, float(value))


def _importance(study: RecordedStudy) -> TableEntry:
    order = sorted(study.importance.items(), key=lambda item: -item[1])
    if not order:
        return UNKNOWN
    first, *rest = (f"{name} {percent(share)}" for name, share in order)
    return TableEntry(first, f"({', '.join(rest)})" if rest else "", order[0][1])


def _spread(study: RecordedStudy) -> float:
    """Return the standard deviation over the seeds of the best trial."""
    return stdev(study.by_seed) if len(study.by_seed) > 1 else nan


def best_frame(studies: Sequence[RecordedStudy], basins: Sensitivities) -> pd.DataFrame:
    """Return a table with a row per study and parameter."""
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
    """Return a table with a row per trial."""
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


FAR = 0.1  # between accuracies
LEAST = 1e-3  # smallest error of an accuracy that colours distinguish from none
BAR = 11  # pixels, per colour of the colour bar
LETTER = 5.6  # pixels, about


@dataclass(frozen=True, slots=True)
class Amounts:
    """Colours for objectives, shared by all strategies of a scenario: the stronger, the better."""

    measure: Measure
    scale: Scale

    @classmethod
    def of(cls, studies: Sequence[RecordedStudy]) -> Self:
        """Return colours from the worst to the best complete trial without a diverged seed."""
        complete = [trial for study in studies for trial in study.judged if trial.complete]
        fine = [trial for trial in complete if not trial.diverged] or complete
        values, measure = np.array([trial.worth for trial in fine] or [0.0]), studies[0].measure
        kind = Scale.around(values, higher=measure.higher, share=measure.share).kind
        return cls(measure, Scale(float(values.min()), float(values.max()), kind))

    def colour(self, value: float) -> tuple[str, str]:
        """Return the colours of a value and of text on top."""
        inside = min(max(value, self.scale.low), self.scale.high)
        low, at, high = map(self._spread, (self.scale.low, inside, self.scale.high))
        return svg.amount(level(at, low, high) if self.measure.higher else level(-at, -high, -low))

    def _spread(self, value: float) -> float:
        """Return the place of a value on a scale stretched for good values."""
        if self.scale.kind == "error":
            return -log10(max(1 - value, LEAST))
        return log10(value) if self.scale.kind == "log" else value


def vertical(measure: Measure, values: Array | Sequence[float]) -> Scale:
    """Return an axis for objectives; errors on a log scale only where the worst are far from the best."""
    objectives = np.asarray(values, float)
    far = bool(np.nanmax(objectives, initial=0) - np.nanmin(objectives, initial=1) > FAR)
    return Scale.around(objectives, higher=measure.higher, share=measure.share and far)


def heading(axes: svg.Axes, text: str, amounts: Amounts, margin: float) -> None:
    """Write the vertical quantity above the axes, `margin` to the left, and a colour bar, worst to best."""
    from matplotlib.offsetbox import AnnotationBbox, DrawingArea
    from matplotlib.patches import Rectangle

    axes.annotate(text, (0, 1), (4 - margin, 12), color=svg.MUTED, **svg.OFFSET)
    scale, measure = amounts.scale, amounts.measure
    if isnan(scale.low):
        return
    count = len(look.LIGHT_AMOUNTS)
    bar = DrawingArea(BAR * count, BAR, 0, 0)
    for at in range(count):
        bar.add_artist(Rectangle((BAR * at, 0), BAR, BAR, facecolor=svg.amount(at)[0], linewidth=0))
    ends = (scale.low, scale.high) if measure.higher else (scale.high, scale.low)
    worst, best = map(measure.text, ends)
    right = -4 - LETTER * len(best)
    axes.add_artist(
        AnnotationBbox(
            bar, (1, 1), (right, 10), xycoords="axes fraction", boxcoords="offset points", frameon=False,
            box_alignment=(1, 0), pad=0,
        )
    )  # fmt: skip
    style: dict[str, Any] = {"color": svg.MUTED, "fontsize": svg.SMALL, **svg.OFFSET}
    axes.annotate(best, (1, 1), (right + 4, 12), **style)
    axes.annotate(worst, (1, 1), (right - BAR * count - 4, 12), horizontalalignment="right", **style)


def history(studies: Sequence[RecordedStudy], indices: Sequence[int]) -> svg.Drawing:
    """Return a figure of the best value up to each trial, with a line per strategy."""
    about = f"Best {studies[0].measure.in_text} so far by trial and strategy, {studies[0].scenario}"
    legend = [(index, study.strategy) for index, study in zip(indices, studies, strict=True)]
    paint = partial(_paint_history, studies=studies, indices=indices)
    return svg.Drawing(paint, about, (520, 300), legend=legend)


def best_so_far(study: RecordedStudy) -> Array:
    """Return the best complete value up to every counted trial; NaN before the first complete trial."""
    values = [trial.worth if trial.complete else np.nan for trial in study.counted]
    best = np.fmax if study.measure.higher else np.fmin
    return best.accumulate(values) if values else np.zeros(0)


def _paint_history(axes: svg.Axes, studies: Sequence[RecordedStudy], indices: Sequence[int]) -> None:
    lines, measure = [best_so_far(study) for study in studies], studies[0].measure
    scale = vertical(measure, np.concatenate(lines))
    longest = max(1, *map(len, lines))
    spacing = max(1, longest // 6)
    for line, index in zip(lines, indices, strict=True):
        x = np.arange(1, len(line) + 1)
        y = np.where(np.isnan(line), np.nan, scale.clip(line))
        dash = svg.line_style(index)
        axes.step(x, y, where="post", linestyle=dash, linewidth=1.5, **svg.style(index))
        svg.markers(axes, index, x, y, np.arange(index % spacing, len(x), spacing))
    scale.apply(axes)
    axes.yaxis.set_major_formatter(svg.tick_text(measure.share))
    axes.set_xlim(0.5, longest + 0.5)
    axes.locator_params(axis="x", integer=True, nbins=8)
    axes.set_xlabel("Trials")
    svg.heading(axes, f"Best so far · {measure.heading}", scale, svg.MARGINS[0])


SIZE, MARGINS = (360, 300), (46, 14, 40, 44)
LOCAL, SERVER = ("local_lr", "c"), "server_lr"
TITLES = {"local_lr": "Local rate", "c": "Factor c of the local rate", "server_lr": "Server rate"}
ROOM = 0.05  # of an axis, beyond each end of a range
RATIO = 10  # ratio from which on a list of positive numbers is shown on a log scale
LETTERS = 16  # letters of a name at an axis


def landscape(study: RecordedStudy, index: int, amounts: Amounts) -> svg.Drawing:
    """Return a figure with cells for a grid of both rates, points for samples, a curve for a single rate.

    Args:
        study: The trials.
        index: The strategy's colour, where there is a curve.
        amounts: The colours of objectives.
    """
    across, up = axes_of(study)
    about = f"{study.measure.title} over {across.name}{f' and {up.name}' if up else ''}, {study.strategy}"
    if up is None:
        paint = partial(_paint_curve, study=study, across=across, index=index, amounts=amounts)
    else:
        draw = _paint_cells if across.choices and up.choices else _paint_points
        paint = partial(draw, study=study, across=across, up=up, amounts=amounts)
    margin = MARGINS[0] + (30 if up and not up.ordered else 0)
    return svg.Drawing(paint, f"{about}, {study.scenario}", SIZE, (margin, *MARGINS[1:]))


def axes_of(study: RecordedStudy) -> tuple[Parameter, Parameter | None]:
    """Return the horizontal axis, the local rate if searched, and the vertical, the server rate or none."""
    by_name = {parameter.name: parameter for parameter in study.space}
    across = by_name[next((name for name in LOCAL if name in by_name), next(iter(by_name)))]
    up = by_name.get(SERVER)
    return across, None if up is across else up


def _paint_points(
    axes: svg.Axes, study: RecordedStudy, across: Parameter, up: Parameter, amounts: Amounts
) -> None:
    places = {trial.id: (place(across, trial), place(up, trial)) for trial in study.judged}
    complete = [trial for trial in _best_last(study) if trial.complete and not trial.diverged]
    near = [study.best is not None and is_near(trial, study.best) for trial in complete]
    if complete:
        x, y = zip(*(places[trial.id] for trial in complete), strict=True)
        axes.scatter(
            x,
            y,
            s=70,
            c=[amounts.colour(trial.worth)[0] for trial in complete],
            edgecolors=[svg.INK if ringed else svg.MUTED for ringed in near],
            linewidths=[1.4 if ringed else 0.5 for ringed in near],
            zorder=2,
        )
    for trial in study.judged:
        if trial.diverged:
            axes.plot(*places[trial.id], "x", color=svg.INK, markersize=6.5, markeredgewidth=1.6)
        elif not trial.complete:
            axes.plot(*places[trial.id], "v", markerfacecolor="none", markeredgecolor=svg.MUTED, markersize=5)
        _mark(axes, places[trial.id], trial, study)
    scale_axis(axes, across, "x")
    scale_axis(axes, up, "y")
    axes.grid(visible=True, axis="both")
    axes.set_xlabel(title(across))
    heading(axes, title(up), amounts, MARGINS[0])


def _paint_curve(
    axes: svg.Axes, study: RecordedStudy, across: Parameter, index: int, amounts: Amounts
) -> None:
    measure = study.measure
    scale = vertical(measure, [amounts.scale.low, amounts.scale.high])
    complete = sorted((trial for trial in study.judged if trial.complete), key=partial(place, across))
    x = [place(across, trial) for trial in complete]
    y = scale.clip(np.array([trial.worth for trial in complete]))
    if len(study.space) == 1 and across.ordered:
        axes.plot(x, y, color=svg.series(index), linewidth=1.5)
    for trial, *point in zip(complete, x, y, strict=True):
        marker, size, width = ("x", 6.5, 1.6) if trial.diverged else (look.marker(index), 5, 0)
        colour = svg.INK if trial.diverged else svg.series(index)
        axes.plot(*point, marker, color=colour, markersize=size, markeredgewidth=width, clip_on=False)
        _mark(axes, (point[0], point[1]), trial, study)
    scale_axis(axes, across, "x")
    scale.apply(axes)
    axes.yaxis.set_major_formatter(svg.tick_text(measure.share))
    axes.set_xlabel(title(across))
    svg.heading(axes, measure.heading, scale, MARGINS[0])


def _paint_cells(
    axes: svg.Axes, study: RecordedStudy, across: Parameter, up: Parameter, amounts: Amounts
) -> None:
    """Draw the best trial of each cell; other parameters may give a cell several trials."""
    cells = {(rank(across, trial), rank(up, trial)): trial for trial in _best_last(study)}
    for (x, y), trial in cells.items():
        if trial.diverged or not trial.complete:
            svg.tile(axes, x, y, 0.02, fill=False, edgecolor=svg.RULE)
            marker = "x" if trial.diverged else "v"
            axes.plot(x, y, marker, color=svg.INK, markersize=6.5, markeredgewidth=1.6, fillstyle="none")
            continue
        colour, ink = amounts.colour(trial.worth)
        svg.tile(axes, x, y, facecolor=colour, linewidth=0)
        weight = "bold" if trial is study.best else "normal"
        size: dict[str, Any] = {"fontsize": svg.SMALL} if len(across.choices) > 5 else {}
        text = study.measure.text(trial.worth)
        axes.text(x, y, text, color=ink, ha="center", va="center_baseline", weight=weight, **size)
        if trial is study.best:
            svg.tile(axes, x, y, 0.03, fill=False, edgecolor=svg.INK, linewidth=1.6)
    name_choices(axes, across, "x")
    name_choices(axes, up, "y")
    svg.only_tiles(axes)
    axes.set_xlabel(TITLES.get(across.name, across.name))
    heading(axes, TITLES.get(up.name, up.name), amounts, MARGINS[0])


def _mark(axes: svg.Axes, at: tuple[float, float], trial: TrialResult, study: RecordedStudy) -> None:
    """Draw a square around the suite's and the paper's own values, a star on the best."""
    if trial.origin == "paper":
        axes.plot(*at, "s", markerfacecolor="none", markeredgecolor=svg.INK, markersize=14, clip_on=False)
    if trial is study.best:
        style: dict[str, Any] = {"markeredgecolor": svg.INK, "markeredgewidth": 1.2, "zorder": 4}
        axes.plot(*at, "*", color=svg.PAPER, markersize=15, clip_on=False, **style)


def _best_last(study: RecordedStudy) -> list[TrialResult]:
    """Return the judged trials, the best above the others."""
    sign = 1 if study.measure.higher else -1
    return sorted(study.judged, key=lambda trial: sign * trial.worth)


# -- axes of searched parameters: ranges and numbers to scale, names side by side --


def place(parameter: Parameter, trial: TrialResult) -> float:
    """Return the place of a trial on the axis of a parameter; names lie at ranks."""
    return float(trial.parameters[parameter.name]) if parameter.ordered else rank(parameter, trial)


def rank(parameter: Parameter, trial: TrialResult) -> int:
    """Return the index of a trial's choice."""
    return parameter.choices.index(trial.parameters[parameter.name])


def title(parameter: Parameter) -> str:
    """Return the title of an axis with the scale."""
    return TITLES.get(parameter.name, parameter.name) + (" · log scale" if _in_logs(parameter) else "")


def scale_axis(axes: svg.Axes, parameter: Parameter, direction: Literal["x", "y"]) -> None:
    """Set an axis to the whole range of a parameter, with a small margin."""
    from matplotlib.ticker import LogLocator, NullLocator

    if not parameter.ordered:
        name_choices(axes, parameter, direction)
        return
    low, high = _ends(parameter)
    axis = axes.xaxis if direction == "x" else axes.yaxis
    if _in_logs(parameter):
        room = (high / low) ** ROOM
        axes.set(**{f"{direction}scale": "log", f"{direction}lim": (low / room, high * room)})
        few = log10(high / low) < 2.5
        axis.set_major_locator(LogLocator(subs=(1, 2, 5) if few else (1,)))
        axis.set_minor_locator(NullLocator())
    else:
        room = ROOM * (high - low) or abs(low) or 1.0
        axes.set(**{f"{direction}lim": (low - room, high + room)})
        axes.locator_params(axis=direction, nbins=6)
    axis.set_major_formatter(svg.tick_text(share=False))


def name_choices(axes: svg.Axes, parameter: Parameter, direction: Literal["x", "y"]) -> None:
    """Write values at ranks on an axis."""
    number = svg.tick_text(share=False)
    texts = [number(float(value), 0) if is_number(value) else str(value) for value in parameter.choices]
    (axes.xaxis if direction == "x" else axes.yaxis).set_ticks(
        range(len(texts)), [svg.two_lines(text, LETTERS) for text in texts]
    )
    axes.set(**{f"{direction}lim": (-0.5, len(texts) - 0.5)})


def _ends(parameter: Parameter) -> tuple[float, float]:
    if parameter.choices:
        return float(parameter.choices[0]), float(parameter.choices[-1])
    return parameter.low, parameter.high


def _in_logs(parameter: Parameter) -> bool:
    if not parameter.ordered or not parameter.choices:
        return parameter.log
    low, high = _ends(parameter)
    return low > 0 and high / low >= RATIO
