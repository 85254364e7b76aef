"""Section on a tuning campaign: best values, sensitivity, trials over time, and landscapes of parameters.

`reports/page.py` calls `section`. The numbers of a study are in `reports/records/studies.py`.

Free: all but what NOTE says of the numbers; tuned values come from `tuning/results.py`, not from here.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from math import isnan, log10, nan
from statistics import stdev
from typing import Any, Literal

import numpy as np
import pandas as pd

from benchmarks.colours import slots
from benchmarks.mlflow_store.run_result import TrialResult
from fl_core.recorded_names import TrialState
from fl_core.text import listed, many, natural
from reports import numbers
from reports.figures import styles, svg
from reports.figures.axis_scale import Scale
from reports.records.records import RecordedSuite
from reports.records.seed_summaries import Array
from reports.records.studies import (
    POINTS,
    Parameter,
    RecordedStudy,
    Sensitivity,
    is_near,
    sensitivity,
)
from reports.sections.section import Results, Section
from reports.tables import UNKNOWN, PageTable, TableEntry, download

Sensitivities = Mapping[str, Sensitivity]  # by id of the study

NOTE = (
    "Circles: trials, the stronger the colour, the better; ringed: within 5 % of the best. ★ the best, □ the "
    "suite’s own values and the paper’s, ✕ a seed diverged, ▽ pruned. "
    "Under the best values: how far they lie from the nearest end of what was searched, as a share of its "
    "range, on a log scale where it was searched on one. Objective: mean ± standard deviation over the seeds "
    "of the best trial. Within 5 %: for random and grid search the share of trials, else the share of the "
    f"space, estimated from {POINTS:,} points spread evenly over it (a Halton sequence; rates by their "
    "logarithms), each of which takes the result of the trial nearest to it."
)
SAMPLERS = {"tpe": "TPE", "gp": "Gaussian processes", "cmaes": "CMA-ES"}
SIZE, MARGINS = (360, 300), (46, 14, 40, 44)
LOCAL_RATES, SERVER_RATE = ("local_lr", "c"), "server_lr"  # parameters on the axes of a landscape
TITLES = {"local_lr": "Local rate", "c": "Factor c of the local rate", "server_lr": "Server rate"}
AXIS_MARGIN = 0.05  # of an axis, beyond each end of a range
MIN_LOG_RATIO = 10  # ratio from which on a list of positive numbers is shown on a log scale
LEVELS = len(styles.LIGHT_AMOUNTS)
MAX_LETTERS = 16  # of a name at an axis


def section(results: Results) -> Section | None:
    """Return the section with a block per scenario: a table, a landscape per strategy, the history."""
    suite, studies = results.suite, results.suite.studies
    if not any(study.trials for study in studies):
        return None
    basins = {study.id: sensitivity(study) for study in studies}
    index = indices(results)
    blocks = [_block(group, index, basins) for group in by_scenario(studies)]
    shows = {
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
    return Section("tuning", "Tuning", "tuning.html.j2", NOTE, shows, figures, tables, links)


def indices(results: Results) -> dict[str, int]:
    """Return colours: the colours of the suite's runs, and colours for strategies only tuned, if few."""
    places = slots([*results.index, *(study.strategy for study in results.suite.studies)])
    first = 0 if len(places) <= styles.MOST_COLOURED else styles.QUIET
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
    """Return the values of the template for the studies of a scenario: table, landscapes, history."""
    measure, colours = studies[0].measure, [index[study.strategy] for study in studies]
    complete = [trial for study in studies for trial in study.judged if trial.complete]
    fine = [trial for trial in complete if not trial.diverged] or complete
    objectives = np.array([trial.worth for trial in fine])
    scale = Scale.around(objectives, higher=measure.higher, share=measure.share)
    ends = (
        sorted((float(objectives.min()), float(objectives.max())), reverse=not measure.higher) if fine else []
    )
    return {
        "title": studies[0].scenario,
        "table": table(studies, basins),
        "colours": f"Colours: {' to '.join(map(measure.with_unit, ends))}{scale.note}." if ends else "",
        "cards": [
            (study, landscape(study, scale), index[study.strategy])
            for study in studies
            if study.judged and study.space
        ],
        "history": history(studies, colours, scale),
        "legend": [(index[study.strategy], study.strategy) for study in studies],
        "studies": studies,
    }


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


