"""Names of points in a figure, placed to cover as little as possible of other names and points."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from reports.figures import svg

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WIDTH, HEIGHT = 5.9, 12.0  # of a small letter in pixels, about: a browser's are not as wide as matplotlib's
AWAY, DOT = 5, 4.0  # pixels between a point and its name; from a point's centre to its edge

# Where a name stands as seen from its point, the best place first: sign of x and of y.
SIDES = ((1, 1), (1, 0), (1, -1), (-1, 1), (-1, 0), (-1, -1), (0, 1), (0, -1))
X = {1: "left", 0: "center", -1: "right"}
Y = {1: "bottom", 0: "center", -1: "top"}


def name_points(axes: Axes, x: np.ndarray, y: np.ndarray, names: Mapping[int, str]) -> None:
    """Write names next to some of the points, after scales are set and all points drawn.

    Args:
        axes: Where the points are.
        x: Horizontal places of all points.
        y: Vertical places of all points.
        names: By index of a point its name; the first is placed first.
    """
    axes.get_xlim(), axes.get_ylim()  # known from here on: matplotlib fits them when they are asked for
    pixel = 72 / axes.figure.dpi  # of a saved figure
    at = axes.transData.transform(np.column_stack([x, y])) * pixel
    frame = np.asarray(axes.bbox.extents) * pixel
    taken = [(*place - DOT, *place + DOT) for place in at]
    for index, name in names.items():
        boxes = [_box(at[index], side, WIDTH * len(name)) for side in SIDES]
        covered = [sum(_common(box, other) for other in taken) + _beyond(box, frame) for box in boxes]
        side = SIDES[int(np.argmin(covered))]
        taken.append(boxes[SIDES.index(side)])
        style: dict[str, Any] = {"ha": X[side[0]], "va": Y[side[1]], "fontsize": svg.SMALL}
        axes.annotate(name, (x[index], y[index]), _offset(side), textcoords="offset points", **style)


def _offset(side: tuple[int, int]) -> tuple[float, float]:
    """Return the offset from a point to the start of the name, slightly shorter at a corner."""
    return AWAY * side[0] * (1.0 if side[1] else 1.4), AWAY * side[1] * (0.4 if side[0] else 1.0)


def _box(point: np.ndarray, side: tuple[int, int], width: float) -> tuple[float, ...]:
    """Return left, bottom, right and top of a name."""
    left = point[0] + _offset(side)[0] + width * (side[0] - 1) / 2
    bottom = point[1] + _offset(side)[1] + HEIGHT * (side[1] - 1) / 2
    return left, bottom, left + width, bottom + HEIGHT


def _common(box: tuple[float, ...], other: tuple[float, ...]) -> float:
    """Return the common area of two boxes."""
    wide = min(box[2], other[2]) - max(box[0], other[0])
    high = min(box[3], other[3]) - max(box[1], other[1])
    return max(wide, 0.0) * max(high, 0.0)


def _beyond(box: tuple[float, ...], frame: np.ndarray) -> float:
    """Return the area of a box outside the frame."""
    return (box[2] - box[0]) * (box[3] - box[1]) - _common(box, tuple(frame))
