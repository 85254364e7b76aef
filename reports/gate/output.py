"""The findings of the gate, for the terminal, for CI servers (JUnit XML) and for pull requests (Markdown).

`asyncfl check` prints and writes them.

Fixed: the first texts of both files, by which the command knows its own files. Free: the rest.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from benchmarks.errors import writing
from reports import tables
from reports.gate.baseline import Baseline
from reports.gate.gate import GOLDEN_TOLERANCE, WORDS, Finding, GateCheck, verdict
from reports.numbers import minus

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

# Characters that Markdown reads as markup.
ESCAPED = str.maketrans({**{mark: f"\\{mark}" for mark in "\\|`*_<["}, "\n": " "})
# First texts of our own files: the command overwrites these, and no other files.
SUMMARY = "<!-- asyncfl check -->"
JUNIT_TITLE = "asyncfl check "
JUNIT = f'name="{JUNIT_TITLE}'
HEADS = ("Scenario", "Strategy", "What", "Baseline", "Now", "Change", "Allowed")
COLOURS = {  # of the findings in tables, worst first
    Finding.WORSE: "red",
    Finding.CHANGED: "yellow",
    Finding.BETTER: "green",
    Finding.IMPROVED: "green",
    Finding.ROUNDED: "yellow",
}
FENCE = "`" * 8  # around text that may contain a fence of three


def how_compared(baseline: Baseline, build: Baseline, tolerance: float = GOLDEN_TOLERANCE) -> str:
    """Return the context of a difference: commits, tolerance of losses, and reason for the tolerance."""
    sentence = f"Baseline: {_commits(baseline)}. Runs: {_commits(build)}. Golden values may differ by"
    sentence = f"{sentence} {minus(f'{tolerance:.0e}') if tolerance else 'nothing'}"
    if build.repeats(baseline):
        return f"{sentence}. A difference is a warning, since processor and libraries are the same."
    names = dict.fromkeys((*baseline.versions, *build.versions))
    pairs = [(name, baseline.versions.get(name, "none"), build.versions.get(name, "none")) for name in names]
    pairs.append(("processor", baseline.processor or "not recorded", build.processor or "not recorded"))
    changes = [f"{name} {then} → {today}" for name, then, today in pairs if then != today]
    return f"{sentence}: {'; '.join(changes) or 'the processor is not recorded'}."


def _commits(baseline: Baseline) -> str:
    """Return the commits of a baseline in words: the user's repository and asyncfl, or one if equal."""
    repository = baseline.repository if baseline.repository != baseline.commit else ""
    commits = [("your repository", repository), ("asyncfl", baseline.commit)]
    return (
        ", ".join(
            f"{name} at {commit[:12]}" + (" with uncommitted changes" if commit.endswith("+") else "")
            for name, commit in commits
            if commit
        )
        or "of no known commit"
    )


def to_accept(checks: Sequence[GateCheck], check: str) -> str:
    """Return a sentence with the command to accept the results as baseline; empty if all are as before.

    `check` is the command that compared, without its options for reports.
    """
    findings = {check.finding for check in checks}
    if Finding.WORSE in findings:
        return f"If this is intended, accept it with a reason: `{check} --update --accept-worse REASON`."
    if Finding.CHANGED in findings:
        return f"If this is intended, accept it: `{check} --update`."
    return f"Accept the improvement: `{check} --update`." if Finding.BETTER in findings else ""


def allowed(checks: Sequence[GateCheck]) -> RenderableType:
    """Return how much worse every seed may be than in a baseline as a table for the terminal.

    Args:
        checks: A baseline's own, compared with itself.
    """
    printed = _empty((*HEADS[:4], HEADS[-1]))
    for check in checks:
        if check.scenario and check.allowed:
            printed.add_row(check.scenario, check.strategy, check.what, check.before, check.allowed)
    return printed


def quality(checks: Sequence[GateCheck]) -> RenderableType:
    """Return means then and now, and how many seeds got worse or better, as a table for the terminal."""
    printed = _empty(HEADS[:-1])
    for check in checks:
        printed.add_row(*_row(check)[:-1])
    return printed


def table(checks: Sequence[GateCheck]) -> RenderableType:
    """Return worse, changed and better checks as a table for the terminal, worst first."""
    from rich.text import Text

    printed = _empty(HEADS)
    for heading, colour, rows in _by_finding(checks):
        printed.add_row(Text(heading, style=f"bold {colour}"))
        for row in rows:
            printed.add_row(*map(Text, row))
        printed.add_section()
    return printed


