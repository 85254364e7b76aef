"""Sections of the ranking in every scenario, and of distances behind the best, paired over seeds.

`reports/page.py` calls `section` and `behind_the_best`. Ranks, columns and notes of the tables come from
`reports/ranking_table.py`, gaps and p-values from `reports/comparisons.py`.
"""

from collections.abc import Callable, Mapping, Sequence
from math import inf, isfinite, isnan, nan
from typing import Any

import pandas as pd

from fl_core.text import many
from reports import numbers
from reports.comparisons import Gap
from reports.figures import svg
from reports.numbers import Measure
from reports.ranking_table import NOTHING, Ranking, note_on_tables, ranking_frame, spread_text
from reports.records.records import RecordedScenario
from reports.sections.section import Card, Results, Section, cards_section, draw_rows
from reports.statistical_inference import Effect
from reports.tables import UNKNOWN, PageTable, TableEntry, download

MIN_SEEDS = 5  # seeds; with fewer, the page notes how little they can show
MAX_OVERHANG = 2.2  # times the largest difference of a seed, beyond which intervals are cut

Compared = tuple[RecordedScenario, Mapping[str, Gap]]  # with the gaps to its best strategy


def section(results: Results) -> Section:
    """Return the section with the overview of several scenarios and a table for each."""
    rankings = results.rankings
    numbers = ranking_frame(results.scenarios)
    glance = at_a_glance(results) if len(rankings) > 1 else None
    blocks, tables = (
        [],
        [PageTable("overview", numbers, glance["headings"], glance["lines"])] if glance else [],
    )
    for ranking, gaps in zip(rankings, results.gaps.values(), strict=True):
        block: dict[str, Any] = {
            "ranking": ranking,
            "against": against(ranking.scenario, gaps),
            "against_title": f"Against the best in {ranking.scenario.columns[0].in_text}",
            "finding": _finding(ranking, gaps),
        }
        blocks.append(block)
        tables.append(_scenario_table(block))
    note = note_on_tables(rankings, any(block["against"] for block in blocks))
    link = download("All tables", results.suite.name, "ranking", numbers)
    shows = {"glance": glance, "blocks": blocks}
    return Section("ranking", "Ranking", "ranking.html.j2", note, shows, tables=tables, downloads=[link])


def against(scenario: RecordedScenario, gaps: Mapping[str, Gap]) -> list[TableEntry]:
    """Return an entry per line of a scenario: separated from the best or not, and the seeds needed."""
    if not gaps:
        return []
    entries = [TableEntry("best", value=-1)]
    for cell in scenario.ranked[1:]:
        gap = gaps.get(cell.strategy)
        if gap is None:
            entries.append(UNKNOWN)
        elif gap.worse:
            entries.append(TableEntry("separated", value=0))
        else:
            needed = seeds_text(gap)
            entries.append(
                TableEntry("not separated", f"{needed} would" if needed else "", gap.needed or inf)
            )
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
    return PageTable(ranking.scenario.label, ranking_frame([ranking.scenario]), headings, lines)


def _finding(ranking: Ranking, gaps: Mapping[str, Gap]) -> str:
    """Return the leader of a scenario, and the number of separated strategies."""
    (leader, entries), metric = ranking.lines[0], ranking.scenario.columns[0]
    if leader.diverged or isnan(leader.final[metric.name].mean):
        return ""
    text = f"{leader.strategy} {entries[0].text}{' %' if metric.share else ''} in {metric.in_text}"
    if not gaps:
        return text
    apart, rest = sum(gap.worse for gap in gaps.values()), many(len(gaps), "other")
    return f"{text}, {f'separated from {apart} of' if apart else 'not separated from any of'} {rest}"


def at_a_glance(results: Results) -> dict[str, Any]:
    """Return a table of the final values of all strategies, in the order of the standings, in all scenarios.

    The longer side goes down the page, where a phone can scroll.
    """
    order, scenarios = results.order, results.scenarios
    ranks = {scenario.columns[0] for scenario in scenarios}
    title = "Final value of each scenario’s metric"
    if len(ranks) == 1:
        metric = ranks.pop()
        unit = " (%)" if metric.share else ""
        title = f"Final {metric.in_text}, mean ± standard deviation over seeds{unit}"
    columns = {
        ranking.scenario.label: [*_glances(ranking.scenario, order, gaps), ranking.pooled[0]]
        for ranking, gaps in zip(results.rankings, results.gaps.values(), strict=True)
    }
    table = pd.DataFrame(columns, index=[*order, "Trained centrally"])
    if not any(ranking.pooled[0].text for ranking in results.rankings):
        table = table[:-1]
    down = len(order) > len(scenarios)
    table = table if down else table.T
    return {
        "title": title,
        "down": down,
        "headings": ["Strategy" if down else "Scenario", *table.columns],
        "lines": [(TableEntry(name), *row) for name, row in zip(table.index, table.to_numpy(), strict=True)],
        "compared": any(results.gaps.values()),
    }


