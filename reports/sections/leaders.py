"""First section of the page: the standings, the certainty of the lead, and the leaders' curves."""

from dataclasses import dataclass, replace
from math import isfinite
from typing import Any

import pandas as pd

from fl_core.schema import Clock
from fl_core.text import many
from reports import numbers
from reports.figures import look, svg
from reports.numbers import Measure
from reports.rankings import Standings, StrategyStanding
from reports.records.cells import Cell, band, over_scenarios
from reports.records.records import RecordedScenario
from reports.sections.curves import Plot, scale
from reports.sections.paired_differences import effect_entry, seeds_text
from reports.sections.rows import draw
from reports.sections.section import Results, Section
from reports.tables import PageTable, TableEntry, download

ROW = 31
SHOWN = 10  # strategies in the first figure
CURVES = 4  # in colour beside it


def section(results: Results) -> Section | None:
    """Return the section of standings and curves; None with fewer than two comparable strategies."""
    if results.standings is None:
        return None
    answer = Answer(results, results.standings)
    standing, plot, table = answer.draw(), _leaders(results, answer.standings), answer.table()
    shows = {
        "standing": standing,
        "title": answer.title,
        "caption": answer.caption,
        "curves": plot,
        "table": table,
        "download": download("Standings", results.suite.name, "standings", table.numbers),
    }
    figures = [("standings", standing), *([("leaders", plot["figure"])] if plot else [])]
    return Section("answer", "Who leads", "answer.html.j2", "", shows, figures, [table])


@dataclass(frozen=True, slots=True, eq=False)
class Answer:
    """The standings of a suite, by mean rank or by the final value of the only scenario."""

    results: Results
    standings: Standings

    @property
    def metric(self) -> Measure:
        """Metric for ranking."""
        return self.results.scenarios[0].columns[0]

    @property
    def title(self) -> str:
        """Title of the figure: mean rank or final metric."""
        if not self.standings.by_rank:
            return f"Final {self.metric.in_text}"
        return f"Mean rank over {many(self.standings.scenarios, 'scenario')}"

    @property
    def caption(self) -> str:
        """Caption of the standings: strategies, seeds, and the test of separation."""
        n, seeds = len(self.standings.lines), self.standings.seeds
        highlighted = ", and the highlighted" if len(self.shown) > SHOWN else ""
        text = f"The first {SHOWN} of {n}{highlighted}. " if n > SHOWN else ""
        if seeds < 2:
            return f"{text}One seed, hence no interval."
        return (
            f"{text}Mark: mean over {many(seeds, 'seed')}; diamond: the leader. Line: 95\N{NO-BREAK SPACE}% "
            "interval of the mean. Filled marks are separated from the leader, open marks are not."
        )

    @property
    def shown(self) -> list[StrategyStanding]:
        """The first strategies, and the highlighted."""
        index = self.results.index
        return [
            line
            for at, line in enumerate(self.standings.lines)
            if at < SHOWN or look.own(index[line.strategy])
        ]

    def write(self, value: float) -> str:
        """Return a mean rank or a value of the metric as text."""
        return numbers.minus(f"{value:.1f}") if self.standings.by_rank else self.metric.text(value)

    def table(self) -> PageTable:
        """Return the standings as a table with a line per strategy, leader first."""
        score = "Mean rank" if self.standings.by_rank else self.metric.heading
        headings = ["Strategy", score, "Behind the leader", "p (Holm)", "Separated from the leader"]
        lines = [
            (TableEntry(line.strategy), effect_entry(line.score, self.write), *self._behind(line))
            for line in self.standings.lines
        ]
        return PageTable("standings", frame(self.standings), headings, lines)

    def _behind(self, line: StrategyStanding) -> tuple[TableEntry, ...]:
        if line.gap is None:
            leads = TableEntry("leads" if line is self.standings.leader else numbers.MISSING)
            return TableEntry(""), TableEntry(""), leads
        needed = seeds_text(line.gap)
        verdict = TableEntry("no", f"{needed} would" if needed else "") if line.open else TableEntry("yes")
        p = TableEntry(numbers.number(line.gap.p, 2), value=line.gap.p)
        return effect_entry(line.gap.effect, self.write), p, verdict

    def draw(self) -> svg.Drawing:
        """Return a figure with a row per first strategy: mean, interval, separation from the leader."""
        texts = []
        for line in self.shown:
            entry = effect_entry(line.score, self.write)
            text = f"{line.strategy} {entry.text} {entry.detail}".rstrip()
            separation = ", not separated from the leader" if line.open else ""
            texts.append((Cell(line.strategy, self.results.index[line.strategy], ()), text + separation))
        return draw(texts, self._paint, f"{self.title}: {'; '.join(text for _, text in texts)}", ROW)

    def _paint(self, axes: svg.Axes) -> None:
        by_rank, lines = self.standings.by_rank, self.shown
        means = [line.score.mean for line in lines]
        ends = [end for line in lines if line.score.n > 1 for end in (line.score.low, line.score.high)]
        if by_rank:
            start, right = 1.0, float(len(self.standings.lines))
        else:
            reach = (max(means) - min(means)) or abs(means[0]) or 1.0
            start = max(min([*means, *ends]), min(means) - reach)
            right = min(max([*means, *ends]), max(means) + reach)
        room = 0.04 * (right - start) or 0.5
        axes.set_xlim(start - room, right + room)
        edges = (start, right) if by_rank else (start - room, right + room)
        for y, line in enumerate(lines):
            index, score = self.results.index[line.strategy], line.score
            if isfinite(score.low):
                low, high = score.low, score.high
                if by_rank:  # there is no rank beyond
                    low, high = max(low, start), min(high, right)
                svg.interval(axes, index, y, (low, high), edges)
            mark, size = ("D", 7.5) if line is self.standings.leader else ("o", 8)
            svg.dot(axes, index, (score.mean, y), size, mark, edge=1.8, hollow=line.open or score.n < 2)
        axes.locator_params(axis="x", nbins=6, integer=by_rank)
        title = "Mean rank (1 is best)" if by_rank else self.metric.heading
        svg.across(axes, title, share=not by_rank and self.metric.share)


