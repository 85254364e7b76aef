"""Staleness of updates: age of the underlying versions."""

from typing import Any

import numpy as np

from reports.figures import svg
from reports.numbers import tick
from reports.records.cells import Array, Cell
from reports.sections import rows
from reports.sections.section import Results, Section

ROOM = 8  # bins whose names have room side by side


def shares(cell: Cell) -> Array:
    """Return the share of updates in each bin (0, 1, 2, 3–4, 5–8, 9–16, …), a mean over seeds."""
    binned = [_binned(run.files.staleness) for run in cell.runs if run.files.staleness.size]
    longest = max(map(len, binned), default=0)
    padded = [np.pad(counts / counts.sum(), (0, longest - len(counts))) for counts in binned]
    return np.mean(padded, axis=0) if padded else np.zeros(0)


def _binned(occurred: Array) -> Array:
    """Return the updates in each bin, from the updates of each τ; bin b > 1 holds 2^(b−2) < τ ≤ 2^(b−1)."""
    staleness, counts = occurred
    bins = np.where(staleness == 0, 0, 1 + np.ceil(np.log2(np.maximum(staleness, 1))).astype(int))
    return np.bincount(bins, weights=counts)


def bin_text(at: int) -> str:
    """Return the greatest staleness of a bin."""
    return "0" if at == 0 else tick(2.0 ** (at - 1)) if at < 15 else f"2^{at - 1}"


def section(results: Results) -> Section | None:
    """Return the section with a card per scenario; None without a recorded update."""
    note = (
        f"Bar: share of all updates (%){results.mean_over_seeds} with the staleness below it. Bins double in "
        "width and are named by their last value: “8” holds 5 to 8. All rows share one scale."
    )
    return rows.section(
        results,
        "staleness",
        "Staleness",
        note,
        measured=shares,
        paint=_paint,
        row=40,
        about="Distribution of staleness by strategy",
        words=_typical,
    )


def _typical(share: Array) -> str:
    """Return the bin with most updates in words."""
    top = int(np.argmax(share))
    lowest = 0 if top == 0 else 2 ** (top - 2) + 1 if top > 1 else 1
    bounds = bin_text(top) if bin_text(top) == str(lowest) else f"{lowest} to {bin_text(top)}"
    return f"{100 * share[top]:.0f} % of updates have staleness {bounds}"


def _paint(drawn: rows.Rows, axes: svg.Axes) -> None:
    tallest = max(float(share.max()) for _, share in drawn)
    bins = max(len(share) for _, share in drawn)
    for y, (cell, share) in enumerate(drawn):
        foot = y + 0.4
        tops = foot - 0.66 * share / tallest
        axes.bar(
            range(len(share)), tops - foot, bottom=foot, width=0.86, linewidth=0, **svg.style(cell.index)
        )
        axes.plot([-0.5, bins - 0.5], [foot, foot], color=svg.RULE, linewidth=0.8)
        for at, top in enumerate(tops):
            if (text := f"{100 * share[at]:.0f}") != "0":
                small: dict[str, Any] = {"color": svg.MUTED, "fontsize": svg.SMALL, "ha": "center"}
                axes.annotate(text, (at, top), (0, 2), textcoords="offset points", **small)
    axes.grid(visible=False)
    axes.set_xlim(-0.5, bins - 0.5)
    size: dict[str, Any] = {"fontsize": svg.SMALL} if bins > ROOM else {}
    axes.set_xticks(range(bins), [bin_text(at) for at in range(bins)], **size)
    axes.set_xlabel("Staleness up to (server iterations)")
