"""Input and output of every part of the page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from reports.figures.svg import Drawing
from reports.records.records import Cell, RecordedScenario, RecordedSuite
from reports.records.summary import Row, summarise
from reports.statistics.differences import Difference, differences
from reports.statistics.ranking import Ranking, RankingEntry, ranking


@dataclass(frozen=True, slots=True, eq=False)
class Results:
    """A suite with its scenarios summarised, once for all sections."""

    suite: RecordedSuite
    scenarios: tuple[tuple[RecordedScenario, list[Row]], ...]

    @classmethod
    def of(cls, suite: RecordedSuite) -> Results:
        """The results of a suite."""
        return cls(suite, tuple((scenario, summarise(scenario)) for scenario in suite.scenarios()))

    @property
    def mean_over_seeds(self) -> str:
        """The note in captions that seeds were averaged; empty for a single seed."""
        return ", mean over seeds" if len(self.suite.seeds) > 1 else ""

    def rankings(self) -> list[Ranking]:
        """The ranking of every scenario."""
        return [ranking(scenario, rows) for scenario, rows in self.scenarios]

    def differences(self) -> list[list[Difference]]:
        """For every scenario, how far its strategies are behind the best."""
        return [differences(scenario, rows) for scenario, rows in self.scenarios]


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
    template: str
    note: str  # what all of its figures or tables have in common
    shows: Mapping[str, Any] = field(default_factory=dict)
    figures: Sequence[tuple[str, Drawing]] = ()  # by their content, in words
    tables: Sequence[Table] = ()


@dataclass(frozen=True, slots=True)
class Card:
    """A figure of one scenario."""

    scenario: str
    figure: Drawing
    caption: str = ""  # beyond its note
    legend: tuple[
        tuple[int, str], ...
    ] = ()  # index and label of strategies, where the figure does not name them
    cells: Sequence[Cell] = ()  # the runs behind it


def figures(cards: Sequence[Card]) -> list[tuple[str, Drawing]]:
    """The figures of some cards, by their scenarios."""
    return [(card.scenario, card.figure) for card in cards]


def mean_over(seeds: Sequence[int]) -> str:
    """The note in a caption on averaging, from the seeds of each cell; empty for single ones."""
    least, most = min(seeds), max(seeds)
    if most == 1:
        return ""
    return f", mean over {most} seeds" if least == most else f", mean over {least} to {most} seeds"
