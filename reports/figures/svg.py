"""Matplotlib figures: inside the page as SVG in the page's colours and fonts, and as files for a paper.

Colours are matplotlib's "C0", "C1", …: the caller chooses what these stand for.
"""

from __future__ import annotations

import io
import textwrap
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from markupsafe import Markup

from reports import numbers
from reports.figures import look
from reports.figures.inline import HALO, STAND_INS, inline
from reports.figures.scale import Scale

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_PALETTE = look.palette()
_PLACES = {name: f"C{at}" for at, name in enumerate(_PALETTE)}
INK, MUTED, RULE, PAPER = (_PLACES[name] for name in ("ink", "muted", "rule", "paper"))
SIZE, MARGINS = (400, 270), (46, 14, 30, 44)  # of most figures
SMALL = 9.5  # size of small text; all other text has the size that the page gives to figures

_STYLE: dict[Any, Any] = {
    "axes.edgecolor": MUTED,
    "axes.facecolor": "none",
    "axes.grid": True,
    "axes.grid.axis": "y",
    "axes.labelcolor": MUTED,
    "axes.spines.left": False,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "figure.facecolor": "none",
    "font.size": 11,
    "grid.color": RULE,
    "grid.linewidth": 0.8,
    "path.simplify": True,
    "savefig.facecolor": "none",
    "svg.fonttype": "none",
    "svg.hashsalt": "asyncfl",
    "text.color": INK,
    "text.parse_math": False,  # dollar signs in labels are literal
    "xtick.color": MUTED,
    "xtick.major.size": 3,
    "ytick.color": MUTED,
    "ytick.major.size": 0,
}


def series(index: int) -> str:
    """The colour of a strategy."""
    return _PLACES[look.colour(index)]


def amount(level: int) -> tuple[str, str]:
    """The colour of an amount, and that of text on it; levels are 0 … 8."""
    return _PLACES[f"a{level}"], PAPER if level >= look.TURN else INK


