"""Errata: where a paper's text and its published code disagree, and which reading is the default here."""

from __future__ import annotations

from benchmarks.discrepancies import discrepancies
from reports.sections.section import Results, Section

NOTE = (
    "Where a paper's text and its published code disagree: both readings, and which one is the default here."
)


def section(results: Results) -> Section:
    """All entries, folded."""
    return Section("errata", "Errata", "errata.html.j2", NOTE, {"entries": discrepancies()})
