"""Forest plot of main results: a row each, with word, share of holding readings, and pooled effect.

Effects that are differences of accuracy share an axis, in points; others are written.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from textwrap import shorten, wrap

from markupsafe import Markup, escape

from benchmarks.claims.comparisons import Contrast, Same, Value
from reports import numbers
from reports.claims import matrix
from reports.claims.forest import what
from reports.claims.main_results import MainWord, Outcome
from reports.claims.pooled import PooledEffect, RandomEffects
from reports.figures import look

WIDTH = 1080  # pixels
LEFT, WORD, SCOPE, BAR, COUNT, AXIS = 12, 452, 549, 630, 740, 806  # left ends of columns
BAR_WIDTH, AXIS_WIDTH = 104, 258
HEAD, PAPER, LINE, ROW, FOOT = 50, 34, 14, 9, 72  # heights; of a row without its lines
LETTERS = 62  # of a line of words
MOST_LETTERS = 42  # of a written effect
MOST_POINTS = 30  # of accuracy at both ends of the axis
COLOURS: dict[MainWord, str] = {
    "holds": "holds",
    "mostly holds": "holds",
    "mixed": "mixed",
    "mostly fails": "fails",
    "fails": "fails",
    "undecided": "muted",
    "not run": "muted",
}
STYLE = (
    ".overview{font:12.5px system-ui,-apple-system,'Segoe UI',Roboto,'Liberation Sans',Arial,sans-serif}"
    ".overview text{fill:var(--ink)}.overview .head,.overview .small{fill:var(--muted);font-size:11.5px}"
    ".overview .paper,.overview .word{font-weight:600}"
    ".overview .rule{stroke:var(--rule)}.overview .zero{stroke:var(--muted)}"
    ".overview .band{fill:var(--rule)}"
    ".overview .predicted{stroke-width:1.2}.overview .interval{stroke-width:4}"
)
LEGEND = (
    "Bar: decided readings that hold (green), are equal within the margin (blue) or fail (red).",
    "Mark: mean over clusters, each an arrangement and a workload; to the right: in favour of the paper.",
    "Thick: its 95 % interval. Thin: one more cluster. Arrow: it goes on.",
    "Shaded: the margin, where a printed number, or no difference, is claimed.",
)


@dataclass(frozen=True, slots=True)
class PlotRow:
    """A main result with lines of text, and the top of a plot row in pixels."""

    outcome: Outcome
    lines: list[str]
    top: float

    @property
    def middle(self) -> float:
        """Height of the row's marks, in pixels."""
        return self.top + (ROW + LINE * len(self.lines)) / 2


def figure(results: Sequence[Outcome]) -> Markup:
    """Return the plot as an SVG element in the colours of the page."""
    parts, top = [*_head()], float(HEAD)
    for mine in matrix.by_paper(results):
        parts.append(_text(LEFT, top + 23, mine[0].paper.title, "paper"))
        top += PAPER
        order = list(matrix.OUTCOMES)
        for outcome in sorted(mine, key=lambda result: (order.index(result.word), -(result.share or 0))):
            row = PlotRow(outcome, wrap(outcome.result.words, LETTERS), top)
            parts += _row(row)
            top += ROW + LINE * len(row.lines)
    parts += [_text(LEFT, top + 20 + 15 * at, line, "small") for at, line in enumerate(LEGEND)]
    size = f'viewBox="0 0 {WIDTH} {top + FOOT:.0f}"'
    name = f'class="overview" role="img" aria-label="{escape(matrix.summary(results))}"'
    head = f"<svg {name} {size}>"
    return Markup(f"{head}<style>{STYLE}</style>{''.join(parts)}</svg>")


def file(results: Sequence[Outcome]) -> str:
    """Return the plot as a file, in the colours of light and dark themes, on paper."""
    names = ("ink", "muted", "rule", "paper", "equal", "fails", "holds", "mixed")
    light, dark = (
        "".join(f"--{name}:{look.palette(dark)[name]};" for name in names) for dark in (False, True)
    )
    themes = f":root{{{light}background:var(--paper)}}@media(prefers-color-scheme:dark){{:root{{{dark}}}}}"
    text = str(figure(results)).replace("<style>", f"<style>{themes}", 1)
    return text.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1) + "\n"


def _head() -> Iterator[str]:
    """Yield the titles of the columns, and the axis."""
    titles = ((LEFT, "Main result"), (WORD, "Word, and scope"), (BAR, "Decided readings"))
    yield from (_text(x, 18, title, "head") for x, title in titles)
    yield _text(AXIS, 18, "Pooled effect, points of accuracy", "head")
    for points in range(-MOST_POINTS, MOST_POINTS + 1, 10):
        x = _place(points / 100)
        yield f'<path class="rule" d="M{x:.1f} {HEAD - 9}V{HEAD - 4}"/>'
        yield _text(x, HEAD - 13, numbers.minus(f"{points}"), "head", text_anchor="middle")


