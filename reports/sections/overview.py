"""The top of the page: size of the suite, caveats, headline, standings, and the leaders' curves.

`reports/page.py` calls `headline`, `how_tested`, `what_is_open`, `remarks` and `leaders`; the terminal shows
the headline and the caveats, too.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from math import inf, isfinite
from typing import Any

import pandas as pd

from benchmarks.mlflow_store.run_result import RunResult
from fl_core.recorded_names import JOINT, Clock, Status, Total
from fl_core.text import duration, many, varying
from reports import numbers
from reports.comparisons import PairedContrast, Question, seeds_to_show
from reports.figures import styles, svg
from reports.numbers import Measure
from reports.ranking_table import Standings, StrategyStanding
from reports.records.records import RecordedScenario, RecordedSuite
from reports.records.seed_summaries import Cell, band, over_scenarios
from reports.sections.curves import plot, scale
from reports.sections.gaps_to_best import effect_entry, seeds_text
from reports.sections.section import Results, Section, draw_rows
from reports.tables import PageTable, TableEntry, download

MEASURED = "problem.measured"  # the parameter of runs whose job lengths were measured
MESSAGE = "timing.network.message"  # the parameter of runs with messages of a given size
SMALL_TRANSFER_SHARE = 0.01  # of the clients' working time, below which links hardly matter
MAX_NAMED = 3  # strategies named in a caption; of more, only the number is given
MAX_HEADLINE_WORDS = 20  # in each sentence
LEADER_ROW = 31
MAX_LEADERS = 10  # strategies in the first figure
MAX_COLOURED_CURVES = 4  # in colour beside it


def what_ran(suite: RecordedSuite) -> str:
    """Return the suite in a sentence or two."""
    scenarios = len({run.scenario for run in suite.runs})
    wall = sum(run.seconds for run in suite.runs)
    return (
        f"{many(len(suite.runs), 'run')}: {many(len(suite.strategies), 'strategy')} × "
        f"{many(scenarios, 'scenario')} × {many(len(suite.seeds), 'seed')}. "
        f"{when(suite.runs)}{f', {duration(wall)} of computing in all' if wall else ''}."
    )


def when(runs: Sequence[RunResult]) -> str:
    """Return the time from the first start to the last end, in universal time."""
    starts = [run.started for run in runs if run.started]
    if not starts:
        return "No time was recorded"
    first, last = min(starts), max([run.ended for run in runs if run.ended] or starts)
    begun, ended = (f"{moment.day} {moment:%B %Y}" for moment in (first, last))
    if first.date() == last.date():
        return f"Run on {begun}, {first:%H:%M} to {last:%H:%M} UTC"
    return f"Run from {begun} to {ended}"


def remarks(suite: RecordedSuite) -> list[str]:
    """Return caveats for the tables, a caption for each."""
    status = Counter(run.status for run in suite.runs)
    unread, older = len(suite.unread), len(suite.older)
    counts = {
        "Runs of the grid not recorded yet: {}.": suite.missing,
        "Runs in progress: {}.": status[Status.RUNNING],
        "Diverged runs, counted and shown without a final value: {}.": status[Status.DIVERGED],
        "Stalled runs, in which no step would have followed: {}.": status[Status.STALLED],
        "Failed runs: {}.": status[Status.ERROR],
        "Damaged records, left out: {}; see Provenance.": len(suite.damaged),
        "Runs with files that cannot be read: {}; see Provenance. Delete them in MLflow, run again.": unread,
        "Older runs of the same names, repeated or with other hyper-parameters, left out: {}.": older,
    }
    captions = [caption.format(f"{count:,}") for caption, count in counts.items() if count]
    doubts = (
        suite.unequal_budgets,
        suite.unequal_data,
        measured_times(suite),
        transfers(suite),
        one_seed(suite),
        suite.untuned,
    )
    return [*filter(None, doubts), *captions]


def measured_times(suite: RecordedSuite) -> str:
    """Return a warning if job lengths were measured; otherwise empty."""
    if all(run.params.get(MEASURED) != "true" for run in suite.runs):
        return ""
    return "Job lengths were measured: times depend on the machine and do not repeat."


def transfers(suite: RecordedSuite) -> str:
    """Return a remark on the share of time spent in transfers, with advice if small; empty without links."""
    shares = [share for run in suite.runs if (share := run.metrics.get(Total.TRANSFER_SHARE)) is not None]
    if not shares:
        return ""
    low, high = numbers.percent(min(shares)), numbers.percent(max(shares))
    text = f"Transfers take {low if low == high else f'{low} to {high}'} % of the clients' working time."
    if max(shares) >= SMALL_TRANSFER_SHARE or any(run.params.get(MESSAGE) for run in suite.runs):
        return text
    return (
        f"{text} Links hardly matter: give the size of your own model, --set 'timing.network.message=40 MB'."
    )


def one_seed(suite: RecordedSuite) -> str:
    """Return a warning if strategies are compared on a single seed; otherwise empty."""
    if len(suite.seeds) != 1 or len(suite.strategies) < 2:
        return ""
    return (
        "One seed only: nothing here shows that one strategy is better than another. "
        "More seeds: the same command with --set seeds=5."
    )


def headline(results: Results) -> list[str]:
    """Return at most two sentences: the largest significant difference, and the leader.

    Each has at most `MAX_HEADLINE_WORDS` words if a name of a strategy or scenario counts as a single word.
    """
    sentences = [_largest_difference(results), who_leads(results)]
    return [sentence for sentence in sentences if sentence]


def _largest_difference(results: Results) -> str:
    """Return a sentence on the largest significant contrast; empty if no contrast was tested."""
    contrasts = results.contrasts
    if not contrasts:
        return ""
    if not (contrast := _foremost(contrasts)):
        return "No difference between two strategies is shown."
    text = _times(contrast) if contrast.question is Question.TARGET else _finals(contrast)
    return f"{text}{_place(contrast, results)}."


def _foremost(contrasts: Sequence[PairedContrast]) -> PairedContrast | None:
    """Return the largest significant contrast, times to target first; None without a significant one."""
    holding = [contrast for contrast in contrasts if contrast.holds]
    return min(holding, key=lambda contrast: [*Question].index(contrast.question), default=None)


def who_leads(results: Results) -> str:
    """Return the leader, by the number ordering all tables; empty without a comparison."""
    standings = results.standings
    if standings is None:
        return ""
    ranks = {scenario.columns[0] for scenario in results.scenarios}
    metric = ranks.pop() if len(ranks) == 1 else None
    best = standings.leader.score.mean
    names = _named([line.strategy for line in standings.lines if line.score.mean == best], "strategies")
    if standings.by_rank:
        metric_text = f" in {metric.in_text}" if metric else ""
        scenarios, n = many(standings.scenarios, "scenario"), len(standings.lines)
        return f"Best mean rank{metric_text} over {scenarios}: {names} ({best:.1f} of {n}){_open(standings)}."
    assert metric is not None
    extreme = "Highest" if metric.higher else "Lowest"
    return f"{extreme} mean {metric.in_text}: {names} ({metric.with_unit(best)}){_open(standings)}."


def _open(standings: Standings) -> str:
    """Return the strategies behind the leader but not separated from the leader; empty without any."""
    best = standings.leader.score.mean
    names = [line.strategy for line in standings.open if line.score.mean != best]
    return f", not separated from {names[0] if len(names) == 1 else f'{len(names)} others'}" if names else ""


def _named(names: Sequence[str], noun: str) -> str:
    """Return a few strategies by name, or the number of many."""
    return ", ".join(names) if len(names) <= MAX_NAMED else f"{len(names)} {noun}"


def how_tested(results: Results) -> str:
    """Return the number of tested and of significant contrasts, and the test; empty without any test."""
    contrasts = results.contrasts
    if not contrasts:
        return ""
    holding = sum(contrast.holds for contrast in contrasts)
    first = _foremost(contrasts)
    statistics = (
        f"{first.question.capitalize()}: {many(first.effect.n, 'seed')}, {numbers.p_value(first.p)}. "
        if first
        else ""
    )
    return (
        f"{statistics}{holding} of {many(len(contrasts), 'difference')} between two strategies hold: "
        "paired t-tests at 5\N{NO-BREAK SPACE}%, Holm’s adjustment for all."
    )


def what_is_open(results: Results) -> str:
    """Return the seeds that would show the largest contrast; empty if a contrast is significant already."""
    contrasts = results.contrasts
    if any(contrast.holds for contrast in contrasts) or not (needed := seeds_to_show(contrasts)):
        return ""
    largest, seeds = needed
    names = f"{largest.first.strategy} ahead of {largest.second.strategy}"
    place = _place(largest, results)
    return (
        f"To show the largest difference, {names} in {largest.question}{place}: {numbers.about_seeds(seeds)}."
    )


def _place(contrast: PairedContrast, results: Results) -> str:
    """Return the scenario's conditions that differ between scenarios; empty for a single scenario."""
    if len(results.scenarios) == 1:
        return ""
    conditions = varying([scenario.conditions for scenario in results.scenarios])
    return f", in {JOINT.join(conditions[contrast.scenario.place - 1]) or contrast.scenario.label}"