def _glances(scenario: RecordedScenario, order: Sequence[str], gaps: Mapping[str, Gap]) -> list[TableEntry]:
    """Return an entry per strategy."""
    metric = scenario.columns[0]
    cells = {cell.strategy: cell for cell in scenario.cells}
    means = pd.Series({name: cell.final[metric.name].mean for name, cell in cells.items()}, dtype=float)
    finished = means[[name for name, cell in cells.items() if not cell.diverged]]
    top = finished.max() if metric.higher else finished.min()
    worst, room = means.min() if metric.higher else means.max(), means.max() - means.min()
    entries = []
    for strategy in order:
        if strategy not in cells:
            entries.append(TableEntry("", "not run", nan))
            continue
        cell, mean = cells[strategy], float(means[strategy])
        text, detail = spread_text(cell.final[metric.name], metric)
        if cell.diverged:
            detail = f"{cell.diverged} diverged"
        elif cell.stalled:
            detail = f"{cell.stalled} stalled"
        entry = TableEntry(
            text,
            detail,
            mean,
            best=metric.higher is not None and not cell.diverged and text == metric.text(top),
            place=round(abs(mean - worst) / room, 3) if room > 0 and not isnan(mean) else 0.0,
            apart=("separated" if gap.worse else "not separated") if (gap := gaps.get(strategy)) else "",
        )
        entries.append(entry)
    return entries


def behind_the_best(results: Results) -> Section | None:
    """Return the section with a card per scenario; None without any comparison."""
    compared = [(scenario, gaps) for scenario, gaps in results.gaps.items() if gaps]
    if not compared:
        return None
    cards = [
        Card(
            scenario.label,
            {None: _draw_behind(scenario, gaps, results.foremost)},
            _behind_caption(scenario, gaps),
            places=[scenario.place],
            runs=len(scenario.runs),
        )
        for scenario, gaps in compared
    ]
    table = difference_frame(compared)
    link = download("Differences", results.suite.name, "differences", table)
    return cards_section(
        "behind",
        "Behind the best",
        _behind_note(compared) + results.only_foremost,
        [("", cards)],
        tables=[PageTable("all", table)],
        downloads=[link],
    )


def _behind_note(compared: Sequence[Compared]) -> str:
    """Return the note that explains marks and intervals."""
    n = [gap.effect.n for _, gaps in compared for gap in gaps.values()]
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


def _behind_caption(scenario: RecordedScenario, gaps: Mapping[str, Gap]) -> str:
    """Return the number of separated strategies, and the seeds to separate the closest other strategy."""
    apart = sum(gap.worse for gap in gaps.values())
    text = f"Separated from {scenario.ranked[0].strategy}: {apart} of {len(gaps)}."
    closest = next((name for name, gap in gaps.items() if not gap.worse), None)
    if closest and (seeds := seeds_text(gaps[closest])):
        text += f" To separate {closest}: {seeds}."
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


def difference_frame(compared: Sequence[Compared]) -> pd.DataFrame:
    """Return a table with a row per comparison; positive differences are worse than the best.

    Intervals hold together for all pairs of strategies of a scenario.
    """
    return pd.DataFrame(
        {
            "scenario": scenario.label,
            "metric": scenario.columns[0].name,
            "best": scenario.ranked[0].strategy,
            "strategy": strategy,
            "behind": gap.effect.mean,
            "low": gap.effect.bounds[0],
            "high": gap.effect.bounds[1],
            "p": gap.effect.p,
            "p holm": gap.p,
            "seeds": gap.effect.n,
            "worse": gap.worse,
            "seeds that would separate": gap.needed,
        }
        for scenario, gaps in compared
        for strategy, gap in gaps.items()
    )


def _draw_behind(scenario: RecordedScenario, gaps: Mapping[str, Gap], foremost: Sequence[str]) -> svg.Drawing:
    """Return the figure of a scenario with a row per strategy: seeds, mean and interval behind the best."""
    metric, best = scenario.columns[0], scenario.ranked[0]
    rows = [
        (cell, gaps.get(cell.strategy))
        for cell in scenario.ranked
        if cell is best or cell.strategy in foremost
    ]
    texts = []
    for cell, gap in rows:
        words = "the best" if cell is best else "not compared"
        if gap:
            entry = difference_entry(gap.effect, metric)
            behind = f"{entry.text}{' points' if metric.share else ''} behind {entry.detail}"
            words = f"{behind}, {'separated' if gap.worse else 'not separated'}"
        texts.append((cell, f"{cell.strategy}: {words}"))
    caption = _behind_caption(scenario, gaps)
    description = f"How far strategies stay behind {best.strategy}, {scenario.label}: {caption}"

    def paint(axes: svg.Axes) -> None:
        drawn_gaps = [gap for _, gap in rows if gap]
        seen = [0.0, *(value for gap in drawn_gaps for value in gap.values)]
        ends = [*seen, *(end for gap in drawn_gaps for end in (gap.effect.low, gap.effect.high))]
        reach = max(map(abs, seen)) or 1.0
        low = max(min(ends), min(seen) - MAX_OVERHANG * reach / 2)
        high = min(max(ends), max(seen) + MAX_OVERHANG * reach / 2)
        room = 0.05 * (high - low) or reach
        edges = (low - room, high + room)
        axes.set_xlim(*edges)
        axes.axvline(0, color=svg.MUTED, linewidth=0.8)
        for y, (cell, gap) in enumerate(rows):
            if gap:
                svg.strokes(axes, cell.index, gap.values, y)
                if isfinite(gap.effect.low):
                    svg.interval(axes, cell.index, y, (gap.effect.low, gap.effect.high), edges)
                svg.dot(axes, cell.index, (gap.effect.mean, y), 8, edge=1.8, hollow=not gap.worse)
            elif y == 0:  # the best itself; others without an effect diverged
                svg.dot(axes, cell.index, (0, y), 7, "D")
        axes.locator_params(axis="x", nbins=6)
        title = f"Behind the best in {metric.in_text}{' (points)' if metric.share else ''}"
        svg.across(axes, title, share=metric.share)

    return draw_rows(texts, paint, description)
