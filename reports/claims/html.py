"""The page of all claims: one HTML file with a forest plot for every block, and filters."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from jinja2 import FileSystemLoader, Template

from fl_core.text import many
from reports.claims import basis, matrix, overview
from reports.claims.blocks import Block, blocks
from reports.claims.main_results import outcomes
from reports.claims.ran_on import RanOn
from reports.claims.readings import Reading
from reports.claims.terminal import (
    anchor,
    arranged,
    besides,
    found,
    interval,
    number,
    quantity,
    ranked,
    said,
    sides,
    worded,
)
from reports.page import environment

TEMPLATES = Path(__file__).parent / "templates"


def write(readings: Sequence[Reading], path: Path) -> Path:
    """Write the page of these verdicts. Returns its path; raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(render(readings), encoding="utf-8")
    return path


def render(readings: Sequence[Reading]) -> str:
    """The page as text; the same numbers give the same text."""
    shown, every = blocks(readings), outcomes(readings)
    return template("page.html.j2").render(
        blocks=shown,
        summary=matrix.summary(every),
        overview=overview.figure(every),
        basis=list(basis.groups(every, RanOn())),
        missing=basis.missing(every),
        matrices=[(mine, matrix.columns(mine)) for mine in matrix.by_paper(every)],
        matrix=matrix,
        filters=_filters(shown),
    )


def template(name: str) -> Template:
    """A template of this folder, with the style sheet and the script of the report page."""
    words = (anchor, arranged, besides, found, interval, many, number, quantity, ranked, said, sides, worded)
    folder = environment().overlay(loader=FileSystemLoader(TEMPLATES))
    named = {word.__name__: word for word in (*words, matrix.scoped)}
    folder.filters = {**folder.filters, **named, "ran_on": RanOn()}
    return folder.get_template(name)


def _filters(shown: Sequence[Block]) -> list[tuple[str, str, list[tuple[str, str]]]]:
    """Name, title, and the choices of each: value and text."""
    readings = [reading for block in shown for row in block.rows for reading, _ in row.entries]
    return [
        ("paper", "Paper", _choices((block.name, block.paper) for block in shown)),
        ("class", "Arrangement", _choices((arranged(reading), arranged(reading)) for reading in readings)),
        ("verdict", "Verdict", _choices((reading.word, reading.word) for reading in readings)),
        ("scale", "Scale", _choices((block.scale, block.scale) for block in shown)),
    ]


def _choices(pairs: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    return list(dict.fromkeys(pairs))