def _times(contrast: PairedContrast) -> str:
    """Return the times of both strategies to the target, or the numbers of seeds."""
    scenario = contrast.scenario
    assert scenario.target is not None
    target = _stated(scenario.metric, scenario.metric.round_text(scenario.target))
    unit = contrast.first.runs[0].time_unit or "units of time"
    first, second = _time(contrast.first, contrast, f" {unit}"), _time(contrast.second, contrast)
    return f"{contrast.first.strategy} meets {target} {first}, {contrast.second.strategy} {second}"


def _time(cell: Cell, contrast: PairedContrast, unit: str = "") -> str:
    """Return when a strategy met the target: the median time, the number of seeds, or never."""
    reach = cell.reach(Clock.TIME)
    if isfinite(reach.median):
        return f"after {numbers.moment(reach.median)}{unit}"
    if reach.reached:
        return f"in {reach.reached} of {many(reach.of, 'seed')}"
    runs = [run for run in cell.runs if run.status.terminated and Clock.TIME in run.files.curve]
    last = min(run.observed_until(inf, Clock.TIME) for run in runs)
    return "never" if last == inf else f"never within {numbers.moment(last)}"


def _finals(contrast: PairedContrast) -> str:
    """Return the mean final values of both strategies."""
    metric = contrast.scenario.columns[0]
    first, second = (
        metric.with_unit(cell.final[metric.name].mean) for cell in (contrast.first, contrast.second)
    )
    ends = f"ends at {_stated(metric, first)}"
    return f"{contrast.first.strategy} {ends}, {contrast.second.strategy} at {second}"


