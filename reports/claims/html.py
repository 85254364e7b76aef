"""Page of all claims, with a forest plot for every block, and the claims section of report pages.

`asyncfl claims --html` calls `write`; `asyncfl report` adds `sections` to the page of a suite of claims.

Free: the look and the filters; neither page is published in docs/.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from jinja2 import FileSystemLoader, Template
from markupsafe import Markup

from benchmarks.claims.files import papers
from benchmarks.claims.stored_numbers import RESULTS
from fl_core.recorded_names import CLAIMS
from fl_core.text import many
from reports.claims import forest_plot, main_results_figure, matrix, workloads
from reports.claims.main_results import outcomes
from reports.claims.readings import THEOREM, Reading, by_scale, readings
from reports.claims.verdict_text import (
    ORDER,
    anchor,
    arranged,
    besides,
    found,
    measured_quantity,
    ranked,
    said,
    sides,
    worded,
)
from reports.page import environment
from reports.sections.section import Section


@dataclass(frozen=True, slots=True)
class Row:
    """The claims of a row, with effects on a shared axis."""

    name: str
    entries: Sequence[tuple[Reading, Markup | None]]  # readings, each with a line of the plot
    ends: tuple[str, str] | None  # numbers at the ends of the axis; None without a plot
    what: str  # the plotted quantity


@dataclass(frozen=True, slots=True)
class Block:
    """The judged claims of a paper at a single scale."""

    paper: str
    name: str
    scale: str
    title: str
    rows: Sequence[Row]
    left: str  # sentence on claims not run; empty if all ran


def blocks(readings: Sequence[Reading]) -> list[Block]:
    """Return the blocks of the page: each paper and scale with a judged claim."""
    return [_block(group) for group in by_scale(readings) if any(reading.ran for reading in group)]


def _block(group: Sequence[Reading]) -> Block:
    """Return the block of a paper at a scale, with counts of verdicts in its title."""
    paper, scale = group[0].paper, group[0].scale
    words = Counter(reading.word for reading in group)
    title = "theorems" if scale == THEOREM else f"scale {scale}"
    counts = ", ".join(f"{words[word]} {word}" for word in ORDER if words[word])
    waiting = words["not run"]
    remark = f"{many(waiting, 'further claim')} of this scale: not run yet." if waiting else ""
    return Block(paper.title, paper.name, scale, f"{title}: {counts}", list(_rows(group)), remark)


def _rows(group: Sequence[Reading]) -> Iterator[Row]:
    """Yield rows by name and plotted quantity: a difference and a level share no axis."""
    by_row: dict[tuple[str, str], list[Reading]] = {}
    for reading in group:
        if reading.ran:
            by_row.setdefault((reading.claim.row, measured_quantity(reading.claim)), []).append(reading)
    for (name, axis_title), row in by_row.items():
        effects = [(reading, forest_plot.effect(reading.claim, reading.verdict)) for reading in ranked(row)]
        drawn = [effect for _, effect in effects if effect]
        axis = forest_plot.Axis.around(drawn) if drawn else None
        entries = [(reading, _strip(reading, effect, axis)) for reading, effect in effects]
        yield Row(name, entries, axis.texts if axis else None, axis_title)


def _strip(
    reading: Reading, effect: forest_plot.DrawnEffect | None, axis: forest_plot.Axis | None
) -> Markup | None:
    """Return the line of a reading in the plot; None without an effect."""
    if effect is None or axis is None:
        return None
    return forest_plot.strip(effect, axis, reading.word, f"{worded(reading)}: {found(reading)}")


TEMPLATES = Path(__file__).parent / "templates"


def write(readings: Sequence[Reading], path: Path) -> Path:
    """Write the page of verdicts and return the path; raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(render(readings), encoding="utf-8")
    return path


def render(readings: Sequence[Reading]) -> str:
    """Return the page as text; equal numbers give equal text."""
    shown_blocks, results = blocks(readings), outcomes(readings)
    return template("page.html.j2").render(
        blocks=shown_blocks,
        summary=matrix.summary(results),
        overview=main_results_figure.figure(results),
        basis=list(workloads.groups(results)),
        missing=workloads.missing(results),
        matrices=[(mine, matrix.columns(mine)) for mine in matrix.by_paper(results)],
        matrix=matrix,
        filters=_filters(shown_blocks),
    )


def template(name: str) -> Template:
    """Return a template of the claims folder, with the style sheet and the script of the report page."""
    words = (
        anchor,
        arranged,
        workloads.ran_on,
        besides,
        found,
        many,
        matrix.scoped,
        ranked,
        said,
        sides,
        worded,
    )
    folder = environment().overlay(loader=FileSystemLoader(TEMPLATES))
    folder.filters = {**folder.filters, **{word.__name__: word for word in words}}
    return folder.get_template(name)


def _filters(shown_blocks: Sequence[Block]) -> list[tuple[str, str, list[tuple[str, str]]]]:
    """Return name, title and choices (value and text) of each filter."""
    readings = [reading for block in shown_blocks for row in block.rows for reading, _ in row.entries]
    return [
        ("paper", "Paper", _choices((block.name, block.paper) for block in shown_blocks)),
        ("class", "Arrangement", _choices((arranged(reading), arranged(reading)) for reading in readings)),
        ("verdict", "Verdict", _choices((reading.word, reading.word) for reading in readings)),
        ("scale", "Scale", _choices((block.scale, block.scale) for block in shown_blocks)),
    ]


def _choices(pairs: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    return list(dict.fromkeys(pairs))


NOTE = (
    "Verdicts from paired differences over seeds: each look spends a share of 5 % of error, and the tests of "
    "a row share it (Holm). What a refutation means stands beside it. "
    "All numbers: asyncfl claims show ID."
)


def sections(suite: str) -> list[Section]:
    """Return the section with a paper's verdicts at the scale of a suite, theorems included.

    Empty for other suites, and for a package without stored numbers, such as a wheel.
    """
    name, _, scale = suite.removeprefix(CLAIMS).rpartition("-")
    if not suite.startswith(CLAIMS) or not RESULTS.is_dir() or not (paper := papers().get(name)):
        return []
    shown_blocks = blocks([reading for at in (scale, THEOREM) for reading in readings(paper, at)])
    return (
        [Section("claims", "Claims", template("section.html.j2"), NOTE, {"blocks": shown_blocks})]
        if shown_blocks
        else []
    )
