"""Participation: which clients the updates came from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fl_core.schema import Name
from reports import numbers
from reports.figures import svg
from reports.records.records import Cell, RecordedRun
from reports.records.steps import Array
from reports.sections.rows import Rows, cards, paint_names
from reports.sections.section import Results, Section, figures

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ROW = 30
MOST = 60  # points per row; of more clients, neighbours in speed are averaged
TALL = 8  # ratio from which on shares are shown on a log scale
FIFTH = 5


def shares(cell: Cell) -> Array:
    """Share of all updates that came from the k-th fastest client [n], mean over seeds."""
    found = [_of_run(run) for run in cell.runs if run.files.participation.sum()]
    same = [one for one in found if len(one) == len(found[0])]
    return np.mean(same, axis=0) if same else np.zeros(0)


def _of_run(run: RecordedRun) -> Array:
    counts, table = run.files.participation, run.files.clients
    slowness = np.zeros(len(counts))
    slowness[table[Name.CLIENT].to_numpy(int)] = table[Name.MEAN_TIME].to_numpy(float)
    return counts[np.argsort(slowness, kind="stable")] / counts.sum()


def fifths(share: Array) -> tuple[float, float]:
    """Mean share of the fastest fifth of the clients, and of the slowest; one client at least."""
    size = max(1, len(share) // FIFTH)
    return float(share[:size].mean()), float(share[-size:].mean())


def section(results: Results) -> Section | None:
    """One card for all scenarios in which the same clients took part."""
    drawn = cards(
        results, shares, _paint, row=ROW, about="Share of updates by client and strategy", words=_unequal
    )
    if not drawn:
        return None
    note = (
        f"Share of all updates that came from each client{results.mean_over_seeds}; the line: equal parts. "
        "Filled mark: mean of the fastest fifth of the clients. Open mark: of the slowest fifth."
    )
    return Section("participation", "Participation", "cards.html.j2", note, {"cards": drawn}, figures(drawn))


def _unequal(share: Array) -> str:
    """The fastest clients beside the slowest, in words."""
    fast, slow = fifths(share)
    if not slow:
        return "the slowest fifth sent nothing"
    return f"a fast client sent {numbers.number(fast / slow, 2)} times as much as a slow one"


def _paint(rows: Rows, axes: Axes) -> None:
    from matplotlib.ticker import LogLocator

    drawn = [_points(share) for _, share in rows]
    everything = np.concatenate(drawn)
    least, most = float(everything[everything > 0].min()), float(everything.max())
    log = most / least > TALL
    low, high = (least / 1.6, most * 1.3) if log else (0.0, most * 1.08)
    axes.axvline(1 / max(len(share) for _, share in rows), color=svg.MUTED, linewidth=0.8)
    for y, ((cell, share), points) in enumerate(zip(rows, drawn, strict=True)):
        _paint_row(axes, y, cell.index, share, np.maximum(points, low))
    if log:
        axes.set_xscale("log")
        axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.xaxis.set_minor_formatter(svg.no_text)
    else:
        axes.locator_params(axis="x", nbins=6)
    axes.set_xlim(low, high)
    axes.xaxis.set_major_formatter(svg.tick_text(share=True))
    axes.set_xlabel("Share of updates of a client (%)" + (" · log scale" if log else ""))
    paint_names(axes, [cell for cell, _ in rows])


def _points(share: Array) -> Array:
    """The clients, or means of neighbours in speed."""
    return np.array([part.mean() for part in np.array_split(share, min(len(share), MOST))])


def _paint_row(axes: Axes, y: int, index: int, share: Array, points: Array) -> None:
    style: dict[str, Any] = {"color": svg.series(index), "gid": svg.belongs(index)}
    axes.plot(points, np.full(len(points), y), "o", markersize=5, markeredgewidth=0, alpha=0.35, **style)
    fast, slow = (max(value, float(points.min())) for value in fifths(share))
    axes.plot([slow, fast], [y, y], linewidth=1.2, **style)
    axes.plot([fast], [y], "o", markersize=7.5, markeredgewidth=0, **style)
    axes.plot([slow], [y], "o", markersize=7.5, markeredgewidth=1.6, markerfacecolor=svg.PAPER, **style)