def _stated(metric: Measure, value: str) -> str:
    """Return a value with the metric in words: 85 % test accuracy, training loss 0.05."""
    return f"{value} {metric.in_text}" if metric.share else f"{metric.in_text} {value}"


def leaders(results: Results) -> Section | None:
    """Return the section of standings and curves; None with fewer than two comparable strategies."""
    if (standings := results.standings) is None:
        return None
    metric = results.scenarios[0].columns[0]
    title, score, write = f"Final {metric.in_text}", metric.heading, metric.text
    if standings.by_rank:
        title, score, write = f"Mean rank over {many(standings.scenarios, 'scenario')}", "Mean rank", _rank
    first = [
        line
        for at, line in enumerate(standings.lines)
        if at < MAX_LEADERS or styles.highlighted(results.index[line.strategy])
    ]
    standing = _draw_standings(results, standings, first, title, write)
    curves, table = _leading_curves(results, standings), _standings_table(standings, score, write)
    shows = {
        "standing": standing,
        "title": title,
        "caption": _standings_caption(standings, len(first)),
        "curves": curves,
        "table": table,
        "download": download("Standings", results.suite.name, "standings", table.numbers),
    }
    figures = [("standings", standing), *([("leaders", curves["figure"])] if curves else [])]
    return Section("answer", "Who leads", "answer.html.j2", "", shows, figures, [table])