def _row(row: PlotRow) -> Iterator[str]:
    outcome, middle = row.outcome, row.middle
    colour = f"var(--{COLOURS[outcome.word]})"
    yield f'<path class="rule" d="M{LEFT} {row.top:.1f}H{WIDTH - LEFT}"/>'
    for at, line in enumerate(row.lines):
        yield _text(LEFT, row.top + 15 + LINE * at, line)
    yield _text(WORD, middle + 4, outcome.word, "word", style=f"fill:{colour}")
    if outcome.scope:
        yield _text(SCOPE, middle + 4, outcome.scope.replace("paper's workload", "paper's"), "small")
    yield from _bar(outcome, middle)
    if outcome.pooled is None:
        return
    if _in_points(outcome.pooled):
        yield from _drawn(outcome.pooled, middle, colour)
    else:
        yield _text(AXIS, middle + 4, _written(outcome.pooled), "small")


def _bar(outcome: Outcome, middle: float) -> Iterator[str]:
    """Yield a bar of decided readings (holding, without difference, failing), and counts as text."""
    decided = outcome.decided
    if not decided:
        return
    failing = sum(reading.word == "refuted" for reading in decided)
    holding = len(outcome.holding)
    x = float(BAR)
    for n, colour in ((holding, "holds"), (len(decided) - holding - failing, "equal"), (failing, "fails")):
        width = BAR_WIDTH * n / len(decided)
        if n:
            size = f'width="{width:.1f}" height="10"'
            yield f'<rect x="{x:.1f}" y="{middle - 5:.1f}" {size} fill="var(--{colour})"/>'
        x += width
    yield _text(COUNT, middle + 4, f"{holding} of {len(decided)}", "small")


def _in_points(effect: PooledEffect) -> bool:
    """Return whether an effect is a difference of accuracies."""
    claim = effect.typical
    log = isinstance(claim, Contrast) and claim.log
    return claim.shares and claim.kind in {"better", "same", "contrast", "value"} and not log


def _drawn(pooled: PooledEffect, middle: float, colour: str) -> Iterator[str]:
    effect, claim = pooled.effect, pooled.typical
    if isinstance(claim, Same | Value):
        low, high = _place(-claim.allowed), _place(claim.allowed)
        yield f'<rect class="band" x="{low:.1f}" y="{middle - 8:.1f}" width="{high - low:.1f}" height="16"/>'
    yield f'<path class="zero" d="M{_place(0):.1f} {middle - 11:.1f}V{middle + 11:.1f}"/>'
    if effect.predicted:
        yield from _line(effect.predicted, middle, colour, "predicted")
    yield from _line((effect.low, effect.high), middle, colour, "interval")
    place = f'cx="{_place(effect.mean):.1f}" cy="{middle:.1f}"'
    yield f'<circle {place} r="5" fill="{colour}" stroke="var(--paper)"/>'


def _line(ends: Iterable[float], middle: float, colour: str, name: str) -> Iterator[str]:
    low, high = ends
    low_x, high_x = _place(low), _place(high)
    yield f'<path class="{name}" stroke="{colour}" d="M{low_x:.1f} {middle:.1f}H{high_x:.1f}"/>'
    limit = MOST_POINTS / 100
    for end, x, turn in ((low, low_x, -1), (high, high_x, 1)):
        if abs(end) > limit:
            yield f'<path fill="{colour}" d="M{x:.1f} {middle - 4:.1f}l{7 * turn} 4l{-7 * turn} 4Z"/>'


def _place(effect: float) -> float:
    """Return the position of a difference on the axis, clipped to both ends."""
    limit = MOST_POINTS / 100
    return AXIS + AXIS_WIDTH * (min(max(effect, -limit), limit) + limit) / (2 * limit)


def _written(pooled: PooledEffect) -> str:
    """Return an effect as text, for effects other than differences of accuracy."""
    effect: RandomEffects = pooled.effect
    write = partial(numbers.number, digits=2)
    measure, _, form = what(pooled.typical).partition(": ")
    measure = " ".join(filter(None, ("ratio of" if form == "ratio" else "", measure.partition(" Σ")[0])))
    estimate = f"{write(effect.mean)} {numbers.interval(effect.low, effect.high, write)}"
    return shorten(f"{estimate} {measure}", MOST_LETTERS, placeholder=" …")


def _text(x: float, y: float, text: str, name: str = "", **style: str) -> str:
    attributes = {"class": name, **{key.replace("_", "-"): value for key, value in style.items()}}
    more = "".join(f' {key}="{value}"' for key, value in attributes.items() if value)
    return f'<text x="{x:.1f}" y="{y:.1f}"{more}>{escape(text)}</text>'
