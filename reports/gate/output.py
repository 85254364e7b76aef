"""The findings of the gate, for the terminal, for CI servers (JUnit XML) and for pull requests (Markdown)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from benchmarks.errors import UserError
from fl_core.text import many
from reports import tables
from reports.gate.baseline import Baseline
from reports.gate.gate import Finding, GateCheck

if TYPE_CHECKING:
    from rich.console import RenderableType

# Characters that Markdown reads as markup.
ESCAPED = str.maketrans({**{mark: f"\\{mark}" for mark in "\\|`*_<["}, "\n": " "})
HEADS = ("Scenario", "Strategy", "What", "Baseline", "Now", "Change", "Allowed")
# What is shown, worst first: heading and colour.
HEADINGS = {
    Finding.WORSE: ("Worse", "red"),
    Finding.CHANGED: ("Not what was recorded", "yellow"),
    Finding.BETTER: ("Better", "green"),
}


def verdict(checks: Sequence[GateCheck], suite: str) -> str:
    """Return the outcome as a sentence."""
    n = Counter(check.finding for check in checks)
    ends = [f"{many(n[kind], 'check')} {kind}" for kind in (Finding.WORSE, Finding.BETTER) if n[kind]]
    if n[Finding.CHANGED]:
        ends.append(f"{n[Finding.CHANGED]} not what was recorded")
    failed = [check for kind in (Finding.WORSE, Finding.CHANGED) for check in checks if check.finding is kind]
    names = list(dict.fromkeys(check.strategy for check in failed))
    who = f" ({', '.join(names[:5])}{' and others' if len(names) > 5 else ''})" if names else ""
    return f"{suite}: {many(len(checks), 'check')}, {', '.join(ends) or 'all as before'}{who}."


def how_compared(before: Baseline, now: Baseline) -> str:
    """Return the context of a difference: the commits of both, and which versions differ."""
    commits = f"Baseline of commit {before.commit[:12] or 'unknown'}, runs of {now.commit[:12] or 'unknown'}."
    names = dict.fromkeys((*before.versions, *now.versions))
    pairs = ((name, before.versions.get(name, "none"), now.versions.get(name, "none")) for name in names)
    other = [f"{name} {then} → {today}" for name, then, today in pairs if then != today]
    return f"{commits} Other versions: {', '.join(other)}." if other else commits


def table(checks: Sequence[GateCheck]) -> RenderableType:
    """Return checks that got worse, changed or got better as a table for the terminal, worst first."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    printed = Table(box=box.SIMPLE_HEAD, header_style="dim", show_edge=False, padding=(0, 1, 0, 0))
    for head in HEADS:
        printed.add_column(Text(head), justify="left" if head in HEADS[:3] else "right", overflow="fold")
    for heading, colour, rows in _by_finding(checks):
        printed.add_row(Text(heading, style=f"bold {colour}"))
        for row in rows:
            printed.add_row(*map(Text, row))
        printed.add_section()
    return printed


def _by_finding(checks: Sequence[GateCheck]) -> Iterator[tuple[str, str, Sequence[Sequence[str]]]]:
    """Yield heading, colour and rows of all that is not as before, worst first."""
    for kind, (heading, colour) in HEADINGS.items():
        rows = [
            (
                check.scenario or "all",
                check.strategy,
                check.what,
                check.before,
                check.now,
                check.change,
                check.allowed,
            )
            for check in checks
            if check.finding is kind
        ]
        if rows:
            yield heading, colour, rows


def markdown(checks: Sequence[GateCheck], before: Baseline, now: Baseline, anew: str) -> str:
    """Return a summary for a pull request; `anew` is the command that writes a new baseline."""
    failed = any(check.failed for check in checks)
    parts = [f"## {'❌' if failed else '✅'} {verdict(checks, now.suite)}"]
    for heading, _, rows in _by_finding(checks):
        escaped = [[cell.translate(ESCAPED) for cell in row] for row in rows]
        parts += [f"### {heading}", tables.markdown(HEADS, escaped, left=len(HEADS))]
    if failed:
        parts.append(f"Where this is meant, write a new baseline: `{anew}`.")
    return "\n\n".join([*parts, how_compared(before, now)]) + "\n"


def junit(checks: Sequence[GateCheck], suite: str) -> str:
    """Return JUnit XML: one test case per check, by scenario and strategy."""
    root = ET.Element("testsuites")
    about = {"name": f"asyncfl check {suite}", "tests": str(len(checks))}
    about["failures"] = str(sum(check.failed for check in checks))
    cases = ET.SubElement(root, "testsuite", about)
    for check in checks:
        where = f"{suite}.{check.scenario or 'all'}"
        case = ET.SubElement(cases, "testcase", classname=where, name=f"{check.strategy}: {check.what}")
        if check.finding is not Finding.SAME:
            text = f"{check.before} → {check.now} ({check.change}; allowed {check.allowed})"
            if check.failed:
                ET.SubElement(case, "failure", type=check.finding, message=text)
            else:
                ET.SubElement(case, "system-out").text = f"{check.finding}: {text}"
    ET.indent(root)
    return ET.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def write(text: str, path: Path) -> None:
    """Write a file of the user's choice; UserError if that is not possible."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UserError(f"{path}: cannot be written: {error.strerror}") from None
