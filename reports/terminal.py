"""The ranking as tables for the terminal."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fl_core.text import many
from reports.records.records import RecordedSuite
from reports.records.store import load
from reports.sections.about.overview import one_seed
from reports.sections.ranking import NO_SURROGATE, STALLED, Ranking
from reports.sections.section import Results
from reports.tables import TableEntry

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType
    from rich.table import Table

GAP = 2  # blanks between columns


def terminal_table(tracking_uri: str, suite: str) -> RenderableType:
    """What MLflow holds of a suite, for rich to print. Raises UserError if it cannot be read."""
    return tables(load(tracking_uri, suite))


def tables(suite: RecordedSuite) -> RenderableType:
    """One table per scenario."""
    from rich.console import Group
    from rich.text import Text

    if not suite.runs:
        return Text(f"No run of '{suite.name}' is recorded.")
    parts = [part for found in Results.of(suite).rankings for part in (Fitted(found), Text())]
    warning = one_seed(suite)
    return Group(
        *([Text(suite.outdated), Text()] if suite.outdated else []),
        *parts[:-1],
        *([Text(), Text(warning, style="yellow")] if warning else []),
    )


@dataclass(frozen=True, slots=True)
class Fitted:
    """A ranking that fits the terminal.

    In a narrow one, the spread of a number stands below it; where that is not enough, the last columns are
    left out.
    """

    found: Ranking

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        """One table, under the scenario's name."""
        from rich.text import Text

        grid = _cells(self.found, " ")
        narrow = _width(grid) > options.max_width
        if narrow:
            grid = _cells(self.found, "\n")
        shown = len(self.found.columns)
        while shown > 1 and _width(_first(grid, shown)) > options.max_width:
            shown -= 1
        grid = _first(grid, shown)
        # Outside the table, which would wrap them at its own width.
        yield Text(self.found.scenario.label, style="bold")
        yield _table(self.found, grid, shown, _longest_word(grid, -1) if narrow else None)
        if notes := self._notes(shown):
            yield Text(notes, style="dim italic")

    def _notes(self, shown: int) -> str:
        """The notes below the table, of which a given number of columns is shown."""
        notes = ["∞: the median seed never met the target."] if self.found.unmet else []
        if any(line.row.stalled for line in self.found.lines):
            notes.append(STALLED)
        if self.found.scenario.lacks_surrogate:
            notes.append(NO_SURROGATE)
        if left := len(self.found.columns) - shown:
            notes.append(f"{many(left, 'more column')} on the report page, or in a wider terminal.")
        return " ".join(notes)


def _first(grid: list[list[str]], columns: int) -> list[list[str]]:
    """The strategies, the given number of value columns, the seeds."""
    return [[*line[: 1 + columns], line[-1]] for line in grid]


def _cells(found: Ranking, between: str) -> list[list[str]]:
    """Lines of cells, the first one of headings; `between` stands before the spread of a number."""
    lines = [[line.row.strategy, *_texts(line.entries, between), line.seeds] for line in found.lines]
    if any(entry.text for entry in found.pooled):
        lines.append(["Trained centrally", *_texts(found.pooled, between), ""])
    heads = ["Strategy", *(column.title for column in found.columns), "Seeds"]
    widths = [max(_longest(line[at]) for line in lines) for at in range(len(heads))]
    return [[_folded(head, width) for head, width in zip(heads, widths, strict=True)], *lines]


def _texts(entries: tuple[TableEntry, ...], between: str) -> list[str]:
    details = [one.detail if one.detail.startswith("±") else f"({one.detail})" for one in entries]
    return [
        f"{one.text}{between}{detail}" if one.detail else one.text
        for one, detail in zip(entries, details, strict=True)
    ]


def _longest(text: str) -> int:
    return max(len(line) for line in text.split("\n"))


def _folded(text: str, width: int) -> str:
    """The words on lines of at most `width` letters, if they are not longer themselves."""
    lines: list[str] = []
    for word in text.split(" "):
        if lines and len(lines[-1]) + 1 + len(word) <= width:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return "\n".join(lines)


def _width(grid: list[list[str]]) -> int:
    """Letters that the table needs; strategies and seeds may be broken between words."""
    columns = list(zip(*grid, strict=True))
    fixed = [max(map(_longest, column)) for column in columns[1:-1]]
    loose = [_longest_word(grid, at) for at in (0, -1)]
    return sum(fixed) + sum(loose) + GAP * (len(columns) - 1)


def _longest_word(grid: list[list[str]], column: int) -> int:
    return max(len(word) for line in grid for word in line[column].split())


def _table(found: Ranking, grid: list[list[str]], shown: int, narrow: int | None) -> Table:
    """The first columns that are `shown`; `narrow` is the width of the last one, if it has to be."""
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
    table.add_column(Text(grid[0][0]), min_width=_longest_word(grid, 0), overflow="fold")
    for head in grid[0][1:-1]:
        table.add_column(Text(head), justify="right", no_wrap=True)
    table.add_column(Text(grid[0][-1]), justify="right", max_width=narrow)
    for line, cells in zip(found.lines, grid[1:], strict=False):
        styles = ["", *("bold green" if entry.best else "" for entry in line.entries[:shown])]
        styles.append("red" if line.row.diverged or line.row.stalled else "")
        table.add_row(*(Text(cell, style=style) for cell, style in zip(cells, styles, strict=True)))
    for cells in grid[1 + len(found.lines) :]:
        table.add_section()
        table.add_row(*map(Text, cells), style="dim")
    return table
