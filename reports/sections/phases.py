"""Clients' time spent on download, computation, upload, and waiting."""

import numpy as np

from fl_core.schema import PHASES, PHASES_AT_SERVER, TIME, Name
from reports import numbers
from reports.figures import svg
from reports.records.cells import Array, Cell
from reports.records.runs import RecordedRun
from reports.sections import rows
from reports.sections.section import Results, Section

PARTS = (*PHASES, *PHASES_AT_SERVER)
WORDS = ("download", "computation", "upload", "waiting for the server", "service at the server", "waiting")
SHADES = (0.45, 1.0, 0.65, 0.22, 0.8, 0.12)  # of the strategy's colour
HEIGHT = 0.56  # of a bar, in rows
GAP = 0.0025  # between the parts of a bar, as a share of the axes


def shares(cell: Cell) -> Array:
    """Return the shares of clients' time [6] in the order of `WORDS`, mean over seeds; none if unknown."""
    of_seeds = [_of_run(run) for run in cell.finite if Name.COMPUTATION in run.files.clients]
    return np.mean(of_seeds, axis=0) if of_seeds else np.zeros(0)


def _of_run(run: RecordedRun) -> Array:
    clients = run.files.clients
    spent = np.array([clients[part].sum() if part in clients else 0.0 for part in PARTS])
    total = float(run.files.curve[TIME][-1]) * len(clients[Name.CLIENT]) or 1.0  # a run may end at time 0
    return np.array([*spent, max(0.0, total - spent.sum())]) / total


def section(results: Results) -> Section | None:
    """Return the section with a card for all scenarios with equal shares; None without network and server."""
    note = (
        f"Bar: what all clients do from the start to the end of a run{results.mean_over_seeds}. From left to "
        "right: download, computation (dark), upload, an update waiting for the server, an update in service "
        "there, and waiting (pale). A client waits for a job or for the server to collect its update, or is "
        "away. Latencies are part of download and upload."
    )
    return rows.section(
        results,
        "phases",
        "Where the time goes",
        note,
        measured=shares,
        paint=_paint,
        about="Share of clients' time by strategy",
        words=_in_words,
        everyone=True,
    )


def _in_words(share: Array) -> str:
    """Return the shares in words, those of phases that took time."""
    shares = [(word, part) for word, part in zip(WORDS, share, strict=True) if part or word == WORDS[-1]]
    return ", ".join(f"{word} {numbers.percent(part)} %" for word, part in shares)


def _paint(drawn: rows.Rows, axes: svg.Axes) -> None:
    for y, (cell, share) in enumerate(drawn):
        style = svg.style(cell.index)
        for start, part, shade in zip(np.cumsum(share) - share, share, SHADES, strict=True):
            axes.barh(y, max(0.0, part - GAP), HEIGHT, start, alpha=shade, linewidth=0, **style)
    axes.set_xlim(0, 1)
    svg.across(axes, "Share of the clients' time (%)", share=True)
