"""Matplotlib figures: inside the page as SVG in the page's colours and fonts, and as files for a paper.

Sections return a `Drawing`; the functions below draw marks, lines, axes and labels in one style. Figures are
drawn in named colours of matplotlib, which stand for CSS variables on the page, for real colours in files.
"""

from __future__ import annotations

import functools
import hashlib
import io
import logging
import re
import textwrap
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from xml.etree import ElementTree as ET

import numpy as np
from markupsafe import Markup

from reports import numbers
from reports.figures import styles

# Placeholder in matplotlib's output → name of the CSS variable that takes its place
STAND_INS = {f"#0000{0xA0 + at:02x}": name for at, name in enumerate(styles.palette())}
HALO = "halo"  # the `gid` of text that stands on lines
LEFT_OUT = ("metadata", "style")
SMALL_TEXT = "font-size: 9.5px"
NUMBER = re.compile(r"-?\d+\.\d+")
REFERENCE = re.compile(r"(?<=^#)[^)]+|(?<=url\(#)[^)]+")  # to another element, by its id


def inline(document: str, description: str, tooltips: Mapping[int, str] | None = None) -> Markup:
    """Return the document as an <svg>.

    `description` is for screen readers; `tooltips` are texts by strategy, for pointing at its line.
    """
    root = ET.fromstring(document)
    for element in root.iter():
        element.tag = _local(element.tag)
        element.attrib = {_local(name): value for name, value in element.attrib.items()}
        element.text, element.tail = (
            part if part and part.strip() else None for part in (element.text, element.tail)
        )
    for parent in list(root.iter()):
        for child in [child for child in parent if child.tag in LEFT_OUT]:
            parent.remove(child)
    used = {
        reference
        for element in root.iter()
        for value in element.attrib.values()
        for reference in REFERENCE.findall(value)
    }
    prefix = hashlib.sha256(document.encode()).hexdigest()[:6]  # makes ids unique among the figures of a page
    for element in root.iter():
        element.attrib = _themed(element.attrib, used, prefix)
    top = {element.get("data-s"): element for element in root.iter("g")}  # the last of each is on top
    for index, text in (tooltips or {}).items():
        if (group := top.get(str(index))) is not None:
            title = ET.Element("title")
            title.text = text
            group.insert(0, title)
    root.attrib = {"viewBox": root.attrib["viewBox"], "role": "img", "aria-label": description}
    return Markup(ET.tostring(root, encoding="unicode"))


def _local(name: str) -> str:
    """Return the name of an element or attribute without the namespace, implied by HTML."""
    return name.rpartition("}")[2]


def _themed(attributes: dict[str, str], used: set[str], prefix: str) -> dict[str, str]:
    """Return attributes in the page's colours and fonts, two decimals, only the ids referred to."""
    themed = {}
    for name, value in attributes.items():
        if name == "id":
            if value.startswith("series-"):
                themed["data-s"] = value.removeprefix("series-")
            elif value == HALO:
                themed["class"] = HALO
            elif value in used:
                themed["id"] = prefix + value
        elif name == "style":
            style = _style(value)
            if SMALL_TEXT in value:
                themed["class"] = "sm"
            themed |= {"style": style} if style else {}
        else:
            themed[name] = " ".join(value.split())
    themed = {name: NUMBER.sub(_two_decimals, value) for name, value in themed.items()}
    return {name: REFERENCE.sub(lambda match: prefix + match[0], value) for name, value in themed.items()}


def _two_decimals(number: re.Match[str]) -> str:
    return f"{round(float(number[0]), 2):g}"


@functools.cache
def _style(text: str) -> str:
    """Return a style with CSS variables for placeholder colours, without fonts, which the page sets."""
    text = re.sub(rf"font-family: [^;]*;?|font-size: 11px;?|{SMALL_TEXT};?", "", text)
    text = re.sub(r"#0000[abc][0-9a-f]", lambda shade: f"var(--{STAND_INS[shade[0]]})", text)
    return ";".join(part for piece in text.split(";") if (part := piece.strip().replace(": ", ":")))


