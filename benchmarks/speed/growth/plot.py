"""One panel for each cost over what grows, with its power law."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

COLUMNS = 3


def draw(rows: Sequence[dict[str, Any]], path: Path) -> None:
    """Write the figure; `rows` are those of `measurement.measure`."""
    from matplotlib.figure import Figure

    deep = -(-len(rows) // COLUMNS)
    figure = Figure(figsize=(3.6 * COLUMNS, 3.0 * deep), layout="constrained")
    panels = figure.subplots(deep, COLUMNS, squeeze=False).ravel()
    for panel in panels:
        panel.set_visible(False)
    for panel, row in zip(panels, rows, strict=False):
        panel.set_visible(True)
        law = [row["factor"] * size ** row["exponent"] for size in row["sizes"]]
        panel.plot(row["sizes"], [1e6 * value for value in law], "k:", linewidth=1)
        panel.plot(row["sizes"], [1e6 * value for value in row["seconds"]], "o")
        panel.set(xscale="log", yscale="log", xlabel=row["grows"], ylabel=f"µs {row['cost']}")
        panel.set_title(f"exponent {row['exponent']:.2f}", fontsize="medium")
        panel.grid(visible=True, which="major", alpha=0.3)
    figure.savefig(path)
