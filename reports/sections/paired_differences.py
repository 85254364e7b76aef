"""Behind the best: paired differences over seeds, with tests against chance."""

from collections.abc import Callable, Sequence
from functools import partial
from math import isfinite

import pandas as pd

from fl_core.text import many
from reports import numbers
from reports.comparisons import Difference, Gap
from reports.figures import svg
from reports.inference import Effect
from reports.numbers import Measure
from reports.records.records import RecordedScenario
from reports.sections.rows import draw
from reports.sections.section import Card, Results, Section, cards_section
from reports.tables import PageTable, TableEntry, download

FEW = 5  # seeds; with fewer, the page notes how little they can show
ROOM = 2.2  # times the largest difference of a seed, beyond which intervals are cut

Compared = tuple[RecordedScenario, Sequence[Difference]]


def section(results: Results) -> Section | None:
    """Return the section with a card per scenario; None without any comparison."""
    compared = [pair for pair in results.differences.items() if pair[1]]
    if not compared:
        return None
    cards = [
        Card(
            scenario.label,
            {None: _draw(scenario, _foremost(results, differences))},
            _caption(differences),
            places=[scenario.place],
            runs=len(scenario.runs),
        )
        for scenario, differences in compared
    ]
    table = frame(compared)
    link = download("Differences", results.suite.name, "differences", table)
    tables = [PageTable("all", table), *(_table(*pair) for pair in compared)]
    return cards_section(
        "behind",
        "Behind the best",
        _note(compared) + results.only_foremost,
        [("", cards)],
        tables=tables,
        downloads=[link],
    )


def _foremost(results: Results, differences: Sequence[Difference]) -> list[Difference]:
    """Return the best of a scenario and the foremost strategies."""
    best, *rest = differences
    return [best, *(difference for difference in rest if difference.strategy in results.foremost)]


def _note(compared: Sequence[Compared]) -> str:
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
    if max(n) < FEW:
        text += f" Fewer than {FEW} seeds show only large and steady differences."
    return f"{text} A test set is the same for all seeds; intervals do not cover its choice."


def _caption(differences: Sequence[Difference]) -> str:
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


def _table(scenario: RecordedScenario, differences: Sequence[Difference]) -> PageTable:
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
    return PageTable(scenario.label, frame([(scenario, differences)]), headings, lines)


def frame(compared: Sequence[Compared]) -> pd.DataFrame:
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


def _draw(scenario: RecordedScenario, differences: Sequence[Difference]) -> svg.Drawing:
    metric, best = scenario.columns[0], differences[0]
    description = f"How far strategies stay behind {best.strategy}, {scenario.label}: {_caption(differences)}"
    texts = []
    for difference in differences:
        words = "the best" if difference is best else "not compared"
        if difference.gap:
            entry = difference_entry(difference.gap.effect, metric)
            behind = f"{entry.text}{' points' if metric.share else ''} behind {entry.detail}"
            words = f"{behind}, {'not separated' if difference.open else 'separated'}"
        texts.append((difference.cell, f"{difference.strategy}: {words}"))
    paint = partial(_paint, differences=differences, metric=metric)
    return draw(texts, paint, description)


def _paint(axes: svg.Axes, differences: Sequence[Difference], metric: Measure) -> None:
    seen = [value for difference in differences for value in difference.values]
    reach = max((abs(value) for value in seen), default=0.0) or 1.0
    ends = [
        end
        for difference in differences
        if difference.gap
        for end in (difference.gap.effect.low, difference.gap.effect.high)
    ]
    low = max(min([0.0, *seen, *ends]), min([0.0, *seen]) - ROOM * reach / 2)
    high = min(max([0.0, *seen, *ends]), max([0.0, *seen]) + ROOM * reach / 2)
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
