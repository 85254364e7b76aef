"""Figures with a row per strategy, the name at the left."""

from collections.abc import Callable, Sequence
from functools import partial

from fl_core.schema import JOINT
from reports.figures import svg
from reports.records.cells import Array, Cell
from reports.records.records import RecordedScenario
from reports.sections.section import Card, Results, Section, cards_section

Rows = Sequence[tuple[Cell, Array]]  # strategies, and what is drawn of each

ROW = 30  # height in pixels
WIDTH = svg.SIZE[0]
TOP, BOTTOM, RIGHT = 8, 44, 16
LETTER = 7.6  # pixels, about
LONGEST = 19  # letters per line
MANY = 10  # rows; more are lower, and names have one line
LOW = 0.76  # height of a row among many


def draw(
    said: Sequence[tuple[Cell, str]],
    paint: Callable[[svg.Axes], None],
    description: str,
    row: float = ROW,
) -> svg.Drawing:
    """Return axes with a row for each strategy: rows are 0, 1, … from the top.

    Args:
        said: The strategies, the first one at the top, and what pointing at each says.
        paint: Draws what the rows show.
        description: For screen readers.
        row: The height of a row in pixels.
    """
    names = [_lines(cell.strategy, among=len(said)) for cell, _ in said]

    def rows(axes: svg.Axes) -> None:
        axes.set_ylim(len(said) - 0.5, -0.5)
        axes.set_yticks([])
        axes.grid(visible=True, axis="x")  # faint vertical lines instead of horizontal ones
        paint(axes)
        for y, lines in enumerate(names):
            svg.row_name(axes, y, lines)

    margin = 18 + LETTER * max(len(line) for lines in names for line in lines)
    height = row * len(said) * (LOW if len(said) > MANY else 1)
    size, margins = (WIDTH, TOP + BOTTOM + height), (margin, RIGHT, TOP, BOTTOM)
    return svg.Drawing(rows, description, size, margins, said={cell.index: text for cell, text in said})


def _lines(name: str, among: int) -> list[str]:
    """Return a name on up to two lines; among many rows a long name loses the middle."""
    if among <= MANY or len(name) <= LONGEST:
        return svg.two_lines(name, LONGEST).split("\n")
    return [f"{name[: LONGEST - 9].rstrip()}…{name[-8:].lstrip()}"]


def section(
    results: Results,
    anchor: str,
    title: str,
    note: str,
    *,
    measured: Callable[[Cell], Array],
    paint: Callable[[Rows, svg.Axes], None],
    row: float = ROW,
    about: str,
    words: Callable[[Array], str],
    everyone: bool = False,
) -> Section | None:
    """Return a section with a card for all scenarios with equal numbers; None without any number.

    Args:
        results: The scenarios.
        anchor: The section's name in links.
        title: Its heading.
        note: What all of its figures have in common.
        measured: The numbers of a strategy in a scenario.
        paint: Draws the rows, one for each foremost strategy with numbers.
        row: The height of a row in pixels.
        about: What is drawn, for those who do not see it.
        words: What a strategy's numbers show, in words.
        everyone: Whether all strategies have a row, and not only the foremost.
    """
    groups: dict[tuple[tuple[str, bytes], ...], tuple[list[RecordedScenario], Rows]] = {}
    for scenario in results.scenarios:
        cells_shown = [cell for cell in scenario.cells if everyone or cell.strategy in results.foremost]
        if cells := [(cell, values) for cell in cells_shown if len(values := measured(cell))]:
            content = tuple((cell.strategy, values.tobytes()) for cell, values in cells)
            groups.setdefault(content, ([], cells))[0].append(scenario)
    cards = []
    for scenarios, rows in groups.values():
        heading, labels = _together(scenarios)
        texts = [(cell, f"{cell.strategy}: {words(values)}") for cell, values in rows]
        description = f"{about}, {heading}: {'; '.join(text for _, text in texts)}"
        figure = draw(texts, partial(paint, rows), description, row)
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
    note += "" if everyone else results.only_foremost
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
