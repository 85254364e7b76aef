"""Names beside points: measured by matplotlib, they share no area with one another."""

from itertools import combinations

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from reports.figures.names import name_points


def test_names_of_near_points_cover_neither_each_other_nor_a_point() -> None:
    x = np.array([0.60, 0.63, 0.53, 0.75, 0.16, 3.0])
    y = np.array([6.4, 6.6, 5.2, 5.6, 6.5, 6.0])
    names = {0: "FedBuff-c", 1: "AFA-CD", 2: "FedBuff", 3: "Delay-adaptive ASGD", 4: "DN", 5: "At the edge"}
    figure = Figure(figsize=(520 / 72, 380 / 72), dpi=100)
    axes = figure.add_axes((0.1, 0.1, 0.85, 0.85))
    axes.plot(x, y, "o", markersize=6, markeredgewidth=0)
    axes.set_xscale("log")
    axes.set_yscale("log")
    name_points(axes, x, y, names)

    FigureCanvasAgg(figure).draw()
    boxes = {text.get_text(): text.get_window_extent() for text in axes.texts}
    assert sorted(boxes) == sorted(names.values())
    for (one, box), (other, second) in combinations(boxes.items(), 2):
        assert not box.overlaps(second), (one, other)
    for point in axes.transData.transform(np.column_stack([x, y])):
        assert not any(box.contains(*point) for box in boxes.values())
    assert axes.bbox.x1 > boxes["At the edge"].x1