def frame(standings: Standings) -> pd.DataFrame:
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


def _leaders(results: Results, standings: Standings) -> dict[str, Any] | None:
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
            own = over_scenarios(cells, metric.name, clock) if several else band(cells[0], metric.name, clock)
            bands += [own] if own.n else []
    if not bands:
        return None
    leading = [
        name for at, name in enumerate(standings.order) if at < CURVES or look.own(results.index[name])
    ]
    shown = [
        replace(line, cell=replace(line.cell, index=look.QUIET + line.cell.index))
        if line.cell.strategy not in leading and not look.quiet(line.cell.index)
        else line
        for line in bands
    ]
    label = f"mean of {len(scenarios)} scenarios" if several else first.label
    place = replace(first, label=label, cells=tuple(line.cell for line in shown))
    colour = [(line.cell.index, line.cell.strategy) for line in shown if line.cell.strategy in leading]
    seeds, others = min(line.n for line in bands), len(shown) - len(colour)
    where = f"of {many(len(scenarios), 'scenario')}" if several else f"in {first.label}"
    over = f"Line: mean {where}" if several or seeds > 1 else f"Line: one seed {where}"
    band_text = f". Band: minimum to maximum of {many(seeds, 'seed')}" if seeds > 1 else ""
    grey = f" Grey: {many(others, 'other strategy')}." if others else ""
    return {
        "title": "Learning curves of the leaders" if others else "Learning curves",
        "figure": Plot(place, metric, clock, shown, scale(metric, [place], shown)).draw(),
        "legend": colour,
        "caption": f"{over}{band_text}.{grey}",
    }
