"""Input and output of every part of the page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any

from jinja2 import Template

from benchmarks.colours import COLOURS, slots
from fl_core.schema import Clock
from reports.comparisons import Difference, PairedContrast, contrasts, differences
from reports.figures import look
from reports.figures.svg import Drawing
from reports.rankings import Ranking, Standings, ranking, standings
from reports.records.cells import Cell
from reports.records.records import RecordedScenario, RecordedSuite
from reports.tables import Download, PageTable

LEADERS = 6  # strategies in colour where there are many


@dataclass(frozen=True, eq=False)
class Results:
    """A suite with scenarios, prepared once for all sections."""

    suite: RecordedSuite
    scenarios: Sequence[RecordedScenario]
    index: Mapping[str, int]  # of every strategy: its colour, dash and marker

    @classmethod
    @lru_cache(maxsize=1)  # the terminal and the page show the same
    def of(cls, suite: RecordedSuite) -> Results:
        """Return the results of a suite.

        Highlighted strategies are drawn in ink; beside them, or of many strategies, only the leaders get
        colours.
        """
        places = slots([*suite.strategies, *(study.strategy for study in suite.studies)])
        index = {name: places[name] for name in suite.strategies}
        scenarios = suite.scenarios(index)
        highlighted = [name for name in suite.highlight if name in index]
        if highlighted or len(index) > look.MOST_COLOURED:
            order = ranked.order if (ranked := standings(scenarios)) else suite.strategies
            leaders = [name for name in order if name not in highlighted][:LEADERS]
            first = [name for name in suite.strategies if name in leaders]
            quiet = [name for name in suite.strategies if name not in (*first, *highlighted)]
            repeated = len(places) > len(COLOURS)  # leaders are told apart even then
            index = slots(first) if repeated else {name: places[name] for name in first}
            index |= {name: look.OWN + at for at, name in enumerate(highlighted)}
            index |= {name: look.QUIET + at for at, name in enumerate(quiet)}
            scenarios = suite.scenarios(index)
        return cls(suite, scenarios, index)

    @property
    def mean_over_seeds(self) -> str:
        """Note in captions on averaging over seeds; empty for a single seed."""
        return ", mean over seeds" if len(self.suite.seeds) > 1 else ""

    @cached_property
    def standings(self) -> Standings | None:
        """Standings of the strategies, with separation from the leader; None without any comparison."""
        return standings(self.scenarios)

    @property
    def order(self) -> list[str]:
        """All strategies, leader first; strategies without a comparison come last."""
        first = self.standings.order if self.standings else []
        return list(dict.fromkeys([*first, *self.suite.strategies]))

    @property
    def foremost(self) -> list[str]:
        """Strategies with a separate row or panel in figures: the highlighted and the leaders."""
        few = len(self.index) <= look.MOST_COLOURED
        return [name for name in self.order if few or not look.quiet(self.index[name])]

    @property
    def only_foremost(self) -> str:
        """Note on strategies left out of figures; empty if figures show all strategies."""
        n, first = len(self.index), len(self.foremost)
        highlighted = " and the highlighted" if any(map(look.own, self.index.values())) else ""
        return (
            f" Shown are {first} of {n} strategies, the leaders{highlighted}; files have all."
            if first < n
            else ""
        )

    @cached_property
    def rankings(self) -> list[Ranking]:
        """The ranking of every scenario."""
        return list(map(ranking, self.scenarios))

    @cached_property
    def differences(self) -> dict[RecordedScenario, list[Difference]]:
        """Differences of strategies to the best, by scenario."""
        return {scenario: differences(scenario) for scenario in self.scenarios}

    @cached_property
    def contrasts(self) -> list[PairedContrast]:
        """Contrasts of all pairs of strategies in every scenario, the largest difference first."""
        return contrasts(self.scenarios)


@dataclass(frozen=True, slots=True)
class Section:
    """A part of the page: `template` is rendered with `shows`; figures and tables are available as files."""

    anchor: str
    title: str
    template: str | Template  # of reports/templates, or from elsewhere
    note: str  # what all of its figures or tables have in common
    shows: Mapping[str, Any] = field(default_factory=dict)
    figures: Sequence[tuple[str, Drawing]] = ()  # by their content, in words
    tables: Sequence[PageTable] = ()
    downloads: Sequence[Download] = ()  # links at its end


@dataclass(frozen=True, slots=True)
class Card:
    """Figure of a scenario, or of several with equal figures; or a figure for each clock."""

    scenario: str
    figures: Mapping[Clock, Drawing] | Mapping[None, Drawing]  # by clock, or a single one
    caption: str = ""  # beyond its note
    legend: Sequence[tuple[int, str]] = ()  # strategies' indices and labels, if not named in the figure
    places: Sequence[int] = ()  # the scenarios, by their places on the page
    runs: int = 0  # the runs behind it


def cards_section(
    anchor: str,
    title: str,
    note: str,
    blocks: Sequence[tuple[str, Sequence[Card]]],
    *,
    tables: Sequence[PageTable] = (),
    downloads: Sequence[Download] = (),
) -> Section:
    """Return a section of cards, in blocks with titles; a single block needs none."""
    figures = [
        (" ".join(filter(None, (block, clock, card.scenario))), drawing)
        for block, cards in blocks
        for card in cards
        for clock, drawing in card.figures.items()
    ]
    return Section(anchor, title, "cards.html.j2", note, {"blocks": blocks}, figures, tables, downloads)


def legend(cells: Sequence[Cell]) -> list[tuple[int, str]]:
    """Return index and label of strategies for keys of figures."""
    return [(cell.index, cell.strategy) for cell in cells]


def mean_over(seeds: Sequence[int]) -> str:
    """Return the note in a caption on averaging, from the seeds of each cell; empty for single seeds."""
    return f", mean {over(seeds)}" if max(seeds) > 1 else ""


def over(seeds: Sequence[int]) -> str:
    """Return the number of seeds of each cell: "over 3 seeds", "over 2 to 5 seeds"."""
    fewest, largest = min(seeds), max(seeds)
    return f"over {largest} seeds" if fewest == largest else f"over {fewest} to {largest} seeds"
