"""Tables as LaTeX, with the rules of booktabs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from reports.statistics.ranking import RankingEntry

# Characters that LaTeX reads as commands, and letters missing in its usual fonts.
SPECIAL: dict[str, str | int | None] = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    **{letter: f"\\{letter}" for letter in "&%$#_{}"},
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "\N{NO-BREAK SPACE}": "~",
    "∞": r"$\infty$",
    "−": "$-$",
    "±": r"$\pm$",
    "×": r"$\times$",
    "·": r"$\cdot$",
    "≈": r"$\approx$",
    "≤": r"$\leq$",
    "²": r"\textsuperscript{2}",
    "‖": r"$\Vert$",
    "∇": r"$\nabla$",
    "Σ": r"$\Sigma$",
    "ᵢ": "$_i$",
    "α": r"$\alpha$",
    "β": r"$\beta$",
    "η": r"$\eta$",
    "τ": r"$\tau$",
}


def text(plain: str) -> str:
    """A text escaped for LaTeX."""
    return plain.translate(str.maketrans(SPECIAL))


def table(headings: Sequence[str], lines: Sequence[Sequence[RankingEntry]]) -> str:
    """A tabular: the first column to the left, all others to the right; needs the package booktabs."""
    # pandas writes such tables, but not with two columns of one name, nor with braces in a name.
    rows = [[text(heading) for heading in headings], *([_cell(entry) for entry in line] for line in lines)]
    head, *body = [" & ".join(row) + r" \\" for row in rows]
    columns = "l" + "r" * (len(headings) - 1)
    parts = [rf"\begin{{tabular}}{{{columns}}}", r"\toprule", head, r"\midrule", *body, r"\bottomrule"]
    return "\n".join([*parts, r"\end{tabular}", ""])


def _cell(entry: RankingEntry) -> str:
    main = rf"\textbf{{{text(entry.text)}}}" if entry.best else text(entry.text)
    return f"{main} {text(entry.detail)}" if entry.detail else main