def _empty(heads: Sequence[str]) -> Table:
    """Return a table for the terminal, without rows."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    printed = Table(box=box.SIMPLE_HEAD, header_style="dim", show_edge=False, padding=(0, 1, 0, 0))
    for head in heads:
        printed.add_column(Text(head), justify="left" if head in HEADS[:3] else "right", overflow="fold")
    return printed


def _by_finding(checks: Sequence[GateCheck]) -> Iterator[tuple[str, str, Sequence[Sequence[str]]]]:
    """Yield heading, colour and rows of all changes, worst first."""
    for kind, colour in COLOURS.items():
        if rows := [_row(check) for check in checks if check.finding is kind]:
            yield WORDS[kind].capitalize(), colour, rows


def _row(check: GateCheck) -> Sequence[str]:
    """Return a check as cells under `HEADS`."""
    identity = (check.scenario or "all", check.strategy, check.title)
    return (*identity, check.before, check.now, check.change, check.allowed)


def markdown(
    checks: Sequence[GateCheck],
    baseline: Baseline,
    build: Baseline,
    accept: str,
    tolerance: float = GOLDEN_TOLERANCE,
) -> str:
    """Return a summary for a pull request; `accept` tells how to accept results, if any."""
    failed = any(check.failed for check in checks)
    parts = [f"{SUMMARY}\n## {'❌' if failed else '✅'} {verdict(checks, build.suite)}"]
    same = [_row(check) for check in checks if check.finding is Finding.SAME]
    tables_of = [(heading, rows) for heading, _, rows in _by_finding(checks)]
    for heading, rows in [*tables_of, *([("As before", same)] if same else [])]:
        escaped = [[cell.translate(ESCAPED) for cell in row] for row in rows]
        parts += [f"### {heading}", tables.markdown(HEADS, escaped, text_columns=len(HEADS))]
    return "\n\n".join(filter(None, [*parts, accept, how_compared(baseline, build, tolerance)])) + "\n"


def junit(checks: Sequence[GateCheck], build: Baseline) -> str:
    """Return JUnit XML: a test case per check, by scenario and strategy, with equal names in every build.

    The time of a case is its share of the time that the runs of its scenario and strategy took.
    """
    root = ET.Element("testsuites")
    about = {"name": f"{JUNIT_TITLE}{build.suite}", "tests": str(len(checks))}
    about["failures"] = str(sum(check.failed for check in checks))
    cases = ET.SubElement(root, "testsuite", about)
    sizes = Counter((check.scenario, check.strategy) for check in checks)
    seconds: defaultdict[tuple[str, str], float] = defaultdict(float)
    for run in build.runs:
        seconds[run.scenario, run.strategy] += run.wall_seconds
    for check in checks:
        group = check.scenario, check.strategy
        case = ET.SubElement(
            cases,
            "testcase",
            classname=f"{build.suite}.{check.scenario or 'all'}",
            name=f"{check.strategy}: {check.what}",
            time=f"{seconds[group] / sizes[group]:.3f}",
        )
        aside = [check.change, check.allowed and f"allowed {check.allowed}", check.detail]
        text = f"{check.before} → {check.now}" + (
            f" ({'; '.join(filter(None, aside))})" if any(aside) else ""
        )
        if check.failed:
            ET.SubElement(case, "failure", type=check.finding, message=text)
        else:
            ET.SubElement(case, "system-out").text = f"{check.finding}: {text}"
    return _xml(root)


def junit_of_error(suite: str, lines: Sequence[str], trace: str) -> str:
    """Return JUnit XML of a failed comparison: a single case, with messages and traceback."""
    root = ET.Element("testsuites")
    about = {"name": f"{JUNIT_TITLE}{suite}", "tests": "1", "failures": "0", "errors": "1"}
    case = ET.SubElement(
        ET.SubElement(root, "testsuite", about), "testcase", classname=suite, name="comparison"
    )
    ET.SubElement(case, "error", message=_printable(lines[0])).text = _printable(
        "\n".join((*lines[1:], trace))
    )
    return _xml(root)


def markdown_of_error(suite: str, lines: Sequence[str], trace: str) -> str:
    """Return a summary of a failed comparison, with messages and traceback."""
    title = f"{SUMMARY}\n## ❌ {suite.translate(ESCAPED)}: not compared"
    parts = [f"{FENCE}text\n{text.strip()}\n{FENCE}" for text in ("\n".join(lines), trace) if text]
    return "\n\n".join((title, *parts)) + "\n"


def _xml(root: ET.Element) -> str:
    ET.indent(root)
    return ET.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _printable(text: str) -> str:
    """Return a text without control characters, since XML cannot hold any."""
    return "".join(character for character in text if character.isprintable() or character in "\n\t")


def write(text: str, path: Path) -> None:
    """Write a file of the user's choice; UserError if not possible."""
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