def _rank(value: float) -> str:
    return numbers.minus(f"{value:.1f}")


def _standings_caption(standings: Standings, rows: int) -> str:
    """Return the number of strategies and seeds, and the test of separation."""
    n, seeds = len(standings.lines), standings.seeds
    highlighted = ", and the highlighted" if rows > MAX_LEADERS else ""
    text = f"The first {MAX_LEADERS} of {n}{highlighted}. " if n > MAX_LEADERS else ""
    if seeds < 2:
        return f"{text}One seed, hence no interval."
    return (
        f"{text}Mark: mean over {many(seeds, 'seed')}; diamond: the leader. Line: 95\N{NO-BREAK SPACE}% "
        "interval of the mean. Filled marks are separated from the leader, open marks are not."
    )


def _standings_table(standings: Standings, score: str, write: Callable[[float], str]) -> PageTable:
    """Return the standings as a table with a line per strategy, leader first."""
    lines = []
    for line in standings.lines:
        behind, p, verdict = TableEntry(""), TableEntry(""), TableEntry(numbers.MISSING)
        if line is standings.leader:
            verdict = TableEntry("leads")
        elif line.gap is not None:
            behind = effect_entry(line.gap.effect, write)
            p = TableEntry(numbers.number(line.gap.p, 2), value=line.gap.p)
            needed = seeds_text(line.gap)
            verdict = (
                TableEntry("no", f"{needed} would" if needed else "") if line.open else TableEntry("yes")
            )
        lines.append((TableEntry(line.strategy), effect_entry(line.score, write), behind, p, verdict))
    headings = ["Strategy", score, "Behind the leader", "p (Holm)", "Separated from the leader"]
    return PageTable("standings", standings_frame(standings), headings, lines)


def _draw_standings(
    results: Results,
    standings: Standings,
    lines: Sequence[StrategyStanding],
    title: str,
    write: Callable[[float], str],
) -> svg.Drawing:
    """Return a figure with a row per strategy: mean, interval, separation from the leader."""
    texts = []
    for line in lines:
        entry = effect_entry(line.score, write)
        text = f"{line.strategy} {entry.text} {entry.detail}".rstrip()
        separation = ", not separated from the leader" if line.open else ""
        texts.append((Cell(line.strategy, results.index[line.strategy], ()), text + separation))
    about = f"{title}: {'; '.join(text for _, text in texts)}"
    by_rank, metric = standings.by_rank, results.scenarios[0].columns[0]

    def paint(axes: svg.Axes) -> None:
        means = [line.score.mean for line in lines]
        ends = [end for line in lines if line.score.n > 1 for end in (line.score.low, line.score.high)]
        if by_rank:
            low_x, high_x = 1.0, float(len(standings.lines))
        else:
            reach = (max(means) - min(means)) or abs(means[0]) or 1.0
            low_x = max(min([*means, *ends]), min(means) - reach)
            high_x = min(max([*means, *ends]), max(means) + reach)
        room = 0.04 * (high_x - low_x) or 0.5
        axes.set_xlim(low_x - room, high_x + room)
        edges = (low_x, high_x) if by_rank else (low_x - room, high_x + room)
        for y, line in enumerate(lines):
            index, score = results.index[line.strategy], line.score
            if isfinite(score.low):
                low, high = score.low, score.high
                if by_rank:  # ranks end at 1 and n
                    low, high = max(low, low_x), min(high, high_x)
                svg.interval(axes, index, y, (low, high), edges)
            mark, size = ("D", 7.5) if line is standings.leader else ("o", 8)
            svg.dot(axes, index, (score.mean, y), size, mark, edge=1.8, hollow=line.open or score.n < 2)
        axes.locator_params(axis="x", nbins=6, integer=by_rank)
        svg.across(
            axes, "Mean rank (1 is best)" if by_rank else metric.heading, share=not by_rank and metric.share
        )

    return draw_rows(texts, paint, about, LEADER_ROW)


