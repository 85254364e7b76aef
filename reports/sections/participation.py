"""Participation: the share of each client in the updates."""

import numpy as np

from fl_core.schema import Name
from reports import numbers
from reports.figures import svg
from reports.records.cells import Array, Cell
from reports.records.runs import RecordedRun
from reports.sections import rows
from reports.sections.section import Results, Section

MOST = 60  # points per row; of more clients, neighbours in speed are averaged
TALL = 8  # ratio from which on shares are shown on a log scale
FIFTH = 5


def shares(cell: Cell) -> Array:
    """Return the share of the k-th fastest client in all updates [n], mean over seeds."""
    of_seeds = [_of_run(run) for run in cell.runs if run.files.participation.sum()]
    alike = [share for share in of_seeds if len(share) == len(of_seeds[0])]
    return np.mean(alike, axis=0) if alike else np.zeros(0)


def _of_run(run: RecordedRun) -> Array:
    counts, table = run.files.participation, run.files.clients
    slowness = np.zeros(len(counts))
    slowness[table[Name.CLIENT].astype(int)] = table[Name.MEAN_TIME]
    return counts[np.argsort(slowness, kind="stable")] / counts.sum()


def fifths(share: Array) -> tuple[float, float]:
    """Return the mean share per client of the fastest and the slowest fifth, at least a client each."""
    size = max(1, len(share) // FIFTH)
    return float(share[:size].mean()), float(share[-size:].mean())


def section(results: Results) -> Section | None:
    """Return the section with a card for all scenarios with equal shares; None without any update."""
    note = (
        f"Stroke: a client’s share of all updates{results.mean_over_seeds}. Vertical line: equal shares. "
        "Filled mark: mean of the fastest fifth of the clients. Open mark: of the slowest fifth."
    )
    return rows.section(
        results,
        "participation",
        "Participation",
        note,
        measured=shares,
        paint=_paint,
        about="Share of updates by client and strategy",
        words=_unequal,
    )


def _unequal(share: Array) -> str:
    """Return a comparison of the fastest clients with the slowest, in words."""
    fast, slow = fifths(share)
    if not slow:
        return "the slowest fifth sent nothing"
    return f"a fast client sent {numbers.number(fast / slow, 2)} times as much as a slow one"


def _paint(drawn: rows.Rows, axes: svg.Axes) -> None:
    from matplotlib.ticker import LogLocator

    points_of = [
        np.array([part.mean() for part in np.array_split(share, min(len(share), MOST))]) for _, share in drawn
    ]
    everything = np.concatenate(points_of)
    smallest, largest = float(everything[everything > 0].min()), float(everything.max())
    log = largest / smallest > TALL
    low, high = (smallest / 1.6, largest * 1.3) if log else (0.0, largest * 1.08)
    axes.axvline(1 / max(len(share) for _, share in drawn), color=svg.MUTED, linewidth=0.8)
    for y, ((cell, share), means) in enumerate(zip(drawn, points_of, strict=True)):
        points, style = np.maximum(means, low), svg.style(cell.index)
        at = np.full(len(points), y)
        axes.plot(points, at, "|", markersize=9, markeredgewidth=0.8, **style)
        fast, slow = (max(value, float(points.min())) for value in fifths(share))
        axes.plot([slow, fast], [y, y], linewidth=1.2, **style)
        svg.dot(axes, cell.index, (fast, y), 7.5)
        svg.dot(axes, cell.index, (slow, y), 7.5, edge=1.6, hollow=True)
    if log:
        axes.set_xscale("log")
        axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    else:
        axes.locator_params(axis="x", nbins=6)
    axes.set_xlim(low, high)
    svg.across(axes, "Share of updates of a client (%)", share=True, log=log)
