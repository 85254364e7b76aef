"""The page of all claims: one HTML file with a forest plot for every block, and filters."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from reports.claims.blocks import Block, blocks
from reports.claims.stored import Judged, standings
from reports.claims.table import SUMMARY, summary, tested
from reports.page import environment


def write(found: Sequence[Judged], path: Path) -> Path:
    """Write the page of these verdicts. Returns its path; raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(render(found), encoding="utf-8")
    return path


def render(found: Sequence[Judged]) -> str:
    """The page as text; the same numbers give the same text."""
    shown, there = blocks(found), standings(found)
    return (
        environment()
        .get_template("claims_page.html.j2")
        .render(
            blocks=shown,
            header=SUMMARY,
            summary=summary(there),
            tested=tested(there),
            filters=_filters(shown),
        )
    )


def _filters(shown: Sequence[Block]) -> list[tuple[str, str, list[tuple[str, str]]]]:
    """Name, title, and the choices of each: value and text."""
    entries = [one for block in shown for row in block.rows for one in row.entries]
    return [
        ("paper", "Paper", _choices((block.name, block.paper) for block in shown)),
        ("class", "Class", _choices((one.arranged, one.arranged) for one in entries)),
        ("verdict", "Verdict", _choices((one.verdict.word, one.verdict.word) for one in entries)),
        ("scale", "Scale", _choices((block.scale, block.scale) for block in shown)),
    ]


def _choices(pairs: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    return list(dict.fromkeys(pairs))
