"""Which tests run which lines, as coverage.py saw it.

A mutant is tried by the tests that run its statement.
"""

import ast
import hashlib
import json
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click

from tests.mutants.forks import Job, results
from tests.mutants.mutant import Mutant
from tests.mutants.targets import ROOT, TESTS_OF_DEFAULTS, group_of, test_files
from tests.mutants.trial import watch


@dataclass
class Relevance:
    """Tests by line, and how long each takes."""

    seconds: dict[str, float] = field(default_factory=dict)  # test → seconds
    lines: dict[str, dict[int, set[str]]] = field(default_factory=dict)  # file → line → tests
    failed: list[str] = field(default_factory=list)  # without a mutation: left out
    version: str = ""  # a digest of the tests: of those that were through in time
    kills: Counter[tuple[str, str]] = field(default_factory=Counter)  # (file, test) → mutants killed so far

    def add(self, found: dict[str, Any]) -> None:
        """What one test file's tests run, from `watch`."""
        self.seconds |= dict(found["tests"])
        names = [test for test, _ in found["tests"]]
        self.failed += found["failed"]
        for file, lines in found["lines"].items():
            for line, tests in lines.items():
                known = self.lines.setdefault(file, {}).setdefault(int(line), set())
                known.update(names[test] for test in tests)

    def tests(self, mutant: Mutant, limit: float = float("inf")) -> dict[str, float]:
        """Test → seconds, in the order to run them: those that killed a neighbour, then the quickest.

        As many as take `limit` seconds together, and one at least.

        Inside a function: the tests that run the statement. Outside: those that run anything of the file, and
        those of defaults, since a default or a constant is also read from elsewhere.
        """
        lines = self.lines.get(mutant.file, {})
        body = body_lines(mutant)
        near = set[str]().union(*(tests for line, tests in lines.items() if body is None or line in body))
        of_defaults = {test for test in self.seconds if test.startswith(TESTS_OF_DEFAULTS)}
        chosen = near if body is not None else near | of_defaults

        def place(test: str) -> tuple[int, float]:
            return -self.kills[mutant.file, test], self.seconds[test]

        found, total = {}, 0.0
        for test in sorted(chosen, key=place):
            total += self.seconds[test]
            if found and total > limit:
                break
            found[test] = self.seconds[test]
        return found


def body_lines(mutant: Mutant) -> range | None:
    """Lines of the innermost statement around a mutation, None outside of any function.

    Of a compound statement its head alone; for the head of a function its whole body.
    """
    line, inside, found = mutant.start[0], False, None
    body: list[ast.stmt] = ast.parse((ROOT / mutant.file).read_text()).body
    while statement := next((each for each in body if _first(each) <= line <= (each.end_lineno or 0)), None):
        blocks = [block for name in ("body", "orelse", "finalbody") for block in getattr(statement, name, [])]
        blocks += [inner for handler in getattr(statement, "handlers", []) for inner in handler.body]
        blocks += [inner for case in getattr(statement, "cases", []) for inner in case.body]
        end = blocks[0].lineno - 1 if blocks else statement.end_lineno or line
        found = range(_first(statement), max(end, statement.lineno) + 1)
        if isinstance(statement, ast.FunctionDef):
            inside = True
            if line < blocks[0].lineno:
                return range(blocks[0].lineno, (statement.end_lineno or line) + 1)
        body = blocks
    return found if inside else None


def _first(statement: ast.stmt) -> int:
    """The first line, decorators included."""
    decorators = getattr(statement, "decorator_list", [])
    return min([statement.lineno, *(each.lineno for each in decorators)])


def _digests(files: list[str]) -> dict[str, str]:
    """Test file → digest of what its lines depend on: fl_core, what tests share, and the file itself."""
    targets = " ".join(group_of())
    shared = [path for path in (ROOT / "tests/fl_core").rglob("*.py") if not path.name.startswith("test_")]
    paths = [*(ROOT / "fl_core").rglob("*.py"), *shared]
    common = f"{sys.version} {targets}".encode() + b"".join(path.read_bytes() for path in sorted(paths))
    return {file: hashlib.sha256(common + (ROOT / file).read_bytes()).hexdigest() for file in files}


def relevance(folder: Path, workers: int, deadline: float, scratch: str) -> Relevance:
    """From `folder` where nothing has changed since, else by running the tests, in half of the time at most.

    Test files that are not through by then are left out, and watched by the next call.
    """
    stored = folder / "relevance.json"
    digests = _digests(test_files())
    kept = json.loads(stored.read_text()) if stored.exists() else {}
    parts = {file: kept[digest] for file, digest in digests.items() if digest in kept}
    targets = list(group_of())
    waiting = sorted(digests.keys() - parts.keys(), key=lambda file: (ROOT / file).stat().st_size)

    def next_job() -> Job | None:
        """The longest are begun first."""
        file = waiting.pop() if waiting else None
        return file and Job(file, watch, (file, targets, f"{scratch}/{Path(file).stem}"))

    half = (time.monotonic() + deadline) / 2
    parts |= {file: part for file, part in results(next_job, workers, half) if part is not None}
    stored.write_text(json.dumps({digests[file]: part for file, part in parts.items()}))
    if missing := digests.keys() - parts.keys():
        click.echo(f"Left out, since they were not through in time: {', '.join(sorted(missing))}", err=True)
    version = hashlib.sha256("".join(sorted(digests[file] for file in parts)).encode()).hexdigest()[:16]
    found = Relevance(version=version)
    for part in parts.values():
        found.add(part)
    return found
