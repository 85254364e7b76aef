"""The page of all claims: one HTML file with a forest plot for every block, and filters."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from jinja2 import FileSystemLoader, Template

from benchmarks.claims.pages import matrix
from benchmarks.claims.pages.blocks import Block, anchor, blocks
from benchmarks.claims.pages.table import ORDER, arranged, interval, number, said, worded
from benchmarks.claims.verdicts.main import outcomes
from benchmarks.claims.verdicts.readings import Reading
from reports.page import environment

TEMPLATES = Path(__file__).parent / "templates"


def write(found: Sequence[Reading], path: Path) -> Path:
    """Write the page of these verdicts. Returns its path; raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(render(found), encoding="utf-8")
    return path


def render(found: Sequence[Reading]) -> str:
    """The page as text; the same numbers give the same text."""
    shown, papers = blocks(found), matrix.by_paper(outcomes(found))
    return template("page.html.j2").render(
        blocks=shown,
        matrices=[(mine, matrix.columns(mine)) for mine in papers],
        matrix=matrix,
        found=_found,
        said=said,
        worded=worded,
        arranged=arranged,
        ranked=_ranked,
        anchor=anchor,
        filters=_filters(shown),
    )


def _ranked(readings: Sequence[Reading]) -> list[Reading]:
    """Those that have run, what matters first."""
    return sorted((one for one in readings if one.ran), key=lambda one: ORDER.index(one.word))


def _found(one: Reading) -> str:
    """The effect with its interval."""
    return f"{number(one.verdict)} {interval(one.verdict)}".strip()


def template(name: str) -> Template:
    """A template of this folder, with the style sheet and the script of the report page."""
    return environment().overlay(loader=FileSystemLoader(TEMPLATES)).get_template(name)


def _filters(shown: Sequence[Block]) -> list[tuple[str, str, list[tuple[str, str]]]]:
    """Name, title, and the choices of each: value and text."""
    entries = [one for block in shown for row in block.rows for one in row.entries]
    return [
        ("paper", "Paper", _choices((block.name, block.paper) for block in shown)),
        ("class", "Arrangement", _choices((one.arranged, one.arranged) for one in entries)),
        ("verdict", "Verdict", _choices((one.reading.word, one.reading.word) for one in entries)),
        ("scale", "Scale", _choices((block.scale, block.scale) for block in shown)),
    ]


def _choices(pairs: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    return list(dict.fromkeys(pairs))
