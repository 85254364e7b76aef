"""Forest plot of main results: first a bar for each paper, then a row each, with word, counts, and effect.

`html` shows the `figure`, `markdown` writes it as docs/claims.svg (`file`).

The axis is one of points of accuracy: effects of other measures stand as text on the pages of the papers, and
in a table beside the plot. Results that rest on toys and theorems alone come last.

Fixed: docs/claims.svg, byte for byte, until it is written anew. Free: the look.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from textwrap import wrap

from markupsafe import Markup, escape

from benchmarks.claims.kinds import Same, Value
from reports import numbers
from reports.claims import matrix
from reports.claims.main_results import MainWord, Outcome, tally
from reports.claims.pooled_effects import PooledEffect
from reports.figures import styles

WIDTH = 1080  # pixels
LEFT, WORD, BAR, COUNT, AXIS = 12, 398, 498, 586, 806  # left ends of columns
BAR_WIDTH, AXIS_WIDTH = 80, 258
SUMMARY_WIDTH, SUMMARY_ROW = 280, 22  # of the bars of papers, and their text beside them
HEAD, PAPER, LINE, ROW, FOOT = 50, 34, 14, 9, 90  # heights; of a row without its lines
LETTERS = 55  # of a line of words
MOST_POINTS = 30  # of accuracy at both ends of the axis
TOYS = "Toys and theorems alone, of all papers"
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
    "Bar: decided readings that hold (green), find no difference (blue) or fail (red).",
    "Full mark: mean of at least 3 clusters. Thick: its 95 % interval. Thin: 95 % prediction interval.",
    "Open marks: means of 1 or 2 clusters. Two marks: two leading methods. Arrow: beyond the axis.",
    "To the right: in favour of the paper. Shaded: margin, within which differences do not matter.",
    "No mark: the effect has another unit, or cannot be pooled. See the page of the paper.",
)
PALE = 0.55  # opacity of the weaker word of a colour
SHIFT = 9  # pixels between two effects of a row


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
    parts = list(_summaries(results))
    top = float(HEAD + SUMMARY_ROW * len(matrix.by_paper(results)))
    parts += _head(top)
    top += HEAD
    for title, mine in _groups(results):
        parts.append(_text(LEFT, top + 23, title, "paper"))
        top += PAPER
        order = list(matrix.OUTCOMES)
        for outcome in sorted(mine, key=lambda result: (order.index(result.word), -(result.share or 0))):
            row = PlotRow(outcome, wrap(outcome.result.words, LETTERS, break_on_hyphens=False), top)
            parts += _row(row)
            top += ROW + LINE * len(row.lines)
    parts += [_text(LEFT, top + 20 + 15 * at, line, "small") for at, line in enumerate(LEGEND)]
    size = f'viewBox="0 0 {WIDTH} {top + FOOT:.0f}"'
    name = f'class="overview" role="img" aria-label="{escape(matrix.summary(results))}"'
    head = f"<svg {name} {size}>"
    return Markup(f"{head}<style>{STYLE}</style>{''.join(parts)}</svg>")


def _groups(results: Sequence[Outcome]) -> Iterator[tuple[str, list[Outcome]]]:
    """Yield main results by paper; toys alone come last."""
    toys = [outcome for outcome in results if set(outcome.scopes) == {"toy"}]
    for mine in matrix.by_paper(results):
        if not_toys := [outcome for outcome in mine if set(outcome.scopes) != {"toy"}]:
            yield mine[0].paper.title, not_toys
    if toys:
        yield TOYS, toys


def _summaries(results: Sequence[Outcome]) -> Iterator[str]:
    """Yield a bar for each paper with its main results by word, and counts as text."""
    yield _text(LEFT, 18, "Main results of each paper, by word", "head")
    widest = max((len(mine) for mine in matrix.by_paper(results)), default=1)
    for at, mine in enumerate(matrix.by_paper(results)):
        y = 36.0 + SUMMARY_ROW * at
        yield _text(LEFT, y + 4, mine[0].paper.title.partition(" (")[0], "paper")
        counts = Counter(outcome.word for outcome in mine)
        x, words = float(WORD), [word for word in matrix.OUTCOMES if counts[word]]
        for word in words:
            width = SUMMARY_WIDTH * counts[word] / widest
            size = f'width="{width - 2:.1f}" height="13"'
            shade = f' opacity="{PALE}"' if word.startswith("mostly") or word == "undecided" else ""
            yield f'<rect x="{x:.1f}" y="{y - 6:.1f}" {size} style="fill:var(--{COLOURS[word]})"{shade}/>'
            x += width
        yield _text(x + 8, y + 4, ", ".join(f"{word} {counts[word]}" for word in words), "small")


def file(results: Sequence[Outcome]) -> str:
    """Return the plot as a file, in the colours of light and dark themes, on paper."""
    names = ("ink", "muted", "rule", "paper", "equal", "fails", "holds", "mixed")
    light, dark = (
        "".join(f"--{name}:{styles.palette(dark)[name]};" for name in names) for dark in (False, True)
    )
    themes = f":root{{{light}background:var(--paper)}}@media(prefers-color-scheme:dark){{:root{{{dark}}}}}"
    text = str(figure(results)).replace("<style>", f"<style>{themes}", 1)
    return text.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1) + "\n"


def _head(top: float) -> Iterator[str]:
    """Yield the titles of the columns, and the axis."""
    titles = ((LEFT, "Main result"), (WORD, "Word"), (BAR, "Decided readings that hold, by workload"))
    yield from (_text(x, top + 18, title, "head") for x, title in titles)
    yield _text(AXIS, top + 18, "Effect, points of accuracy", "head")
    for points in range(-MOST_POINTS, MOST_POINTS + 1, 10):
        x = _place(points / 100)
        yield f'<path class="rule" d="M{x:.1f} {top + HEAD - 9:.1f}V{top + HEAD - 4:.1f}"/>'
        yield _text(x, top + HEAD - 13, numbers.minus(f"{points}"), "head", text_anchor="middle")


def _row(row: PlotRow) -> Iterator[str]:
    """Yield the elements of a row: the words of the result, its outcome, the bar, and the effects."""
    outcome, middle = row.outcome, row.middle
    colour = f"var(--{COLOURS[outcome.word]})"
    yield f'<path class="rule" d="M{LEFT} {row.top:.1f}H{WIDTH - LEFT}"/>'
    for at, line in enumerate(row.lines):
        yield _text(LEFT, row.top + 15 + LINE * at, line)
    yield _text(WORD, middle + 4, outcome.word, "word", style=f"fill:{colour}")
    yield from _bar(outcome, middle)
    drawn = [part for part in outcome.pooled if in_points(part)]
    for at, part in enumerate(drawn):
        yield from _drawn(part, middle + SHIFT * (at - (len(drawn) - 1) / 2), colour)


def _bar(outcome: Outcome, middle: float) -> Iterator[str]:
    """Yield a bar of decided readings (holding, without difference, failing), and counts as text."""
    holding, decided = tally(outcome.deciding)
    if not decided:
        return
    failing = sum(reading.word == "refuted" for reading in outcome.decided)
    x = float(BAR)
    for n, colour in ((holding, "holds"), (decided - holding - failing, "equal"), (failing, "fails")):
        width = BAR_WIDTH * n / decided
        if n:
            size = f'width="{width:.1f}" height="10"'
            yield f'<rect x="{x:.1f}" y="{middle - 5:.1f}" {size} fill="var(--{colour})"/>'
        x += width
    names = {"paper's workload": "paper's"}
    counts = (f"{names.get(scope, scope)} {held} of {n}" for scope, (held, n) in outcome.scopes.items())
    yield _text(COUNT, middle + 4, ", ".join(counts), "small")


def in_points(effect: PooledEffect) -> bool:
    """Return whether an effect is a difference of accuracies, at the end or on average."""
    claim = effect.typical
    levels = all(sample.along in {"last", "mean"} for sample in claim.samples.values())
    return (
        levels and claim.shares and claim.kind in {"better", "same", "contrast", "value"} and not effect.log
    )


def _drawn(pooled: PooledEffect, middle: float, colour: str) -> Iterator[str]:
    """Yield the marks of a pooled effect: margin, zero, prediction interval, interval and mean."""
    effect, claim = pooled.effect, pooled.typical
    if isinstance(claim, Same | Value):
        low, high = _place(-claim.allowed), _place(claim.allowed)
        yield f'<rect class="band" x="{low:.1f}" y="{middle - 8:.1f}" width="{high - low:.1f}" height="16"/>'
    yield f'<path class="zero" d="M{_place(0):.1f} {middle - 11:.1f}V{middle + 11:.1f}"/>'
    if effect is None:
        for mean in pooled.means:
            place = f'cx="{_place(mean):.1f}" cy="{middle:.1f}"'
            yield f'<circle {place} r="3.5" fill="var(--paper)" stroke="{colour}" stroke-width="1.6"/>'
        return
    yield from _line(effect.predicted, middle, colour, "predicted")
    yield from _line((effect.low, effect.high), middle, colour, "interval")
    place = f'cx="{_place(effect.mean):.1f}" cy="{middle:.1f}"'
    yield f'<circle {place} r="5" fill="{colour}" stroke="var(--paper)"/>'


def _line(ends: Iterable[float], middle: float, colour: str, name: str) -> Iterator[str]:
    """Yield the line of an interval, with an arrow at an end beyond the axis."""
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


def _text(x: float, y: float, text: str, name: str = "", **style: str) -> str:
    """Return a text element of a CSS class; `style` are further attributes."""
    attributes = {"class": name, **{key.replace("_", "-"): value for key, value in style.items()}}
    more = "".join(f' {key}="{value}"' for key, value in attributes.items() if value)
    return f'<text x="{x:.1f}" y="{y:.1f}"{more}>{escape(text)}</text>'
