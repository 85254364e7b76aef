"""Whole runs as tables, for the terminal and as CSV, and as a figure."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks.speed.whole.measurement import SECOND
from benchmarks.speed.whole.spent import PARTS

COLUMNS = (*PARTS, SECOND)
IN_PARTS = ("", "suite", "strategy", "as", *COLUMNS, "s")
COMPARED = (
    *("", "suite", "updates", "evaluations", "with losses"),
    *("evaluation", "× script", "× script, learning", "command s", "seeds an hour", "execution"),
)

Row = dict[str, Any]


def in_parts(rows: Sequence[Row]) -> list[tuple[str, ...]]:
    """Seconds by part, a line for each run and one for its script."""
    return [
        (row["what"], row["suite"], row["strategy"], who, *(_seconds(parts.get(part)) for part in COLUMNS), s)
        for row, who, parts, s in _halves(rows)
    ]


def compared(rows: Sequence[Row]) -> list[tuple[str, ...]]:
    """What follows: shares, ratios, rates."""
    return [
        (
            row["what"],
            row["suite"],
            *(f"{row[key]:,}" for key in ("updates", "tests", "trainings")),
            f"{row['evaluation']:.0%}",
            f"{row['of_script']:.2f}",
            f"{row['learning_of_script']:.2f}",
            f"{row['command_seconds']:.1f}",
            f"{row['seeds_an_hour']:,.0f}",
            row["execution"],
        )
        for row in rows
    ]


def write_csv(rows: Sequence[Row], path: Path) -> None:
    """Seconds by part; a part that there is not is empty."""
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow((*IN_PARTS[1:3], "what", "updates", "tests", "trainings", "as", *COLUMNS))
        for row, who, parts, _ in _halves(rows):
            about = (row[key] for key in ("suite", "strategy", "what", "updates", "tests", "trainings"))
            writer.writerow((*about, who, *(parts.get(part, "") for part in COLUMNS)))


def draw(rows: Sequence[Row], path: Path) -> None:
    """Bars of seconds by part, the script below the run."""
    from matplotlib import colormaps
    from matplotlib.figure import Figure

    halves = list(_halves(rows))[::-1]
    figure = Figure(figsize=(9, 1.2 + 0.36 * len(halves)), layout="constrained")
    axes = figure.subplots()
    colours = colormaps["tab20"]
    left = [0.0] * len(halves)
    for number, part in enumerate(COLUMNS):
        widths = [parts.get(part, 0.0) for _, _, parts, _ in halves]
        axes.barh(range(len(halves)), widths, left=left, color=colours(number), label=part)
        left = [before + width for before, width in zip(left, widths, strict=True)]
    axes.set_yticks(range(len(halves)), [f"{row['what']}, {who}" for row, who, _, _ in halves])
    axes.set_xlabel("seconds of processor time")
    axes.legend(fontsize="small", ncols=2)
    figure.savefig(path)


def _halves(rows: Sequence[Row]) -> Iterator[tuple[Row, str, dict[str, float], str]]:
    for row in rows:
        yield row, "run", row["run"], f"{row['seconds']:.1f}"
        yield row, "script", row["script"], f"{row['script_seconds']:.1f}"


def _seconds(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"
