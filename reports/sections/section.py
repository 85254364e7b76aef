"""Input (`Results`) and output (`Section`, `Card`) of every section, and figures with a row per strategy.

`reports/page.py` prepares the `Results` of a suite once; the modules beside this one turn them into sections.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache, partial
from typing import Any

import pandas as pd
from jinja2 import Template

from benchmarks.colours import COLOURS, slots
from fl_core.recorded_names import JOINT, Clock
from reports.comparisons import Gap, PairedContrast, contrasts, differences
from reports.figures import styles, svg
from reports.ranking_table import Ranking, Standings, ranking, standings
from reports.records.records import RecordedScenario, RecordedSuite, run_table
from reports.records.seed_summaries import Array, Cell
from reports.tables import Download, PageTable

LEADERS = 6  # strategies in colour, if a suite has too many for all to be
ROW_HEIGHT = 30  # height in pixels
WIDTH = svg.SIZE[0]
TOP, BOTTOM, RIGHT = 8, 44, 16
LETTER_WIDTH = 7.6  # pixels, about
MAX_LETTERS = 19  # letters per line

Rows = Sequence[tuple[Cell, Array]]  # strategies, and the numbers drawn for each


@dataclass(frozen=True, eq=False)
class Results:
    """A suite with scenarios, prepared once for all sections."""

    suite: RecordedSuite
    scenarios: Sequence[RecordedScenario]
    index: Mapping[str, int]  # of every strategy: its colour, dash and marker
    standings: Standings | None  # with separation from the leader; None without any comparison

    @classmethod
    @lru_cache(maxsize=1)  # the terminal and the page ask for the same suite, one after the other
    def of(cls, suite: RecordedSuite) -> Results:
        """Return the results of a suite.

        Highlighted strategies are drawn in ink; beside them, or of many strategies, only the leaders get
        colours.
        """
        places = slots([*suite.strategies, *(study.strategy for study in suite.studies)])
        index = {name: places[name] for name in suite.strategies}
        scenarios = suite.scenarios(index)
        ranked = standings(scenarios)
        highlighted = [name for name in suite.highlight if name in index]
        if highlighted or len(index) > styles.MOST_COLOURED:
            order = ranked.order if ranked else suite.strategies
            leaders = [name for name in order if name not in highlighted][:LEADERS]
            first = [name for name in suite.strategies if name in leaders]
            quiet = [name for name in suite.strategies if name not in (*first, *highlighted)]
            repeated = len(places) > len(COLOURS)  # leaders are told apart even then
            index = slots(first) if repeated else {name: places[name] for name in first}
            index |= {name: styles.OWN + at for at, name in enumerate(highlighted)}
            index |= {name: styles.QUIET + at for at, name in enumerate(quiet)}
            scenarios = [scenario.with_index(index) for scenario in scenarios]
        return cls(suite, scenarios, index, ranked)

    @property
    def mean_over_seeds(self) -> str:
        """Note in captions on averaging over seeds; empty for a single seed."""
        return ", mean over seeds" if len(self.suite.seeds) > 1 else ""

    @property
    def order(self) -> list[str]:
        """All strategies, leader first; strategies without a comparison come last."""
        first = self.standings.order if self.standings else []
        return list(dict.fromkeys([*first, *self.suite.strategies]))

    @property
    def foremost(self) -> list[str]:
        """Strategies with a separate row or panel in figures: the highlighted and the leaders."""
        few = len(self.index) <= styles.MOST_COLOURED
        return [name for name in self.order if few or not styles.quiet(self.index[name])]

    @property
    def only_foremost(self) -> str:
        """Note on strategies left out of figures; empty if figures show all strategies."""
        n, first = len(self.index), len(self.foremost)
        highlighted = " and the highlighted" if any(map(styles.highlighted, self.index.values())) else ""
        return (
            f" Shown are {first} of {n} strategies, the leaders{highlighted}; files have all."
            if first < n
            else ""
        )

    @cached_property
    def runs(self) -> pd.DataFrame:
        """The table of `run_table`; do not change it."""
        return run_table(self.suite)

    @cached_property
    def rankings(self) -> list[Ranking]:
        """The ranking of every scenario."""
        return list(map(ranking, self.scenarios))

    @cached_property
    def gaps(self) -> dict[RecordedScenario, dict[str, Gap]]:
        """Gaps of strategies to the best, by scenario."""
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
    template: str | Template  # a file in reports/templates, or a compiled template
    note: str  # the text that explains all figures or tables of the section
    shows: Mapping[str, Any] = field(default_factory=dict)
    figures: Sequence[tuple[str, svg.Drawing]] = ()  # by the names of their files, in words
    tables: Sequence[PageTable] = ()
    downloads: Sequence[Download] = ()  # links at the end of the section


@dataclass(frozen=True, slots=True)
class Card:
    """Figure of a scenario, or of several with equal figures; or a figure for each clock."""

    scenario: str
    figures: Mapping[Clock, svg.Drawing] | Mapping[None, svg.Drawing]  # by clock, or a single one
    caption: str = ""  # in addition to the section's note
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


def over(seeds: Sequence[int]) -> str:
    """Return the number of seeds of each cell: "over 3 seeds", "over 2 to 5 seeds"."""
    fewest, largest = min(seeds), max(seeds)
    return f"over {largest} seeds" if fewest == largest else f"over {fewest} to {largest} seeds"


def draw_rows(
    texts: Sequence[tuple[Cell, str]],
    paint: Callable[[svg.Axes], None],
    description: str,
    row: float = ROW_HEIGHT,
) -> svg.Drawing:
    """Return axes with a row for each strategy: rows are 0, 1, … from the top.

    Args:
        texts: The strategies, from top to bottom, with their tooltips.
        paint: Draws the content of all rows.
        description: For screen readers.
        row: The height of a row in pixels.
    """
    names = [svg.two_lines(cell.strategy, MAX_LETTERS).split("\n") for cell, _ in texts]

    def rows(axes: svg.Axes) -> None:
        axes.set_ylim(len(texts) - 0.5, -0.5)
        axes.set_yticks([])
        axes.grid(visible=True, axis="x")  # faint vertical lines instead of horizontal ones
        paint(axes)
        for y, lines in enumerate(names):
            svg.row_name(axes, y, lines)

    margin = 18 + LETTER_WIDTH * max(len(line) for lines in names for line in lines)
    size, margins = (WIDTH, TOP + BOTTOM + row * len(texts)), (margin, RIGHT, TOP, BOTTOM)
    return svg.Drawing(rows, description, size, margins, said={cell.index: text for cell, text in texts})


def rows_section(
    results: Results,
    anchor: str,
    title: str,
    note: str,
    *,
    measured: Callable[[Cell], Array],
    paint: Callable[[Rows, svg.Axes], None],
    row: float = ROW_HEIGHT,
    about: str,
    words: Callable[[Array], str],
    all_strategies: bool = False,
) -> Section | None:
    """Return a section with a card for all scenarios with equal numbers; None without any number.

    Args:
        results: The scenarios.
        anchor: The section's name in links.
        title: The section's heading.
        note: The text that explains all figures of the section.
        measured: The numbers of a strategy in a scenario.
        paint: Draws the rows, one for each foremost strategy with numbers.
        row: The height of a row in pixels.
        about: The topic of the figures, for screen readers.
        words: Returns a strategy's numbers in words, for tooltips and screen readers.
        all_strategies: Whether all strategies have a row, and not only the foremost.
    """
    groups: dict[tuple[tuple[str, bytes], ...], tuple[list[RecordedScenario], Rows]] = {}
    for scenario in results.scenarios:
        cells_shown = [cell for cell in scenario.cells if all_strategies or cell.strategy in results.foremost]
        if cells := [(cell, values) for cell in cells_shown if len(values := measured(cell))]:
            content = tuple((cell.strategy, values.tobytes()) for cell, values in cells)
            groups.setdefault(content, ([], cells))[0].append(scenario)
    cards = []
    for scenarios, rows in groups.values():
        heading, labels = _together(scenarios)
        texts = [(cell, f"{cell.strategy}: {words(values)}") for cell, values in rows]
        description = f"{about}, {heading}: {'; '.join(text for _, text in texts)}"
        figure = draw_rows(texts, partial(paint, rows), description, row)
        runs = sum(len(scenario.runs) for scenario in scenarios)
        cards.append(
            Card(
                heading,
                {None: figure},
                labels,
                (),
                [member.place for member in scenarios],
                runs,
            )
        )
    note += "" if all_strategies else results.only_foremost
    return cards_section(anchor, title, note, [("", cards)]) if cards else None


def _together(scenarios: Sequence[RecordedScenario]) -> tuple[str, str]:
    """Return the title of a figure of several scenarios, from common conditions, and the labels."""
    labels = [scenario.label for scenario in scenarios]
    conditions = [scenario.conditions for scenario in scenarios]
    if len(labels) == 1:
        return labels[0], ""
    common = [words for words in conditions[0] if all(words in parts for parts in conditions)]
    title = JOINT.join(common) or f"{len(labels)} scenarios"
    return title, f"The same in {len(labels)} scenarios: {'; '.join(labels)}."
