"""The ranking as tables for the terminal, printed by `asyncfl run` and `asyncfl report`.

Free: columns and remarks.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from textwrap import fill
from typing import TYPE_CHECKING

from fl_core.text import many
from reports.ranking_table import NO_SURROGATE, STALLED, Ranking
from reports.records.records import RecordedSuite
from reports.sections.overview import headline, how_tested, one_seed, transfers, what_is_open
from reports.sections.section import Results

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType
    from rich.table import Table

GAP = 2  # blanks between columns

Grid = list[list[str]]  # lines of cells, the first one of headings


def tables(suite: RecordedSuite) -> RenderableType:
    """Return a table per scenario, and the significant differences."""
    from rich.console import Group
    from rich.text import Text

    if not suite.runs:
        return Text(f"No run of '{suite.name}' is recorded.")
    results = Results.of(suite)
    parts = [part for ranking in results.rankings for part in (Fitted(ranking), Text())]
    tested = " ".join(filter(None, (how_tested(results), what_is_open(results))))
    warning = " ".join(filter(None, (transfers(suite), one_seed(suite), suite.untuned)))
    return Group(
        *parts[:-1],
        *(
            [
                Text(),
                Text(" ".join(headline(results)), style="bold"),
                Text(tested),
            ]
            if tested
            else []
        ),
        *([Text(), Text(warning, style="yellow")] if warning else []),
    )


@dataclass(frozen=True, slots=True)
class Fitted:
    """A ranking that fits into the terminal: the last columns are left out if it is narrow."""

    ranking: Ranking

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        """Yield the table of the ranking, under the scenario's name."""
        from rich.text import Text

        grid, left_out = self._cells(), 0
        narrow = _width(grid) > options.max_width
        while len(grid[0]) > 3 and _width(grid) > options.max_width:
            grid = [[*cells[:-2], cells[-1]] for cells in grid]
            left_out += 1
        # Title and notes are not part of the table, which would wrap them at its own width.
        yield Text(self.ranking.scenario.label, style="bold")
        yield self._table(grid, _longest_word(grid, -1) if narrow else None)
        notes = {
            "∞: the median seed never met the target.": self.ranking.unmet,
            self.ranking.missed_again: self.ranking.missed_again,
            STALLED: any(cell.stalled for cell, _ in self.ranking.lines),
            NO_SURROGATE: self.ranking.scenario.lacks_surrogate,
            "±: standard deviation over seeds. Max: greatest staleness. Bold: best mean, not a test.": True,
            f"{many(left_out, 'more column')} on the report page, or in a wider terminal.": left_out,
        }
        if text := " ".join(note for note, applies in notes.items() if applies):
            yield Text(text, style="dim italic")

    def _cells(self) -> Grid:
        """Return all cells, with headings folded to the width of their columns."""
        rows = [(cell.strategy, entries, cell.seeds) for cell, entries in self.ranking.lines]
        if any(entry.text for entry in self.ranking.pooled):
            rows.append(("Trained centrally", self.ranking.pooled, ""))
        lines = []
        for name, entries, seeds in rows:
            details = [
                f"({entry.detail})" if entry.detail[:1] not in {"", "±"} else entry.detail
                for entry in entries
            ]
            texts = [
                f"{entry.text} {detail}".rstrip() for entry, detail in zip(entries, details, strict=True)
            ]
            lines.append([name, *texts, seeds])
        heads = ["Strategy", *(title for title, _ in self.ranking.columns), "Seeds"]
        widths = [max(map(_longest_line, column)) for column in zip(*lines, strict=True)]
        folded = [
            fill(head, max(1, width), break_long_words=False, break_on_hyphens=False)
            for head, width in zip(heads, widths, strict=True)
        ]
        return [folded, *lines]

    def _table(self, grid: Grid, last: int | None) -> Table:
        """Return a table of the cells; `last` is the greatest width of the last column, or None."""
        from rich import box
        from rich.table import Table
        from rich.text import Text

        table = Table(
            box=box.SIMPLE_HEAD,
            header_style="dim",
            show_edge=False,
            pad_edge=False,
            padding=(0, GAP - 1, 0, 0),
        )
        heads, lines = grid[0], self.ranking.lines
        table.add_column(Text(heads[0]), min_width=_longest_word(grid, 0), overflow="fold")
        for head in heads[1:-1]:
            table.add_column(Text(head), justify="right", no_wrap=True)
        table.add_column(Text(heads[-1]), justify="right", max_width=last)
        for (cell, entries), cells in zip(lines, grid[1:], strict=False):
            bold = ["bold green" if entry.best else "" for entry in entries[: len(cells) - 2]]
            styles = ["", *bold, "red" if cell.diverged or cell.stalled else ""]
            table.add_row(*(Text(text, style=style) for text, style in zip(cells, styles, strict=True)))
        for cells in grid[1 + len(lines) :]:
            table.add_section()
            table.add_row(*map(Text, cells), style="dim")
        return table


def _width(grid: Grid) -> int:
    """Return the width of a table in letters; strategies and seeds may be broken between words."""
    columns = list(zip(*grid, strict=True))
    fixed = [max(map(_longest_line, column)) for column in columns[1:-1]]
    return sum(fixed) + sum(_longest_word(grid, at) for at in (0, -1)) + GAP * (len(columns) - 1)


def _longest_line(text: str) -> int:
    return max(map(len, text.split("\n")))


def _longest_word(grid: Grid, column: int) -> int:
    return max(len(word) for cells in grid for word in cells[column].split())
