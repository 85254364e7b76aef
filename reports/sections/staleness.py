"""Staleness of updates: age of the versions from which they were made."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from reports.figures import svg
from reports.numbers import tick
from reports.records.records import Cell
from reports.records.steps import Array
from reports.sections.rows import Rows, cards, paint_names
from reports.sections.section import Results, Section, figures

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ROW = 40


def shares(cell: Cell) -> Array:
    """Return the share of updates in each bin (0, 1, 2, 3–4, 5–8, 9–16, …), a mean over seeds."""
    binned = [_binned(run.files.staleness) for run in cell.runs if run.files.staleness.sum()]
    if not binned:
        return np.zeros(0)
    longest = max(len(one) for one in binned)
    return np.mean([np.pad(one / one.sum(), (0, longest - len(one))) for one in binned], axis=0)


def _binned(counts: pd.Series) -> Array:
    """Updates in each bin from updates of each staleness τ; bin b > 1 holds 2^(b−2) < τ ≤ 2^(b−1)."""
    staleness = counts.index.to_numpy()
    bins = np.where(staleness == 0, 0, 1 + np.ceil(np.log2(np.maximum(staleness, 1))).astype(int))
    return np.bincount(bins, weights=counts)


def bin_text(at: int) -> str:
    """The greatest staleness of a bin."""
    return "0" if at == 0 else tick(2.0 ** (at - 1)) if at < 15 else f"2^{at - 1}"


def section(results: Results) -> Section | None:
    """One card per scenario."""
    drawn = cards(
        results, shares, _paint, row=ROW, about="Distribution of staleness by strategy", words=_typical
    )
    if not drawn:
        return None
    note = (
        f"Share of all updates by staleness (%){results.mean_over_seeds}; bars of all rows share one scale. "
        "Bins double in width and are named by their last value: “8” holds 5 to 8."
    )
    return Section("staleness", "Staleness", "cards.html.j2", note, {"cards": drawn}, figures(drawn))


def _typical(its: Array) -> str:
    """The bin with most updates, in words."""
    top = int(np.argmax(its))
    least = 0 if top == 0 else 2 ** (top - 2) + 1 if top > 1 else 1
    bounds = bin_text(top) if bin_text(top) == str(least) else f"{least} to {bin_text(top)}"
    return f"{100 * its[top]:.0f} % of updates have staleness {bounds}"


def _paint(rows: Rows, axes: Axes) -> None:
    tallest = max(float(found.max()) for _, found in rows)
    bins = max(len(found) for _, found in rows)
    for y, (cell, found) in enumerate(rows):
        foot = y + 0.4
        tops = foot - 0.66 * found / tallest
        style: dict[str, Any] = {"color": svg.series(cell.index), "gid": svg.belongs(cell.index)}
        axes.bar(range(len(found)), tops - foot, bottom=foot, width=0.86, linewidth=0, **style)
        axes.plot([-0.5, bins - 0.5], [foot, foot], color=svg.RULE, linewidth=0.8)
        for at, (share, top) in enumerate(zip(found, tops, strict=True)):
            if (text := f"{100 * share:.0f}") != "0":
                _write(axes, text, (at, top))
    paint_names(axes, [cell for cell, _ in rows])
    axes.grid(visible=False)
    axes.set_xlim(-0.5, bins - 0.5)
    axes.set_xticks(range(bins), [bin_text(at) for at in range(bins)])
    axes.set_xlabel("Staleness up to (server iterations)")


def _write(axes: Axes, text: str, at: tuple[float, float]) -> None:
    axes.annotate(
        text,
        at,
        (0, 2),
        textcoords="offset points",
        horizontalalignment="center",
        color=svg.MUTED,
        fontsize=svg.SMALL,
    )
