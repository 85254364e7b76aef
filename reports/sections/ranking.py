"""Ranking of every strategy in every scenario, and distances behind the best, paired over seeds."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from math import inf, isfinite, isnan, nan
from typing import Any

import pandas as pd

from fl_core.schema import Clock, Status
from fl_core.text import many
from reports import numbers
from reports.comparisons import Difference, Gap
from reports.figures import svg
from reports.inference import Effect
from reports.numbers import Measure
from reports.rankings import NO_SURROGATE, NOTHING, STALLED, Ranking, spread_text
from reports.records.cells import Cell
from reports.records.records import RecordedScenario
from reports.sections.section import Card, Results, Section, cards_section, draw_rows
from reports.tables import UNKNOWN, PageTable, TableEntry, download

MIN_SEEDS = 5  # seeds; with fewer, the page notes how little they can show
MAX_OVERHANG = 2.2  # times the largest difference of a seed, beyond which intervals are cut

Compared = tuple[RecordedScenario, Sequence[Difference]]


def section(results: Results) -> Section:
    """Return the section with the overview of several scenarios and a table for each."""
    rankings = results.rankings
    glance = at_a_glance(results) if len(rankings) > 1 else None
    numbers = frame(results.scenarios)
    blocks, tables = [], []
    for ranking, differences in zip(rankings, results.differences.values(), strict=True):
        block: dict[str, Any] = {
            "ranking": ranking,
            "against": against(differences),
            "against_title": f"Against the best in {ranking.scenario.columns[0].in_text}",
            "finding": _finding(ranking, differences),
        }
        blocks.append(block)
        tables.append(_scenario_table(block))
    if glance:
        tables.insert(0, _overview_table(glance, numbers))
    note = _note(rankings, any(block["against"] for block in blocks))
    link = download("All tables", results.suite.name, "ranking", numbers)
    shows = {"glance": glance, "blocks": blocks}
    return Section("ranking", "Ranking", "ranking.html.j2", note, shows, tables=tables, downloads=[link])


def frame(scenarios: Sequence[RecordedScenario]) -> pd.DataFrame:
    """Return all rows as a table for reading by other programs; ∞ is written as inf."""
    return pd.DataFrame([_record(scenario, cell) for scenario in scenarios for cell in scenario.ranked])


def _record(scenario: RecordedScenario, cell: Cell) -> dict[str, object]:
    record: dict[str, object] = {
        "scenario": scenario.label,
        "strategy": cell.strategy,
        "seeds": len(cell.runs),
        "done": len(cell.having(Status.DONE)),
        "diverged": cell.diverged,
        "stalled": cell.stalled,
    }
    for name, spread in cell.final.items():
        record |= {f"{name} mean": spread.mean, f"{name} std": spread.std}
    if scenario.target is not None:
        updates = cell.reach(Clock.UPDATES)
        record |= {
            "target": scenario.target,
            "reached": updates.reached,
            "updates to target": updates.median,
            "time to target": cell.reach(Clock.TIME).median,
        }
    mean, greatest = cell.staleness
    return record | {"staleness mean": mean, "staleness max": greatest}


def against(differences: Sequence[Difference]) -> list[TableEntry]:
    """Return an entry per line of a scenario: separated from the best or not, and the seeds needed."""
    entries = []
    for at, difference in enumerate(differences):
        if difference.gap is None:
            entries.append(UNKNOWN if at else TableEntry("best", value=-1))
        elif difference.gap.worse:
            entries.append(TableEntry("separated", value=0))
        else:
            needed = seeds_text(difference.gap)
            would = f"{needed} would" if needed else ""
            entries.append(TableEntry("not separated", would, difference.gap.needed or inf))
    return entries


def _scenario_table(block: Mapping[str, Any]) -> PageTable:
    """Return the table of a scenario as files."""
    ranking, against = block["ranking"], block["against"]
    extra = [block["against_title"]] if against else []
    headings = ["Strategy", *(title for title, _ in ranking.columns), *extra, "Seeds"]
    lines = [
        (TableEntry(cell.strategy), *entries, *against[at : at + 1], TableEntry(cell.seeds))
        for at, (cell, entries) in enumerate(ranking.lines)
    ]
    if any(entry.text for entry in ranking.pooled):
        empty = [NOTHING] * (1 + len(extra))
        lines.append((TableEntry("Trained centrally"), *ranking.pooled, *empty))
    return PageTable(ranking.scenario.label, frame([ranking.scenario]), headings, lines)


def _finding(ranking: Ranking, differences: Sequence[Difference]) -> str:
    """Return the leader of a scenario, and the number of separated strategies."""
    (leader, entries), metric = ranking.lines[0], ranking.scenario.columns[0]
    if leader.diverged or isnan(leader.final[metric.name].mean):
        return ""
    text = f"{leader.strategy} {entries[0].text}{' %' if metric.share else ''} in {metric.in_text}"
    gaps = [difference.gap for difference in differences if difference.gap]
    if not gaps:
        return text
    apart, rest = sum(gap.worse for gap in gaps), many(len(gaps), "other")
    return f"{text}, {f'separated from {apart} of' if apart else 'not separated from any of'} {rest}"


def _overview_table(glance: dict[str, Any], numbers: pd.DataFrame) -> PageTable:
    headings = ["Scenario", *(strategy for _, strategy in glance["strategies"])]
    lines = [
        (TableEntry(label), *(TableEntry(cell["text"], cell["detail"], best=cell["best"]) for cell in cells))
        for label, cells, _ in glance["lines"]
    ]
    return PageTable("overview", numbers, headings, lines)


def _note(rankings: Sequence[Ranking], compared: bool) -> str:
    cells = [cell for ranking in rankings for cell in ranking.scenario.cells]
    first = {ranking.scenario.columns[0].in_text for ranking in rankings}
    by = f"final {first.pop()}" if len(first) == 1 else "the first column"
    target = any(ranking.scenario.target for ranking in rankings)
    median = f" Updates and time to a target: median.{_steps(rankings)}" if target else ""
    sentences = {
        f"Strategies are ranked by {by}.": len(cells) > len(rankings),
        f"Final values: mean ± standard deviation over seeds.{median} Best in bold.": any(
            len(cell.finite) > 1 for cell in cells
        ),
        "Not separated: the seeds do not show that the best of the scenario is better; beside it, about "
        "how many would. That is not the same as equal: see “Behind the best”.": compared,
        "∞: the median seed never met the target; beside it, how many seeds did.": any(
            ranking.unmet for ranking in rankings
        ),
        "Strategies with diverged runs come last; their means are those of the other seeds.": any(
            cell.diverged for cell in cells
        ),
        STALLED: any(cell.stalled for cell in cells),
        NO_SURROGATE: any(ranking.scenario.lacks_surrogate for ranking in rankings),
    }
    return " ".join(sentence for sentence, applies in sentences.items() if applies)


def _steps(rankings: Sequence[Ranking]) -> str:
    """Return in words how far evaluations are apart, and thus how exact times to target are."""
    scenarios = [ranking.scenario for ranking in rankings if ranking.scenario.target]
    all_steps = [scenario.evaluation_step(Clock.TIME) for scenario in scenarios]
    if not (steps := [step for step in all_steps if not isnan(step)]):
        return ""
    low, high = (numbers.moment(step) for step in (min(steps), max(steps)))
    unit = scenarios[0].runs[0].time_unit or "units of time"
    apart = low if low == high else f"{low} to {high}"
    return f" Evaluations are {apart} {unit} apart: a target was met up to that much earlier."


def at_a_glance(results: Results) -> dict[str, Any]:
    """Return a line per scenario and a column per strategy, in the order of the standings."""
    order = results.order
    ranks = {scenario.columns[0] for scenario in results.scenarios}
    title = "Final value of each scenario’s metric"
    if len(ranks) == 1:
        metric = ranks.pop()
        unit = " (%)" if metric.share else ""
        title = f"Final {metric.in_text}, mean ± standard deviation over seeds{unit}"
    parts = zip(results.differences.items(), results.rankings, strict=True)
    lines = [
        (scenario.label, _glances(scenario, order, differences), ranking.pooled[0])
        for (scenario, differences), ranking in parts
    ]
    return {
        "title": title,
        "strategies": [(results.index[strategy], strategy) for strategy in order],
        "lines": lines,
        "pooled": any(pooled.text for _, _, pooled in lines),
        "compared": any(results.differences.values()),
        "down": len(order) > len(lines),  # strategies one a row: the longer side has no end on a phone
    }


def _glances(
    scenario: RecordedScenario, order: list[str], differences: Sequence[Difference]
) -> list[dict[str, Any]]:
    """Return an entry per strategy; `place` is between the worst (0) and the best (1) of the scenario.

    `apart` is whether it is separated from the best, in words; empty where that is unknown.
    """
    apart = {
        difference.strategy: "not separated" if difference.open else "separated"
        for difference in differences
        if difference.gap
    }
    metric = scenario.columns[0]
    cells = {cell.strategy: cell for cell in scenario.cells}
    means = pd.Series({name: cell.final[metric.name].mean for name, cell in cells.items()}, dtype=float)
    finished = means[[name for name, cell in cells.items() if not cell.diverged]]
    top = finished.max() if metric.higher else finished.min()
    worst, room = means.min() if metric.higher else means.max(), means.max() - means.min()
    entries = []
    for strategy in order:
        if strategy not in cells:
            nothing = {
                "text": "",
                "detail": "not run",
                "best": False,
                "place": 0.0,
                "value": nan,
                "apart": "",
            }
            entries.append(nothing)
            continue
        cell, mean = cells[strategy], float(means[strategy])
        text, detail = spread_text(cell.final[metric.name], metric)
        if cell.diverged:
            detail = f"{cell.diverged} diverged"
        elif cell.stalled:
            detail = f"{cell.stalled} stalled"
        entry = {
            "text": text,
            "detail": detail,
            "best": metric.higher is not None and not cell.diverged and text == metric.text(top),
            "place": round(abs(mean - worst) / room, 3) if room > 0 and not isnan(mean) else 0.0,
            "value": mean,
            "apart": apart.get(strategy, ""),
        }
        entries.append(entry)
    return entries


def behind_the_best(results: Results) -> Section | None:
    """Return the section with a card per scenario; None without any comparison."""
    compared = [pair for pair in results.differences.items() if pair[1]]
    if not compared:
        return None
    cards = [
        Card(
            scenario.label,
            {None: _draw_behind(scenario, _foremost_differences(results, differences))},
            _behind_caption(differences),
            places=[scenario.place],
            runs=len(scenario.runs),
        )
        for scenario, differences in compared
    ]
    table = difference_frame(compared)
    link = download("Differences", results.suite.name, "differences", table)
    tables = [PageTable("all", table), *(_behind_table(*pair) for pair in compared)]
    return cards_section(
        "behind",
        "Behind the best",
        _behind_note(compared) + results.only_foremost,
        [("", cards)],
        tables=tables,
        downloads=[link],
    )


def _foremost_differences(results: Results, differences: Sequence[Difference]) -> list[Difference]:
    """Return the best of a scenario and the foremost strategies."""
    best, *rest = differences
    return [best, *(difference for difference in rest if difference.strategy in results.foremost)]


def _behind_note(compared: Sequence[Compared]) -> str:
    n = [
        difference.gap.effect.n for _, differences in compared for difference in differences if difference.gap
    ]
    over = many(max(n), "seed") if min(n) == max(n) else f"{min(n)} to {max(n)} seeds"
    text = (
        f"Across: how far a strategy is behind the best of the scenario on the same seed ({over}). Stroke: "
        "a seed. Mark: the mean. Line: its interval; an arrow means that it continues. Filled marks are "
        "separated from the best (paired t-test at 5 %, Holm’s adjustment for all pairs). Open marks are not "
        "separated, which does not mean equal. The best is chosen on the same seeds, so intervals hold "
        "together at 95 % for all pairs of a scenario (Bonferroni) and are wider than the test needs."
    )
    if max(n) < MIN_SEEDS:
        text += f" Fewer than {MIN_SEEDS} seeds show only large and steady differences."
    return f"{text} A test set is the same for all seeds; intervals do not cover its choice."


def _behind_caption(differences: Sequence[Difference]) -> str:
    """Return the number of separated strategies, and the seeds to separate the closest other strategy."""
    compared = [difference for difference in differences[1:] if difference.gap]
    unseparated = [difference for difference in compared if difference.open]
    text = f"Separated from {differences[0].strategy}: {len(compared) - len(unseparated)} of {len(compared)}."
    if unseparated and (seeds := seeds_text(unseparated[0].gap)):
        text += f" To separate {unseparated[0].strategy}: {seeds}."
    return text


def seeds_text(gap: Gap | None) -> str:
    """Return the number of seeds to separate strategies, in words; empty without a number."""
    return "" if gap is None or gap.needed is None else numbers.about_seeds(gap.needed)


def effect_entry(effect: Effect, write: Callable[[float], str]) -> TableEntry:
    """Return a mean over seeds with the interval; `write` makes text of a number."""
    interval = numbers.interval(effect.low, effect.high, write) if effect.n > 1 else ""
    return TableEntry(write(effect.mean), interval, effect.mean)


def difference_entry(effect: Effect, metric: Measure) -> TableEntry:
    """Return a difference and the interval, in percentage points where the metric is a share."""
    return effect_entry(effect, numbers.percent if metric.share else lambda value: numbers.number(value, 3))


def _behind_table(scenario: RecordedScenario, differences: Sequence[Difference]) -> PageTable:
    metric = scenario.columns[0]
    nothing = TableEntry("")
    lines = [
        (
            TableEntry(difference.strategy),
            difference_entry(difference.gap.effect, metric),
            TableEntry(numbers.number(difference.gap.p, 2)),
            TableEntry("yes" if difference.gap.worse else "no"),
            TableEntry("" if difference.gap.needed is None else f"{difference.gap.needed:,}"),
        )
        if difference.gap
        else (
            TableEntry(difference.strategy),
            TableEntry("best" if difference is differences[0] else numbers.MISSING),
            *(nothing, nothing, nothing),
        )
        for difference in differences
    ]
    unit = " (points)" if metric.share else ""
    headings = ["Strategy", f"Behind in {metric.in_text}{unit}", "p (Holm)", "Separated", "Seeds that would"]
    return PageTable(scenario.label, difference_frame([(scenario, differences)]), headings, lines)


def difference_frame(compared: Sequence[Compared]) -> pd.DataFrame:
    """Return a table with a row per comparison; positive differences are worse than the best.

    Intervals hold together for all pairs of strategies of a scenario.
    """
    return pd.DataFrame(
        {
            "scenario": scenario.label,
            "metric": scenario.columns[0].name,
            "best": differences[0].strategy,
            "strategy": difference.strategy,
            "behind": gap.effect.mean,
            "low": gap.effect.bounds[0],
            "high": gap.effect.bounds[1],
            "p": gap.effect.p,
            "p holm": gap.p,
            "seeds": gap.effect.n,
            "worse": gap.worse,
            "seeds that would separate": gap.needed,
        }
        for scenario, differences in compared
        for difference in differences
        if (gap := difference.gap)
    )


def _draw_behind(scenario: RecordedScenario, differences: Sequence[Difference]) -> svg.Drawing:
    metric, best = scenario.columns[0], differences[0]
    description = (
        f"How far strategies stay behind {best.strategy}, {scenario.label}: {_behind_caption(differences)}"
    )
    texts = []
    for difference in differences:
        words = "the best" if difference is best else "not compared"
        if difference.gap:
            entry = difference_entry(difference.gap.effect, metric)
            behind = f"{entry.text}{' points' if metric.share else ''} behind {entry.detail}"
            words = f"{behind}, {'not separated' if difference.open else 'separated'}"
        texts.append((difference.cell, f"{difference.strategy}: {words}"))
    paint = partial(_paint_behind, differences=differences, metric=metric)
    return draw_rows(texts, paint, description)


def _paint_behind(axes: svg.Axes, differences: Sequence[Difference], metric: Measure) -> None:
    seen = [value for difference in differences for value in difference.values]
    reach = max((abs(value) for value in seen), default=0.0) or 1.0
    ends = [
        end
        for difference in differences
        if difference.gap
        for end in (difference.gap.effect.low, difference.gap.effect.high)
    ]
    low = max(min([0.0, *seen, *ends]), min([0.0, *seen]) - MAX_OVERHANG * reach / 2)
    high = min(max([0.0, *seen, *ends]), max([0.0, *seen]) + MAX_OVERHANG * reach / 2)
    room = 0.05 * (high - low) or reach
    edges = (low - room, high + room)
    axes.set_xlim(*edges)
    axes.axvline(0, color=svg.MUTED, linewidth=0.8)
    for y, difference in enumerate(differences):
        index = difference.cell.index
        svg.strokes(axes, index, difference.values, y)
        if difference.gap:
            effect = difference.gap.effect
            if isfinite(effect.low):
                svg.interval(axes, index, y, (effect.low, effect.high), edges)
            svg.dot(axes, index, (effect.mean, y), 8, edge=1.8, hollow=not difference.gap.worse)
        elif y == 0:  # the best itself; others without an effect diverged
            svg.dot(axes, index, (0, y), 7, "D")
    axes.locator_params(axis="x", nbins=6)
    title = f"Behind the best in {metric.in_text}{' (points)' if metric.share else ''}"
    svg.across(axes, title, share=metric.share)
