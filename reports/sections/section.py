"""Input and output of every part of the page."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeVar

import pandas as pd
from jinja2 import Template

from reports.figures import look
from reports.figures.svg import Drawing
from reports.records.records import RecordedScenario, RecordedSuite
from reports.records.summary import Row, summarise
from reports.statistics.differences import Difference, differences
from reports.statistics.ranking import Ranking, RankingEntry, ranking
from reports.statistics.standings import Standings, standings

Shown = TypeVar("Shown")  # what a figure is drawn from
LEADERS = 6  # strategies in colour where there are more than colours


@dataclass(frozen=True, eq=False)
class Results:
    """A suite with its scenarios summarised, once for all sections."""

    suite: RecordedSuite
    scenarios: tuple[tuple[RecordedScenario, list[Row]], ...]
    index: Mapping[str, int]  # of every strategy: its colour, dash and marker

    @classmethod
    def of(cls, suite: RecordedSuite) -> Results:
        """The results of a suite; of more strategies than there are colours, the leaders get them."""
        found = [(scenario, summarise(scenario)) for scenario in suite.scenarios()]
        index = {name: at for at, name in enumerate(suite.strategies)}
        if len(index) > len(look.LIGHT):
            index = _leaders_in_colour(suite.strategies, standings(found))
            scenarios = [_coloured(scenario, index) for scenario, _ in found]
            found = [(scenario, summarise(scenario)) for scenario in scenarios]
        return cls(suite, tuple(found), index)

    @property
    def mean_over_seeds(self) -> str:
        """The note in captions that seeds were averaged; empty for a single seed."""
        return ", mean over seeds" if len(self.suite.seeds) > 1 else ""

    @cached_property
    def standings(self) -> Standings | None:
        """Who leads, and whom the seeds separate from the leader; None where nothing can be compared."""
        return standings(self.scenarios)

    @property
    def order(self) -> list[str]:
        """All strategies, the leader first; those that cannot be compared come last."""
        first = self.standings.order if self.standings else []
        return list(dict.fromkeys([*first, *self.suite.strategies]))

    @cached_property
    def rankings(self) -> list[Ranking]:
        """The ranking of every scenario."""
        return [ranking(scenario, rows) for scenario, rows in self.scenarios]

    @cached_property
    def differences(self) -> list[list[Difference]]:
        """For every scenario, how far its strategies are behind the best."""
        return [differences(scenario, rows) for scenario, rows in self.scenarios]

    def place(self, scenario: RecordedScenario) -> int:
        """Which scenario of the page it is, from 1: its name in links and in the picker."""
        return 1 + [one.label for one, _ in self.scenarios].index(scenario.label)


def _leaders_in_colour(strategies: Sequence[str], found: Standings | None) -> dict[str, int]:
    """Colours for the first few, in the order of the alphabet; the others are quiet."""
    first = (found.order if found else list(strategies))[:LEADERS]
    leading = [name for name in strategies if name in first]
    others = [name for name in strategies if name not in first]
    return {name: at for at, name in enumerate(leading)} | {
        name: look.QUIET + at for at, name in enumerate(others)
    }


def _coloured(scenario: RecordedScenario, index: Mapping[str, int]) -> RecordedScenario:
    cells = tuple(replace(cell, index=index[cell.strategy]) for cell in scenario.cells)
    return replace(scenario, cells=cells)


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """A table as files: numbers for programs, and, where it is also printed, lines of text."""

    name: str
    numbers: pd.DataFrame
    headings: Sequence[str] = ()
    lines: Sequence[Sequence[RankingEntry]] = ()


@dataclass(frozen=True, slots=True)
class Section:
    """A part of the page: `template` is rendered with `shows`; figures and tables are available as files."""

    anchor: str
    title: str
    template: str | Template  # of reports/templates, or from elsewhere
    note: str  # what all of its figures or tables have in common
    shows: Mapping[str, Any] = field(default_factory=dict)
    figures: Sequence[tuple[str, Drawing]] = ()  # by their content, in words
    tables: Sequence[Table] = ()


@dataclass(frozen=True, slots=True)
class Card:
    """A figure of one scenario, or of several in which it would be the same."""

    scenario: str
    figure: Drawing
    caption: str = ""  # beyond its note
    legend: tuple[
        tuple[int, str], ...
    ] = ()  # index and label of strategies, where the figure does not name them
    places: Sequence[int] = ()  # the scenarios, by their places on the page
    runs: int = 0  # the runs behind it


def figures(cards: Sequence[Card]) -> list[tuple[str, Drawing]]:
    """The figures of some cards, by their scenarios."""
    return [(card.scenario, card.figure) for card in cards]


def mean_over(seeds: Sequence[int]) -> str:
    """The note in a caption on averaging, from the seeds of each cell; empty for single ones."""
    least, most = min(seeds), max(seeds)
    if most == 1:
        return ""
    return f", mean over {most} seeds" if least == most else f", mean over {least} to {most} seeds"


def once(
    found: Sequence[tuple[RecordedScenario, Shown]], content: Callable[[Shown], Hashable]
) -> list[tuple[list[RecordedScenario], Shown]]:
    """Scenarios in which a figure would have the same content, in the order of the first of each."""
    groups: dict[Hashable, tuple[list[RecordedScenario], Shown]] = {}
    for scenario, shown in found:
        groups.setdefault(content(shown), ([], shown))[0].append(scenario)
    return list(groups.values())


def together(scenarios: Sequence[RecordedScenario]) -> tuple[str, str]:
    """A title for a figure of several scenarios, the parts that their labels share; and which they are."""
    labels = [one.label for one in scenarios]
    if len(labels) == 1:
        return labels[0], ""
    parts = [label.split(" · ") for label in labels]
    common = [part for part in parts[0] if all(part in other for other in parts)]
    title = " · ".join(common) or f"{len(labels)} scenarios"
    return title, f"The same in {len(labels)} scenarios: {'; '.join(labels)}."