if TYPE_CHECKING:
    import matplotlib.axes
    from matplotlib.figure import Figure

    Axes = matplotlib.axes.Axes
else:
    Axes = Any  # matplotlib is imported when a figure is drawn

logging.getLogger("matplotlib.font_manager").setLevel(logging.ERROR)  # it tells users of its cache

_PALETTE = styles.palette()
_NAMED = {name: f"asyncfl {name}" for name in _PALETTE}  # matplotlib's names of the colours
INK, MUTED, RULE, PAPER = (_NAMED[name] for name in ("ink", "muted", "rule", "paper"))
SIZE, MARGINS = (400, 270), (46, 14, 30, 44)  # of most figures
SMALL = 9.5  # size of small text; all other text has the size that the page gives to figures
LETTER, LEADING = 6.6, 17.0  # of a legend in a file; pixels, about
ROW_LEADING = 13.5  # between the lines of a row's name
TITLE_DROP = 21.5  # from the horizontal axis to the top of its title: mark 3, gap 3.5, number 11, gap 4
WIDE = 12  # a clock is shown on a log scale from this ratio on between the ends of two lines
OFFSET: dict[str, Any] = {"xycoords": "axes fraction", "textcoords": "offset points"}

_STYLE: dict[Any, Any] = {
    "axes.edgecolor": MUTED,
    "axes.facecolor": "none",
    "axes.grid": True,
    "axes.grid.axis": "y",
    "axes.labelcolor": MUTED,
    "axes.spines.left": False,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titley": 1.0,  # without a place, matplotlib looks for one, although there is no title
    "figure.facecolor": "none",
    "font.size": 11,
    "grid.color": RULE,
    "grid.linewidth": 0.8,
    "path.simplify": True,
    "pdf.fonttype": 42,
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


@dataclass(frozen=True, slots=True, eq=False)
class Drawing:
    """A pair of axes, rendered by templates as an <svg> in the colours of the page.

    Args:
        paint: Draws; marks of a strategy have the `style` of the strategy, for colours and tooltips.
        description: For screen readers: the topic and the finding.
        size: Width and height in CSS pixels.
        margins: Left, right, top and bottom in CSS pixels.
        legend: Index and label of the strategies, for a key; the page writes the key beside the figure.
        said: Tooltips, by index of the strategy.
    """

    paint: Callable[[Axes], None] = field(repr=False)
    description: str
    size: tuple[float, float] = SIZE
    margins: tuple[float, float, float, float] = MARGINS
    legend: Sequence[tuple[int, str]] = ()
    said: Mapping[int, str] = field(default_factory=dict)

    def __html__(self) -> Markup:
        """Return the figure as part of a page."""
        text = io.StringIO()
        with _in_style(list(STAND_INS)):
            metadata = dict.fromkeys(("Date", "Creator", "Format", "Type"))
            self._drawn(self.size[1]).savefig(text, format="svg", metadata=metadata)
        return inline(text.getvalue(), self.description, self.said)

    def save(self, path: Path) -> None:
        """Write a .svg or .pdf file, on paper and with the legend; same data give same bytes."""
        path.write_bytes(self._file(path.suffix))

    def _repr_svg_(self) -> str:
        """Return the figure as SVG for a notebook."""
        return self._file(".svg").decode()

    def _file(self, suffix: str) -> bytes:
        """Return the content of a .svg or .pdf file."""
        from matplotlib.lines import Line2D

        date, content = {".svg": "Date", ".pdf": "CreationDate"}[suffix], io.BytesIO()
        with _in_style(list(_PALETTE.values())):
            widest = 48 + LETTER * max((len(label) for _, label in self.legend), default=0)
            columns = min(len(self.legend), max(1, int(self.size[0] // widest))) or 1
            rows = -(-len(self.legend) // columns)
            figure = self._drawn(self.size[1] + LEADING * rows + (8 if rows else 0))
            keys = [
                Line2D(
                    [], [], color=series(index), linestyle=line_style(index), marker=styles.marker(index),
                    markersize=0 if styles.quiet(index) else 5, markeredgewidth=0, linewidth=1.6, label=label,
                )
                for index, label in self.legend
            ]  # fmt: skip
            if keys:
                figure.legend(handles=keys, loc="lower left", ncols=columns, frameon=False, handlelength=2.6)
            _halo(figure)
            figure.savefig(content, format=suffix[1:], metadata={date: None}, facecolor=PAPER)
        return content.getvalue()

    def _drawn(self, height: float) -> Figure:
        """Return the figure; height beyond `size` is added at the bottom."""
        from matplotlib.figure import Figure

        width, (margin_left, right, top, bottom) = self.size[0], self.margins
        bottom += height - self.size[1]
        figure = Figure(figsize=(width / 72, height / 72))
        box = (
            margin_left / width,
            bottom / height,
            1 - (margin_left + right) / width,
            1 - (top + bottom) / height,
        )
        axes = figure.add_axes(box)
        axes.set_axisbelow(True)
        self.paint(axes)
        if not axes.get_ylabel():
            axes.yaxis.set_label_coords(0, 0)  # without a place, matplotlib measures all numbers to find one
        return figure


@contextmanager
def _in_style(colours: Sequence[str]) -> Iterator[None]:
    """Draw in the style of the page in the context, with the given colours in the order of the palette."""
    import matplotlib as mpl

    named = mpl.colors.get_named_colors_mapping()
    for name, shade in zip(_NAMED.values(), colours, strict=True):
        named[name] = shade
    with mpl.rc_context(_STYLE), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from")  # a browser draws text with its own fonts
        yield


def _halo(figure: Figure) -> None:
    """Draw an edge of paper colour around text on lines, as `.halo text` of page.css does on the page."""
    from matplotlib.patheffects import withStroke
    from matplotlib.text import Text

    for text in figure.findobj(lambda artist: isinstance(artist, Text) and artist.get_gid() == HALO):
        text.set_path_effects([withStroke(linewidth=3, foreground=PAPER)])


# -- a strategy's colour and marks --


def series(index: int) -> str:
    """Return the colour of a strategy."""
    return _NAMED[styles.colour(index)]


def style(index: int) -> dict[str, Any]:
    """Return the style of a strategy's marks: the colour, and the `gid` of the strategy."""
    return {"color": series(index), "gid": f"series-{index}"}


def line_style(index: int) -> Any:
    """Return the dash of a strategy in matplotlib's format."""
    return (0, styles.dash(index)) if styles.dash(index) else "-"


def dot(
    axes: Axes,
    index: int,
    at: tuple[float, float],
    size: float,
    mark: str = "o",
    *,
    edge: float = 0.0,
    hollow: bool = False,
) -> None:
    """Draw a mark of a strategy, `size` pixels wide, the edge `edge` wide; hollow shows the paper."""
    drawn: dict[str, Any] = {"markersize": size, "markeredgewidth": edge, **style(index)}
    axes.plot([at[0]], [at[1]], mark, markerfacecolor=PAPER if hollow else series(index), **drawn)


def strokes(axes: Axes, index: int, values: np.ndarray | Sequence[float], y: float) -> None:
    """Draw a vertical stroke at every value of a strategy, in the row at height `y`, all as a single path."""
    from matplotlib import patches, path

    ends = np.stack([np.repeat(values, 2), np.tile([y - 0.24, y + 0.24], len(values))], axis=1)
    lines = path.Path(ends, [path.Path.MOVETO, path.Path.LINETO] * len(values))
    # Not `add_patch`: it searches every segment for extremes, which takes a second for 100,000 values
    axes.update_datalim(ends)
    axes.add_artist(patches.PathPatch(lines, fill=False, linewidth=0.8, **style(index)))


def markers(axes: Axes, index: int, x: np.ndarray, y: np.ndarray, at: Sequence[int] | np.ndarray) -> None:
    """Draw the markers of a strategy's line at the given points."""
    axes.plot(x[at], y[at], styles.marker(index), markersize=5, markeredgewidth=0, **style(index))


def interval(
    axes: Axes, index: int, y: float, low_high: tuple[float, float], ends: tuple[float, float]
) -> None:
    """Draw a horizontal line at `y`, with an arrow where the interval exceeds the axes."""
    low, high = (min(max(end, ends[0]), ends[1]) for end in low_high)
    axes.plot([low, high], [y, y], linewidth=2.2, solid_capstyle="butt", **style(index))
    for end, inside, mark in ((low, low_high[0], "<"), (high, low_high[1], ">")):
        if end != inside:
            axes.plot([end], [y], mark, markersize=6, markeredgewidth=0, clip_on=False, **style(index))


# -- amounts as colours --


def amount(level: int) -> tuple[str, str]:
    """Return the colours of an amount and of text on top; levels are 0 … 8."""
    return _NAMED[f"a{level}"], PAPER if level >= styles.TURN else INK


# -- axes and their words --


def across(axes: Axes, title: str, *, share: bool = False, log: bool = False) -> None:
    """Write numbers and title of the horizontal axis; shares in per cent."""
    axes.xaxis.set_major_formatter(tick_text(share))
    axes.xaxis.set_minor_formatter(lambda _value, _place: "")
    axes.set_xlabel(title + (" · log scale" if log else ""))
    figure = axes.get_figure(root=True)
    assert figure is not None
    height = 72 * figure.get_figheight() * axes.get_position().height
    axes.xaxis.set_label_coords(0.5, -TITLE_DROP / height)


def clock_axis(axes: Axes, title: str, clocks: Sequence[np.ndarray], room: float = 1.015) -> None:
    """Fit the horizontal axis to increasing clocks, a clock for each line.

    Where lines would be squeezed at the edge it gets a log scale, which begins after the start.
    """
    ends = [float(clock[-1]) for clock in clocks]
    first = [float(clock[clock > 0][0]) for clock in clocks if clock[-1] > 0]
    log = bool(first) and min(ends) > 0 and max(ends) / min(ends) >= WIDE
    if log:
        axes.set_xscale("log", nonpositive="mask")
        axes.set_xlim(min(first) / 1.15, max(ends) * 1.15)
    elif first:
        axes.locator_params(axis="x", nbins=5)
        axes.set_xlim(0, max(ends) * room)
    across(axes, title, log=log)


def tick_text(share: bool) -> Callable[[float, float], str]:
    """Return a function to write numbers at an axis; shares in per cent."""
    return lambda value, _place: numbers.tick(float(f"{100 * value if share else value:.12g}"))


def heading(axes: Axes, text: str, margin: float) -> None:
    """Write the title of the vertical axis above the axes, starting in a left margin of width `margin`."""
    axes.annotate(text, (0, 1), (4 - margin, 12), color=MUTED, **OFFSET)


def two_lines(label: str, longest: int) -> str:
    """Return a label on at most two lines of `longest` letters; a longer label loses the middle."""
    lines = textwrap.wrap(label, longest) or [""]
    if len(lines) <= 2:
        return "\n".join(lines)
    return f"{label[: longest - 1].rstrip()}…\n…{label[-longest + 1 :].lstrip()}"


def row_name(axes: Axes, y: float, lines: Sequence[str]) -> None:
    """Write the name of a row left of the axes.

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


def write(
    axes: Axes, text: str, at: tuple[float, float], side: Literal["left", "right"], above: bool
) -> None:
    """Write a small text at a line; `at` is a share of the width, and a value of the vertical axis."""
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
