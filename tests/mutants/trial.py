"""In a child: pytest on chosen tests, either watched by coverage.py or against a mutated module."""

import itertools
import os
import sys
import time
from collections.abc import Iterator
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import spec_from_file_location
from pathlib import Path
from types import CodeType
from typing import Any

import coverage
import pytest

from tests.mutants.imports import empty_caches, forget
from tests.mutants.mutant import Mutant
from tests.mutants.targets import ROOT

PATIENCE = 10  # a test that takes ten times as long as usual, and ten seconds, hangs
STAGES = (6, 40)  # ranks of tests that pytest is started anew for


class Watched:
    """Notes how long each test takes and which lines it runs.

    What a shared fixture runs counts for all its tests; what the mutated files cache is computed anew.
    """

    def __init__(self, watch: coverage.Coverage, paths: list[str]) -> None:
        self.watch = watch
        self.paths = paths
        self.seconds: dict[str, float] = {}
        self.outcomes: dict[str, str] = {}
        self.fixtures: dict[str, list[str]] = {}  # test → its fixtures
        self.running = ""  # the test

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """One test: a context of its own."""
        empty_caches(self.paths)
        self.fixtures[item.nodeid] = list(getattr(item, "fixturenames", []))
        self.running = item.nodeid
        self.watch.switch_context(item.nodeid)
        began = time.perf_counter()
        result = yield
        self.seconds[item.nodeid] = time.perf_counter() - began
        self.running = ""
        self.watch.switch_context("")
        return result

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(
        self, fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest
    ) -> Iterator[None]:
        """A fixture that outlives a test: a context of its own, by its name."""
        if fixturedef.scope == "function":
            return (yield)
        self.watch.switch_context(fixturedef.argname)
        result = yield
        self.watch.switch_context(self.running)
        return result

    def tests(self, contexts: list[str]) -> list[str]:
        """The tests that passed and ran a line, from the names of contexts."""
        passed = [test for test, outcome in self.outcomes.items() if outcome == "passed"]
        return [test for test in passed if not {test, *self.fixtures[test]}.isdisjoint(contexts)]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """A test has passed if all its phases have."""
        if self.outcomes.get(report.nodeid, "passed") == "passed":
            self.outcomes[report.nodeid] = report.outcome


class Chosen:
    """Runs the tests that are asked for, in this order, and notes the first that fails."""

    def __init__(self, seconds: dict[str, float], known: set[str]) -> None:
        self.rank = {test: place for place, test in enumerate(seconds)}
        self.seconds = seconds
        self.known = known
        self.killer = ""

    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """A test that nobody knows has a new name because of the mutation: it is run, at the end."""
        items[:] = [item for item in items if item.nodeid in self.rank or item.nodeid not in self.known]
        items.sort(key=lambda item: self.rank.get(item.nodeid, len(self.rank)))
        for item in items:
            item.add_marker(pytest.mark.timeout(PATIENCE * (1 + self.seconds.get(item.nodeid, 1))))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """The first failure ends the run (-x)."""
        if report.failed:
            self.killer = report.nodeid


class MutatedModule(MetaPathFinder, SourceFileLoader):
    """Finds one module, and gives it the mutated text; the file stays as it is."""

    def __init__(self, mutant: Mutant, text: str) -> None:
        SourceFileLoader.__init__(self, mutant.module, str(ROOT / mutant.file))
        self.text = text

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """This module's, and no other's."""
        return spec_from_file_location(fullname, self.path, loader=self) if fullname == self.name else None

    def get_code(self, fullname: str) -> CodeType:
        """The mutated code, never a cached one."""
        return compile(self.text, self.path, "exec", dont_inherit=True)


def run_pytest(test_files: list[str], plugin: object, scratch: str) -> int:
    """pytest's exit status; the only plugin stops what hangs, since to load them takes long."""
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    options = [
        "-q",
        "-x",
        "--tb=native",
        *("-p", "no:cacheprovider"),
        *("-p", "no:unraisableexception"),
        *("-p", "pytest_timeout"),
    ]
    folders = [f"--basetemp={scratch}", f"--rootdir={ROOT}"]
    return int(pytest.main([*options, *folders, *test_files], plugins=[plugin]))


def watch(test_file: str, targets: list[str], scratch: str) -> dict[str, Any]:
    """What a test file's tests run.

    {"tests": [(test, seconds)], "failed": [test], "lines": {file: {line: numbers of tests in "tests"}}}
    """
    paths = [str(ROOT / file) for file in targets]
    watched = coverage.Coverage(data_file=None, config_file=False, include=paths)
    watched.start()
    plugin = Watched(watched, paths)
    run_pytest([test_file, "--maxfail=0"], plugin, scratch)
    watched.stop()
    data = watched.get_data()
    passed = [test for test, outcome in plugin.outcomes.items() if outcome == "passed"]
    place = {test: number for number, test in enumerate(passed)}
    lines: dict[str, dict[int, list[int]]] = {}
    for file in data.measured_files():
        contexts = data.contexts_by_lineno(file).items()
        found = {line: [place[test] for test in plugin.tests(names)] for line, names in contexts}
        lines[Path(file).relative_to(ROOT).as_posix()] = found
    return {
        "tests": [(test, plugin.seconds[test]) for test in passed],
        "failed": [test for test, outcome in plugin.outcomes.items() if outcome == "failed"],
        "lines": lines,
    }


def try_tests(seconds: dict[str, float], known: set[str], scratch: str) -> tuple[str, str]:
    """("killed", by which test) or ("survived", "").

    `seconds` says which tests run, and in what order; `known` are all tests there are without a mutation.
    """
    for stage in _stages(seconds):
        plugin = Chosen(stage, known)
        status = run_pytest(sorted({test.partition("::")[0] for test in stage}), plugin, scratch)
        if status not in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
            return "killed", plugin.killer
    return "survived", ""


def _stages(seconds: dict[str, float]) -> Iterator[dict[str, float]]:
    """First a few tests: most mutants fall to one of them, and to collect them all takes a while."""
    tests = list(seconds.items())
    for first, last in itertools.pairwise((0, *STAGES, len(tests))):
        if stage := tests[first:last]:
            yield dict(stage)


def try_mutant(mutant: Mutant, seconds: dict[str, float], known: set[str], scratch: str) -> tuple[str, str]:
    """`try_tests` with the mutated module; ("no mutant", "") where the mutation gives no other program."""
    text = mutant.source()
    if text is None:
        return "no mutant", ""
    if not seconds:
        return "survived", ""
    forget(mutant.module)
    sys.meta_path.insert(0, MutatedModule(mutant, text))
    return try_tests(seconds, known, scratch)
