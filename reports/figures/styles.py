"""Colour, dash and marker of a strategy in every figure, by the strategy's index.

Sections take them through `svg`, the page's templates through `swatch` and `theme`. The colours are in
`benchmarks/colours.py`, since MLflow shows them, too.

Fixed: published figures (docs/claims.svg, docs/leaderboard-*.svg) until they are written anew. Free: the
look.
"""

from markupsafe import Markup

from benchmarks.colours import COLOURS

MOST_COLOURED = 8  # strategies of a figure with colours; of more strategies, only the leaders have a colour
LIGHT_PAPER, DARK_PAPER = "#ffffff", "#15181d"
LIGHT_TEXT = {"ink": "#1c2026", "muted": "#5f6773", "rule": "#e2e5ea", "quiet": "#8b929c"}
DARK_TEXT = {"ink": "#e7e9ec", "muted": "#9aa3af", "rule": "#2c323b", "quiet": "#6f7782"}
LIGHT_OUTCOMES = {"holds": "#3a7e66", "mixed": "#d77f29", "fails": "#cf2f17", "equal": "#244d85"}
DARK_OUTCOMES = {"holds": "#48c7a0", "mixed": "#f7a420", "fails": "#ea5935", "equal": "#5c8bb3"}

# One hue from light to dark, for amounts in heat maps. Text on the first five is dark, on the others light.
LIGHT_AMOUNTS = (
    "#eff3f9", "#cbd8ea", "#a8bedb", "#86a4cc", "#658abc", "#5074a7", "#3b5f93", "#284a7f", "#14366b",
)  # fmt: skip
DARK_AMOUNTS = (
    "#1d2530", "#263549", "#2f4563", "#38567f", "#41679c", "#6084b4", "#80a2cd", "#a1c1e6", "#c3e0ff",
)  # fmt: skip
OWN = 500  # first index of highlighted strategies, drawn in ink
QUIET = 1000  # first index of strategies in grey, for which there are no colours left
TURN = 5  # first amount with light text

DASHES = ((), (5.0, 1.6), (1.4, 1.4), (7.0, 1.6, 1.4, 1.6))
MARKERS = ("o", "s", "^", "D", "v", "P", "<", ">")
_SHAPES = {  # outlines in a box from -1 to 1, for the legends of figures
    "o": "M-1 0A1 1 0 1 1 1 0A1 1 0 1 1-1 0Z",
    "s": "M-.9-.9H.9V.9H-.9Z",
    "^": "M0-1L1 .9H-1Z",
    "v": "M0 1L1-.9H-1Z",
    "<": "M-1 0L.9-1V1Z",
    ">": "M1 0L-.9-1V1Z",
    "D": "M0-1.15L1.15 0L0 1.15L-1.15 0Z",
    "P": "M-.4-1.1H.4V-.4H1.1V.4H.4V1.1H-.4V.4H-1.1V-.4H-.4Z",
}

_IN_THE_MIDDLE = 'transform="translate(15 6) scale(3.6)" fill="currentColor"'


def colour(index: int) -> str:
    """Return the name of a strategy's colour in the palette."""
    return "quiet" if quiet(index) else "ink" if highlighted(index) else f"s{index % len(COLOURS)}"


def highlighted(index: int) -> bool:
    """Return whether a strategy is highlighted."""
    return OWN <= index < QUIET


def layer(index: int) -> int:
    """Return the drawing layer of a strategy: 0 for grey, 1 for coloured, 2 for highlighted."""
    return 0 if quiet(index) else 1 + highlighted(index)


def width(index: int) -> float:
    """Return the width of a strategy's line in pixels."""
    return 0.9 if quiet(index) else 2.6 if highlighted(index) else 1.6


def quiet(index: int) -> bool:
    """Return whether a strategy is drawn in grey, behind the leaders."""
    return index >= QUIET


def dash(index: int) -> tuple[float, ...]:
    """Return lengths of dashes and gaps in line widths, empty for a solid line; changes as markers repeat."""
    if quiet(index):
        return ()
    index %= OWN
    return DASHES[(index + index // len(MARKERS)) % len(DASHES)]


def marker(index: int) -> str:
    """Return matplotlib's letter for a strategy's marker; the marker changes when colours repeat."""
    index %= OWN
    return MARKERS[(index + index // len(COLOURS)) % len(MARKERS)]


def swatch(index: int) -> Markup:
    """Return a piece of the strategy's line, for keys and tables."""
    dashes = " ".join(f"{1.8 * part:g}" for part in dash(index)) or "none"
    mark = "" if quiet(index) else f'<path d="{_SHAPES[marker(index)]}" {_IN_THE_MIDDLE}/>'
    return Markup(
        f'<svg class="swatch" viewBox="0 0 30 12" aria-hidden="true" style="color:var(--{colour(index)})">'
        f'<path d="M0 6H30" stroke="currentColor" stroke-width="{0.2 + width(index):g}" '
        f'stroke-dasharray="{dashes}"/>'
        f"{mark}</svg>"
    )


def palette(dark: bool = False) -> dict[str, str]:
    """Return a theme's colours by name: text, paper, outcomes, strategies s0 …, amounts a0 …."""
    text, paper = (DARK_TEXT, DARK_PAPER) if dark else (LIGHT_TEXT, LIGHT_PAPER)
    outcomes, amounts = (DARK_OUTCOMES, DARK_AMOUNTS) if dark else (LIGHT_OUTCOMES, LIGHT_AMOUNTS)
    strategies = {f"s{at}": shade for at, shade in enumerate(COLOURS)}
    levels = {f"a{at}": shade for at, shade in enumerate(amounts)}
    return {**text, "paper": paper, **outcomes, **strategies, **levels}


def theme() -> Markup:
    """Return the colours as CSS variables, for light and dark."""
    light, dark = (
        "".join(f"--{name}:{shade};" for name, shade in palette(dark).items()) for dark in (False, True)
    )
    return Markup(f":root{{{light}}}@media screen and (prefers-color-scheme:dark){{:root{{{dark}}}}}")