@dataclass(frozen=True, slots=True, eq=False)
class Drawing:
    """One pair of axes; a template that shows it gets an <svg> in the colours of the page.

    `size` and `margins` (left, right, top, bottom) are in CSS pixels. `paint` draws; what it draws of
    strategy i gets the `gid` of `belongs(i)`. `description` is for screen readers: what is drawn, and what
    it shows. `legend`: index and label of the strategies, where the page has them beside the figure; `said`:
    what pointing at one of them says.
    """

    size: tuple[float, float]
    margins: tuple[float, float, float, float]
    paint: Callable[[Axes], None]
    description: str
    legend: Sequence[tuple[int, str]] = ()
    said: Mapping[int, str] = field(default_factory=dict)

    def __html__(self) -> Markup:
        """The figure as part of a page."""
        import matplotlib as mpl

        with mpl.rc_context(_STYLE | _colours(list(STAND_INS))), warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Glyph .* missing from")  # the reader's fonts draw it, not ours
            text = io.StringIO()
            self._drawn(self.size[1]).savefig(
                text, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None}
            )
        return inline(text.getvalue(), self.description, self.said)

    def save(self, path: Path) -> None:
        """Write it to a .svg or .pdf file, on paper and with its legend; same data give same bytes."""
        path.write_bytes(self._file(path.suffix))

    def _repr_svg_(self) -> str:
        """What a notebook shows."""
        return self._file(".svg").decode()

    def _file(self, suffix: str) -> bytes:
        """The content of a .svg or .pdf file."""
        import matplotlib as mpl

        date, content = {".svg": "Date", ".pdf": "CreationDate"}[suffix], io.BytesIO()
        style = _STYLE | _colours(list(_PALETTE.values())) | {"pdf.fonttype": 42}
        with mpl.rc_context(style), warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Glyph .* missing from")
            columns, rows = self._legend_shape()
            figure = self._drawn(self.size[1] + LEADING * rows + (8 if rows else 0))
            if rows:
                self._add_legend(figure, columns)
            _halo(figure)
            figure.savefig(content, format=suffix[1:], metadata={date: None}, facecolor=PAPER)
        return content.getvalue()

    def _drawn(self, height: float) -> Figure:
        """Height beyond `size` is added at the bottom."""
        from matplotlib.figure import Figure

        width, (left, right, top, bottom) = self.size[0], self.margins
        bottom += height - self.size[1]
        figure = Figure(figsize=(width / 72, height / 72))
        box = (left / width, bottom / height, 1 - (left + right) / width, 1 - (top + bottom) / height)
        axes = figure.add_axes(box)
        axes.set_axisbelow(True)
        self.paint(axes)
        return figure

    def _legend_shape(self) -> tuple[int, int]:
        """Columns and rows."""
        if not self.legend:
            return 0, 0
        widest = 48 + LETTER * max(len(label) for _, label in self.legend)
        columns = min(len(self.legend), max(1, int(self.size[0] // widest)))
        return columns, -(-len(self.legend) // columns)

    def _add_legend(self, figure: Figure, columns: int) -> None:
        from matplotlib.lines import Line2D

        keys = [
            Line2D(
                [], [], color=series(index), linestyle=line_style(index), marker=look.marker(index),
                markersize=0 if look.quiet(index) else 5, markeredgewidth=0, linewidth=1.6, label=label,
            )
            for index, label in self.legend
        ]  # fmt: skip
        figure.legend(handles=keys, loc="lower left", ncols=columns, frameon=False, handlelength=2.6)


LETTER, LEADING = 6.6, 17.0  # of a legend in a file; pixels, about
ROW_LEADING = 13.5  # between the lines of a row's name


def _colours(shades: Sequence[str]) -> dict[Any, Any]:
    from cycler import cycler

    return {"axes.prop_cycle": cycler(color=shades)}


def _halo(figure: Figure) -> None:
    """As CSS does on the page: an edge of paper colour around text on lines."""
    from matplotlib.patheffects import withStroke
    from matplotlib.text import Text

    for text in figure.findobj(lambda artist: isinstance(artist, Text) and artist.get_gid() == HALO):
        text.set_path_effects([withStroke(linewidth=3, foreground=PAPER)])


def figure(
    size: tuple[float, float],
    margins: tuple[float, float, float, float],
    paint: Callable[[Axes], None],
    description: str,
    legend: Sequence[tuple[int, str]] = (),
    *,
    said: Mapping[int, str] | None = None,
) -> Drawing:
    """One pair of axes."""
    return Drawing(size, margins, paint, description, legend, said or {})


def belongs(index: int) -> str:
    """The `gid` of what is drawn of strategy `index`."""
    return f"series-{index}"


def two_lines(label: str, longest: int) -> str:
    """A label on at most two lines of `longest` letters; a longer one loses its middle."""
    lines = textwrap.wrap(label, longest) or [""]
    if len(lines) <= 2:
        return "\n".join(lines)
    return f"{label[: longest - 1].rstrip()}…\n…{label[-longest + 1 :].lstrip()}"


def row_name(axes: Axes, y: float, lines: Sequence[str]) -> None:
    """The name of a row, left of the axes.

    Each line by itself: a browser's letters are not as wide as matplotlib takes them to be.
    """
    for at, line in enumerate(lines):
        axes.annotate(
            line,
            (0, y),
            (-10, ROW_LEADING * ((len(lines) - 1) / 2 - at)),
            xycoords=("axes fraction", "data"),
            textcoords="offset points",
            horizontalalignment="right",
            verticalalignment="center_baseline",
        )


def line_style(index: int) -> Any:
    """The dash of a strategy in matplotlib's format."""
    return (0, look.dash(index)) if look.dash(index) else "-"


def tick_text(share: bool) -> Callable[[float, float], str]:
    """How numbers at an axis are written; shares in per cent."""

    def text(value: float, _: float) -> str:
        return numbers.tick(float(f"{100 * value if share else value:.12g}"))

    return text


def no_text(_value: float, _place: float) -> str:
    """Nothing, for the small ticks of an axis."""
    return ""


def interval(
    axes: Axes, y: float, of: tuple[float, float], ends: tuple[float, float], style: Mapping[str, Any]
) -> None:
    """A horizontal line at `y`; an arrow where it goes on beyond an end of the axes."""
    low, high = (min(max(end, ends[0]), ends[1]) for end in of)
    axes.plot([low, high], [y, y], linewidth=2.2, solid_capstyle="butt", **style)
    for end, inside, mark in ((low, of[0], "<"), (high, of[1], ">")):
        if end != inside:
            axes.plot([end], [y], mark, markersize=6, markeredgewidth=0, clip_on=False, **style)


def heading(axes: Axes, text: str, scale: Scale, left: float) -> None:
    """What the vertical axis shows, above it and `left` of it."""
    place: Any = {"xycoords": "axes fraction", "textcoords": "offset points"}
    axes.annotate(text + scale.note, (0, 1), (4 - left, 12), color=MUTED, **place)


def write(
    axes: Axes, text: str, at: tuple[float, float], side: Literal["left", "right"], above: bool
) -> None:
    """A small text at a horizontal line; `at` is a share of the width, and a value of the vertical axis."""
    axes.annotate(
        text,
        at,
        (5 if side == "left" else -5, 4 if above else -4),
        xycoords=("axes fraction", "data"),
        textcoords="offset points",
        horizontalalignment=side,
        verticalalignment="bottom" if above else "top",
        color=MUTED,
        fontsize=SMALL,
        gid=HALO,
        zorder=5,
    )
