"""Updates per second over the number of clients in flight, one panel a model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any


def draw(rows: Sequence[dict[str, Any]], path: Path) -> None:
    """Write the figure; `rows` are the compared arms of `measurement.measure`."""
    from matplotlib.figure import Figure

    models = list(dict.fromkeys(row["model"] for row in rows))
    arms = list(dict.fromkeys(row["arm"] for row in rows))
    figure = Figure(figsize=(4.5 * len(models), 3.6), layout="constrained")
    panels = figure.subplots(1, len(models), squeeze=False)[0]
    for panel, model in zip(panels, models, strict=True):
        for arm in arms:
            points = [row for row in rows if (row["model"], row["arm"]) == (model, arm)]
            style = {"yardstick": "k--", "tight loop": "k-.", "floor": "k:"}.get(arm, "o-")
            x, y = ([row[key] for row in points] for key in ("in_flight", "updates_per_second"))
            panel.plot(x, y, style, label=arm)
        panel.set(title=model, xlabel="clients in flight", xscale="log", yscale="log")
        panel.grid(visible=True, which="major", alpha=0.3)
    panels[0].set_ylabel("client updates a second, one core")
    panels[-1].legend(fontsize="small")
    figure.savefig(path)