def standings_frame(standings: Standings) -> pd.DataFrame:
    """Return a table with a row per strategy; positive differences are behind the leader.

    Intervals of scores hold by themselves, those of differences together with those of all pairs.
    """
    return pd.DataFrame(
        {
            "strategy": line.strategy,
            "score": "mean rank" if standings.by_rank else "final value",
            "mean": line.score.mean,
            "low": line.score.bounds[0],
            "high": line.score.bounds[1],
            "seeds": line.score.n,
            "behind": gap.effect.mean if gap else None,
            "behind low": gap.effect.bounds[0] if gap else None,
            "behind high": gap.effect.bounds[1] if gap else None,
            "p holm": gap.p if gap else None,
            "separated": gap.worse if gap else None,
            "seeds that would separate": gap.needed if gap else None,
        }
        for line in standings.lines
        for gap in [line.gap]
    )


def _leading_curves(results: Results, standings: Standings) -> dict[str, Any] | None:
    """Return learning curves of the leaders over the scenarios of a problem, other strategies in grey."""
    alike: dict[tuple[str, str], list[RecordedScenario]] = {}  # by problem and metric
    for scenario in results.scenarios:
        alike.setdefault((scenario.problem, scenario.columns[0].name), []).append(scenario)
    scenarios = max(alike.values(), key=len)
    first, metric, several = scenarios[0], scenarios[0].columns[0], len(scenarios) > 1
    clock = first.cells[0].runs[0].budget_clock or Clock.UPDATES
    bands = []
    for name in standings.order:
        cells = [cell for scenario in scenarios for cell in scenario.cells if cell.strategy == name]
        if cells:
            line_of_strategy = (
                over_scenarios(cells, metric.name, clock) if several else band(cells[0], metric.name, clock)
            )
            bands += [line_of_strategy] if line_of_strategy.n else []
    if not bands:
        return None
    leading = [
        name
        for at, name in enumerate(standings.order)
        if at < MAX_COLOURED_CURVES or styles.highlighted(results.index[name])
    ]
    lines_shown = [
        replace(line, cell=replace(line.cell, index=styles.QUIET + line.cell.index))
        if line.cell.strategy not in leading and not styles.quiet(line.cell.index)
        else line
        for line in bands
    ]
    label = f"mean of {len(scenarios)} scenarios" if several else first.label
    place = replace(first, label=label, cells=tuple(line.cell for line in lines_shown))
    colour = [(line.cell.index, line.cell.strategy) for line in lines_shown if line.cell.strategy in leading]
    seeds, grey_lines = min(line.n for line in bands), len(lines_shown) - len(colour)
    scope = f"of {many(len(scenarios), 'scenario')}" if several else f"in {first.label}"
    over = f"Line: mean {scope}" if several or seeds > 1 else f"Line: one seed {scope}"
    band_text = f". Band: minimum to maximum of {many(seeds, 'seed')}" if seeds > 1 else ""
    grey = f" Grey: {many(grey_lines, 'other strategy')}." if grey_lines else ""
    return {
        "title": "Learning curves of the leaders" if grey_lines else "Learning curves",
        "figure": plot(place, metric, clock, lines_shown, scale(metric, [place], lines_shown)),
        "legend": colour,
        "caption": f"{over}{band_text}.{grey}",
    }
