"""The files of evidence: a page in Markdown, an appendix in LaTeX, figures and tables, a manifest."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from reports import files
from reports.leaderboard import charts
from reports.leaderboard.choice import budget_curves
from reports.leaderboard.findings import Findings
from reports.leaderboard.printed import COUNTS, Printed, between, interval_over, summary, times
from reports.leaderboard.standing import Standing
from reports.sections.section import Section
from reports.tables import PageTable, TableEntry, escaped, markdown, slug

PAGE, APPENDIX, PAPER, MANIFEST, FIGURES = (
    "evidence.md",
    "appendix.tex",
    "evidence.tex",
    "manifest.json",
    "files",
)

DOCUMENT = r"""\documentclass{article}
\usepackage[T1]{fontenc}
\usepackage{booktabs,graphicx}
\usepackage[margin=2.5cm]{geometry}
\begin{document}
\appendix
\input{appendix}
\end{document}
"""
FIT = r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}"  # no wider than the text


def sections(findings: Findings) -> list[Section]:
    """Return the sections of the evidence, with figures and tables."""
    own, reference = findings.tuned, findings.tables.rules.reference
    curves = np.exp(budget_curves(own.costs, reference))
    shown = charts.colours([*findings.table.index], reference)
    return [
        Section(
            "standing",
            "How much sooner",
            "",
            f"Virtual time, client updates and bytes to the target, over those of tuned {reference}; of the "
            "last two less is better. Intervals of 95 % over seeds and over scenarios.",
            figures=[("speed-ups", charts.speedup_figure(findings.table, reference, shown))],
            tables=[_table("standing", *summary(findings.table))],
        ),
        Section(
            "paired",
            "Against each baseline",
            "",
            f"How many times sooner {findings.strategy} is, paired by scenario and seed.",
            tables=[
                _table("tuned", *_against(findings, own)),
                _table("one setting", *_against(findings, findings.one_setting)),
                _table("a third of the budget", *_against(findings, findings.third)),
            ],
        ),
        Section(
            "scenarios",
            "For which clients",
            "",
            f"How many times sooner than tuned {reference}, in each scenario.",
            tables=[_table("scenarios", *_across(own))],
        ),
        Section(
            "bytes",
            "Time against bytes",
            "",
            "Both to the target.",
            figures=[("time against bytes", charts.cost_figure(findings.table, reference, shown))],
        ),
        Section(
            "tuning",
            "How much tuning it takes",
            "",
            "The expected speed-up of the best of k random points of the design.",
            figures=[("budget curves", charts.budget_figure(own.costs.strategies, curves, reference, shown))],
            tables=[_table("budget curves", *_budget(own, curves))],
        ),
        Section(
            "ablation",
            "Ablation",
            "",
            f"How many times longer {findings.strategy} takes without a part, at the tuned points."
            + (f" Not measured: {failed}." if (failed := findings.ablation_failed) else ""),
            tables=[_table("ablation", *_ablation(findings))] if len(findings.ablation) else [],
        ),
        Section(
            "refused",
            "What it does not take",
            "",
            "By its own declaration, and why.",
            tables=[_table("refused", ("What", "Why"), list(findings.refused.items()))]
            if findings.refused
            else [],
        ),
    ]


def write(findings: Findings, manifest: Mapping[str, Any], folder: Path) -> None:
    """Write page, appendix, figures, tables and manifest into a folder."""
    parts = [part for part in sections(findings) if part.figures or part.tables]
    files.write_files(parts, folder / FIGURES)
    (folder / PAGE).write_text(_page(findings, parts), encoding="utf-8")
    (folder / APPENDIX).write_text(_latex(findings, parts), encoding="utf-8")
    (folder / PAPER).write_text(DOCUMENT, encoding="utf-8")
    text = json.dumps(dict(manifest), indent=2, ensure_ascii=False)
    (folder / MANIFEST).write_text(text + "\n", encoding="utf-8")


def _page(findings: Findings, parts: Sequence[Section]) -> str:
    lines = [f"# Evidence for {findings.strategy}", "## What may be claimed", findings.claim()]
    for part in parts:
        lines += [f"## {part.title}", part.note]
        lines += [f"![{drawing.description}]({_file(part, what)}.svg)" for what, drawing in part.figures]
        for table in part.tables:
            rows = [[entry.text for entry in line] for line in table.lines]
            lines += [f"### {table.name.capitalize()}"] if len(part.tables) > 1 else []
            lines.append(markdown(table.headings, rows))
    points = (f"- [{'x' if met else ' '}] {point}" for met, point in findings.checklist())
    lines += ["## What a reviewer would ask", "\n".join(points)]
    lines.append(f"Digests of code, data and tables, and versions: [{MANIFEST}]({MANIFEST}).")
    return "\n\n".join(lines) + "\n"


def _latex(findings: Findings, parts: Sequence[Section]) -> str:
    lines = [rf"\section{{Evidence for {escaped(findings.strategy)}}}", escaped(findings.claim())]
    for part in parts:
        lines += [rf"\subsection{{{escaped(part.title)}}}", escaped(part.note)]
        for what, _ in part.figures:
            lines.append(_centred(rf"\includegraphics[width=.8\linewidth]{{{_file(part, what)}.pdf}}"))
        for table in part.tables:
            name = rf"\textit{{{escaped(table.name.capitalize())}}}\\[2pt]" if len(part.tables) > 1 else ""
            lines.append(_centred(rf"{name}{FIT}{{\input{{{_file(part, table.name)}.tex}}\unskip}}"))
    lines += [r"\subsection{What a reviewer would ask}", r"\begin{itemize}"]
    lines += [rf"\item {'Yes' if met else 'Open'}: {escaped(point)}." for met, point in findings.checklist()]
    return "\n\n".join([*lines, r"\end{itemize}"]) + "\n"


def _centred(content: str) -> str:
    return rf"\begin{{center}}{content}\end{{center}}"


def _file(part: Section, what: str) -> str:
    return f"{FIGURES}/{slug(f'{part.anchor} {what}')}"


def _table(name: str, headings: Sequence[str], rows: Sequence[Sequence[str]]) -> PageTable:
    lines = [[TableEntry(text.strip("*"), best=text.startswith("**")) for text in row] for row in rows]
    return PageTable(name, pd.DataFrame([list(row) for row in rows], columns=list(headings)), headings, lines)


def _against(findings: Findings, own: Standing) -> Printed:
    scenarios = len(own.costs.scenarios)
    rows = [
        (
            str(name),
            times(row["factor"]),
            interval_over(row, "seeds"),
            interval_over(row, "scenarios"),
            f"{row['ahead_in']} of {scenarios}",
            row["verdict"],
        )
        for name, row in findings.against(own).iterrows()
    ]
    return ("Baseline", "Sooner", "95 % seeds", "95 % scenarios", "Ahead in", "Over both"), rows


def _across(own: Standing) -> Printed:
    rows = [
        (" · ".join(scenario), *(times(factor) for factor in np.exp(own.by_scenario[:, place])))
        for place, scenario in enumerate(own.costs.scenarios)
    ]
    return ("Scenario", *own.costs.strategies), rows


def _budget(own: Standing, curves: np.ndarray) -> Printed:
    most = curves.shape[1]
    counts = [*(k for k in COUNTS if k < most), most]
    rows = [
        (name, *(times(curve[k - 1]) for k in counts))
        for name, curve in zip(own.costs.strategies, curves, strict=True)
    ]
    return ("Strategy", *(f"Best of {k}" for k in counts)), rows


def _ablation(findings: Findings) -> Printed:
    rows = [
        (row["part"], "fails", "–")
        if row["error"]
        else (row["part"], times(row["factor"]), between(row["low"], row["high"]))
        for row in findings.ablation.to_dict("records")
    ]
    return ("Without", "Takes", "95 % seeds"), rows
