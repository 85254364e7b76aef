"""Time against energy: the front of best choices, and choices to compare with."""

from collections.abc import Mapping, Sequence

from reports.figures import svg

Point = tuple[float, float]  # time and energy
SIZE = (560, 380)  # pixels
MARGINS = (72, 16, 12, 44)  # pixels


def figure(front: Sequence[Point], others: Mapping[str, Point]) -> svg.Drawing:
    """Return a figure of a front, with named points to compare with."""

    def paint(axes: svg.Axes) -> None:
        times, energies = zip(*sorted(front), strict=True)
        axes.plot(times, energies, "o-", color=svg.series(0), markersize=6, markeredgewidth=0)
        for index, (name, (time, energy)) in enumerate(others.items(), start=1):
            axes.plot(time, energy, "s", color=svg.series(index), markersize=7, markeredgewidth=0)
            axes.annotate(name, (time, energy), (-8, 6), textcoords="offset points", ha="right")
        axes.set_xlim(left=0)
        axes.set_ylim(bottom=0)
        axes.set_xlabel("Time to the accuracy")
        axes.set_ylabel("Energy to the accuracy (J)")

    names = ", ".join(others)
    return svg.Drawing(paint, f"Time against energy: the front, and {names}", SIZE, MARGINS)