def _range(counts: Iterable[int], thing: str) -> str:
    """Return the smallest to the largest count, with a noun."""
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
    """Return the best trial's objective with the deviation over seeds; bold if it reads as `top`."""
    if study.best is None:
        return replace(UNKNOWN, detail="no trial is complete")
    text = study.measure.text(study.best.worth)
    detail = "" if isnan(spread := _spread(study)) else f"± {study.measure.text(spread)}"
    return TableEntry(text, detail, study.best.worth, best=text == top)


def _near(basin: Sensitivity) -> TableEntry:
    """Return the share of the space, or of the trials, within 5 % of the best."""
    if isnan(basin.near):
        return UNKNOWN
    return TableEntry(percent(basin.near), "of the space" if basin.of_space else "of trials", basin.near)


def _diverged(study: RecordedStudy, basin: Sensitivity) -> TableEntry:
    """Return the share of trials with a diverged seed."""
    lost, counted = len(study.diverged), len(study.counted)
    if not counted:
        return UNKNOWN
    space = f", {percent(basin.diverges)} of the space" if lost and basin.of_space else ""
    return TableEntry(percent(lost / counted), f"({lost} of {counted}{space})", lost / counted)


def _best(study: RecordedStudy, name: str) -> TableEntry:
    """Return the best value of a parameter, with the distance from the nearest end of its range."""
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
    """Return the parameters with their importance, the most important first."""
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


def history(studies: Sequence[RecordedStudy], indices: Sequence[int], scale: Scale) -> svg.Drawing:
    """Return a figure of the best value up to each trial, with a line per strategy."""
    about = f"Best {studies[0].measure.in_text} so far by trial and strategy, {studies[0].scenario}"
    legend = [(index, study.strategy) for index, study in zip(indices, studies, strict=True)]

    def paint(axes: svg.Axes) -> None:
        lines, measure = [best_so_far(study) for study in studies], studies[0].measure
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
        svg.heading(axes, f"Best so far · {measure.heading}{scale.note}", svg.MARGINS[0])

    return svg.Drawing(paint, about, (520, 300), legend=legend)


def best_so_far(study: RecordedStudy) -> Array:
    """Return the best complete value up to every counted trial; NaN before the first complete trial."""
    values = [trial.worth if trial.complete else np.nan for trial in study.counted]
    best = np.fmax if study.measure.higher else np.fmin
    return best.accumulate(values) if values else np.zeros(0)


