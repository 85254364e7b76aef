"""The findings of the gate, for the terminal, for CI servers (JUnit XML) and for pull requests (Markdown)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from benchmarks.errors import UserError
from fl_core.text import many
from reports.gate.baseline import Baseline
from reports.gate.gate import GateCheck

if TYPE_CHECKING:
    from rich.console import RenderableType

HEADS = ("Scenario", "Strategy", "What", "Baseline", "Now", "Change", "Allowed")
STYLES = {"worse": "red", "changed": "yellow", "better": "green"}
HEADINGS = {"worse": "Worse", "changed": "Not what was recorded", "better": "Better"}


def verdict(checks: Sequence[GateCheck], suite: str) -> str:
    """The outcome as a sentence."""
    worse, changed, better = (
        [check for check in checks if check.verdict == one] for one in ("worse", "changed", "better")
    )
    ends = [
        f"{many(len(found), 'check')} {how}" for found, how in ((worse, "worse"), (better, "better")) if found
    ]
    if changed:
        ends.append(f"{len(changed)} not what was recorded")
    names = list(dict.fromkeys(check.strategy for check in (*worse, *changed)))
    who = f" ({', '.join(names[:5])}{' and others' if len(names) > 5 else ''})" if names else ""
    return f"{suite}: {many(len(checks), 'check')}, {', '.join(ends) or 'all as before'}{who}."


def how_compared(before: Baseline, now: Baseline) -> str:
    """Context of a difference: the commits of both, and which versions differ."""
    said = f"Baseline of commit {before.commit[:12] or 'unknown'}, runs of {now.commit[:12] or 'unknown'}."
    names = dict.fromkeys((*before.versions, *now.versions))
    pairs = ((name, before.versions.get(name, "none"), now.versions.get(name, "none")) for name in names)
    other = [f"{name} {then} → {today}" for name, then, today in pairs if then != today]
    return f"{said} Other versions: {', '.join(other)}." if other else said


def table(checks: Sequence[GateCheck]) -> RenderableType:
    """Checks that got worse, changed or got better, worst first."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    found = Table(box=box.SIMPLE_HEAD, header_style="dim", show_edge=False, padding=(0, 1, 0, 0))
    for head in HEADS:
        found.add_column(Text(head), justify="left" if head in HEADS[:3] else "right", overflow="fold")
    for kind, heading in HEADINGS.items():
        rows = [check for check in checks if check.verdict == kind]
        if rows:
            found.add_row(Text(heading, style=f"bold {STYLES[kind]}"))
        for check in rows:
            found.add_row(*(Text(cell) for cell in _cells(check)))
        found.add_section()
    return found


def _cells(check: GateCheck) -> tuple[str, ...]:
    scenario = check.scenario or "all"
    return scenario, check.strategy, check.what, check.before, check.now, check.change, check.allowed


def markdown(checks: Sequence[GateCheck], before: Baseline, now: Baseline, anew: str) -> str:
    """A summary for a pull request; `anew` is the command that writes a new baseline."""
    failed = any(check.failed for check in checks)
    lines = [f"## {'❌' if failed else '✅'} {verdict(checks, now.suite)}", ""]
    for kind, heading in HEADINGS.items():
        rows = [check for check in checks if check.verdict == kind]
        if rows:
            lines += [f"### {heading}", "", _row(HEADS), _row("---" for _ in HEADS)]
            lines += [*(_row(map(_escaped, _cells(check))) for check in rows), ""]
    if failed:
        lines += [f"Where this is meant, write a new baseline: `{anew}`.", ""]
    return "\n".join([*lines, how_compared(before, now)]) + "\n"


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _escaped(text: str) -> str:
    for mark in "\\|`*_<[":
        text = text.replace(mark, f"\\{mark}")
    return text.replace("\n", " ")


def junit(checks: Sequence[GateCheck], suite: str) -> str:
    """One test case per check, by scenario and strategy."""
    root = ET.Element("testsuites")
    about = {"name": f"asyncfl check {suite}", "tests": str(len(checks))}
    about["failures"] = str(sum(check.failed for check in checks))
    cases = ET.SubElement(root, "testsuite", about)
    for check in checks:
        where = f"{suite}.{check.scenario or 'all'}"
        case = ET.SubElement(cases, "testcase", classname=where, name=f"{check.strategy}: {check.what}")
        if check.verdict != "same":
            text = f"{check.before} → {check.now} ({check.change}; allowed {check.allowed})"
            if check.failed:
                ET.SubElement(case, "failure", type=check.verdict, message=text)
            else:
                ET.SubElement(case, "system-out").text = f"{check.verdict}: {text}"
    ET.indent(root)
    return ET.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def write(text: str, path: Path) -> None:
    """Write a file of the user's choice; UserError if that is not possible."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UserError(f"{path}: cannot be written: {error.strerror}") from None
