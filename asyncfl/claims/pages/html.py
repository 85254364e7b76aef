"""The page of all claims: one HTML file with a forest plot for every block, and filters."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from jinja2 import FileSystemLoader, Template

from asyncfl.claims.pages import matrix
from asyncfl.claims.pages.blocks import Block, anchor, blocks
from asyncfl.claims.pages.table import ORDER, arranged, interval, number, said, worded
from asyncfl.claims.verdicts.main import outcomes
from asyncfl.claims.verdicts.readings import Reading
from reports.page import environment

TEMPLATES = Path(__file__).parent / "templates"


def write(readings: Sequence[Reading], path: Path) -> Path:
    """Write the page of these verdicts. Returns its path; raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(render(readings), encoding="utf-8")
    return path


def render(readings: Sequence[Reading]) -> str:
    """The page as text; the same numbers give the same text."""
    shown, papers = blocks(readings), matrix.by_paper(outcomes(readings))
    return template("page.html.j2").render(
        blocks=shown,
        matrices=[(mine, matrix.columns(mine)) for mine in papers],
        matrix=matrix,
        found=_found,
        number=number,
        interval=interval,
        said=said,
        worded=worded,
        arranged=arranged,
        ranked=_ranked,
        anchor=anchor,
        filters=_filters(shown),
    )


def _ranked(readings: Sequence[Reading]) -> list[Reading]:
    """Return the readings that have run, what matters first."""
    return sorted(
        (reading for reading in readings if reading.ran), key=lambda reading: ORDER.index(reading.word)
    )


def _found(reading: Reading) -> str:
    """The effect with its interval."""
    return f"{number(reading.verdict)} {interval(reading.verdict)}".strip()


def template(name: str) -> Template:
    """A template of this folder, with the style sheet and the script of the report page."""
    return environment().overlay(loader=FileSystemLoader(TEMPLATES)).get_template(name)


def _filters(shown: Sequence[Block]) -> list[tuple[str, str, list[tuple[str, str]]]]:
    """Name, title, and the choices of each: value and text."""
    entries = [entry for block in shown for row in block.rows for entry in row.entries]
    return [
        ("paper", "Paper", _choices((block.name, block.paper) for block in shown)),
        ("class", "Arrangement", _choices((entry.arranged, entry.arranged) for entry in entries)),
        ("verdict", "Verdict", _choices((entry.reading.word, entry.reading.word) for entry in entries)),
        ("scale", "Scale", _choices((block.scale, block.scale) for block in shown)),
    ]


def _choices(pairs: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    return list(dict.fromkeys(pairs))