def landscape(study: RecordedStudy, scale: Scale) -> svg.Drawing:
    """Return a figure with a point for each trial: over both rates, or the objective over a single rate."""
    across, up = axes_of(study)
    about = f"{study.measure.title} over {across.name}{f' and {up.name}' if up else ''}, {study.strategy}"

    def paint(axes: svg.Axes) -> None:
        measure = study.measure
        sign = 1 if measure.higher else -1
        for trial in sorted(study.judged, key=lambda trial: sign * trial.worth):  # the best above the others
            height = float(scale.clip(np.array(trial.worth)))
            at = place(across, trial), place(up, trial) if up else height
            if trial.diverged:
                axes.plot(*at, "x", color=svg.INK, markersize=6.5, markeredgewidth=1.6)
            elif not trial.complete:
                axes.plot(*at, "v", markerfacecolor="none", markeredgecolor=svg.MUTED, markersize=5)
            else:
                share = scale.place(height)
                colour, _ = svg.amount(int(LEVELS * min(share if measure.higher else 1 - share, 0.999)))
                ringed = study.best is not None and is_near(trial, study.best)
                edge, width = (svg.INK, 1.4) if ringed else (svg.MUTED, 0.5)
                axes.plot(*at, "o", color=colour, markersize=8.4, markeredgecolor=edge, markeredgewidth=width)
            if trial.origin == "paper":
                axes.plot(
                    *at, "s", markerfacecolor="none", markeredgecolor=svg.INK, markersize=14, clip_on=False
                )
            if trial is study.best:
                style: dict[str, Any] = {"markeredgecolor": svg.INK, "markeredgewidth": 1.2, "zorder": 4}
                axes.plot(*at, "*", color=svg.PAPER, markersize=15, clip_on=False, **style)
        scale_axis(axes, across, "x")
        axes.set_xlabel(title(across))
        if up:
            scale_axis(axes, up, "y")
            axes.grid(visible=True, axis="both")
        else:
            scale.apply(axes)
            axes.yaxis.set_major_formatter(svg.tick_text(measure.share))
        svg.heading(axes, title(up) if up else f"{measure.heading}{scale.note}", MARGINS[0])

    margin = MARGINS[0] + (30 if up and not up.ordered else 0)
    return svg.Drawing(paint, f"{about}, {study.scenario}", SIZE, (margin, *MARGINS[1:]))


def axes_of(study: RecordedStudy) -> tuple[Parameter, Parameter | None]:
    """Return the horizontal axis, the local rate if searched, and the vertical, the server rate or none."""
    by_name = {parameter.name: parameter for parameter in study.space}
    across = by_name[next((name for name in LOCAL_RATES if name in by_name), next(iter(by_name)))]
    up = by_name.get(SERVER_RATE)
    return across, None if up is across else up


def place(parameter: Parameter, trial: TrialResult) -> float:
    """Return the place of a trial on the axis of a parameter: numbers to scale, names side by side."""
    value = trial.parameters[parameter.name]
    return float(value) if parameter.ordered else parameter.choices.index(value)


def title(parameter: Parameter) -> str:
    """Return the title of an axis with the scale."""
    return TITLES.get(parameter.name, parameter.name) + (" · log scale" if _in_logs(parameter) else "")


def scale_axis(axes: svg.Axes, parameter: Parameter, direction: Literal["x", "y"]) -> None:
    """Set an axis to the whole range of a parameter, or to the names of choices, with a small margin."""
    from matplotlib.ticker import LogLocator, NullLocator

    axis = axes.xaxis if direction == "x" else axes.yaxis
    if not parameter.ordered:
        names = [svg.two_lines(str(value), MAX_LETTERS) for value in parameter.choices]
        axis.set_ticks(range(len(names)), names)
        axes.set(**{f"{direction}lim": (-0.5, len(names) - 0.5)})
        return
    low, high = _ends(parameter)
    if _in_logs(parameter):
        room = (high / low) ** AXIS_MARGIN
        axes.set(**{f"{direction}scale": "log", f"{direction}lim": (low / room, high * room)})
        few = log10(high / low) < 2.5
        axis.set_major_locator(LogLocator(subs=(1, 2, 5) if few else (1,)))
        axis.set_minor_locator(NullLocator())
    else:
        room = AXIS_MARGIN * (high - low) or abs(low) or 1.0
        axes.set(**{f"{direction}lim": (low - room, high + room)})
        axes.locator_params(axis=direction, nbins=6)
    axis.set_major_formatter(svg.tick_text(share=False))


def _ends(parameter: Parameter) -> tuple[float, float]:
    """Return the ends of the range of a parameter, or of its choices."""
    if parameter.choices:
        return float(parameter.choices[0]), float(parameter.choices[-1])
    return parameter.low, parameter.high


def _in_logs(parameter: Parameter) -> bool:
    """Return whether an axis has a log scale: as searched, or for choices over a wide range."""
    if not parameter.ordered or not parameter.choices:
        return parameter.log
    low, high = _ends(parameter)
    return low > 0 and high / low >= MIN_LOG_RATIO
