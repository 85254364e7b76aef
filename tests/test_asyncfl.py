"""The public module: its names, that they load on demand, and that it finds its own packages."""

import ast
import importlib
import inspect
import re
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest
from shell import python
from test_architecture import nodes

import asyncfl
from benchmarks.catalogue import FAMILIES, family

ROOT = Path(__file__).parents[1]

# Users' files import these: a name that leaves this list is announced in CHANGELOG.md.
NAMES = """
    run results curves clients figures compare tune report UserError
    simulate Simulated Experiment Scenario Timing Budget
    Strategy Sampling LocalWork ServerOptimizer Coding Problem Partition Model Durations Availability
    PerClient Arrangement
    conformance find
    Server Update Send World Evaluation Metric
    Count Share Rate Length Tune TuneAmong
"""
HEAVY = {"torch", "numpy", "pandas", "mlflow", "optuna", "matplotlib", "pydantic", "click"}


def test_the_public_names() -> None:
    assert asyncfl.__all__ == NAMES.split() and dir(asyncfl) == sorted(asyncfl.__all__)


def test_type_checkers_see_what_is_imported_on_demand() -> None:
    tree = ast.parse((ROOT / "asyncfl" / "__init__.py").read_text())
    block = next(node for node in tree.body if isinstance(node, ast.If))
    seen = {
        alias.name: node.module
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert seen == {name: home for home, names in asyncfl.HOMES.items() for name in names.split()}
    assert sorted(seen) == sorted(asyncfl.__all__)


def test_every_name_is_there_and_says_what_it_is() -> None:
    for name in asyncfl.__all__:
        value = getattr(asyncfl, name)
        assert value is getattr(asyncfl, name), name
        if inspect.isclass(value) or inspect.isfunction(value):
            assert (inspect.getdoc(value) or "").partition("\n")[0].endswith("."), name


def test_whatever_a_suite_selects_can_be_subclassed() -> None:
    for kind in FAMILIES:
        assert getattr(asyncfl, family(kind).__name__) is family(kind)


def test_a_name_that_is_not_public() -> None:
    with pytest.raises(AttributeError, match="module 'asyncfl' has no attribute 'Simulation'"):
        importlib.import_module("asyncfl").Simulation  # noqa: B018


def test_nothing_is_loaded_before_it_is_used(tmp_path: Path) -> None:
    show = f"print(*sorted({HEAVY} & sys.modules.keys()))"
    done = python(tmp_path, f"import sys, asyncfl\n{show}\nasyncfl.results, asyncfl.report\n{show}")
    assert (done.returncode, done.stdout) == (0, "\n\n"), done.stderr


@pytest.fixture
def occupied(tmp_path: Path) -> Path:
    """A folder with other packages under the names of ours: with and without __init__, and as a file."""
    for name in ("benchmarks", "reports", "fl_core"):
        (tmp_path / name).mkdir()
    (tmp_path / "benchmarks" / "__init__.py").write_text("")
    (tmp_path / "benchmarks" / "mine.py").write_text("import asyncfl\n\nclass B(asyncfl.Strategy): ...\n")
    (tmp_path / "reports" / "monthly.txt").write_text("")
    (tmp_path / "tuning.py").write_text("")
    return tmp_path


def test_our_packages_are_found_among_others_of_their_names(occupied: Path) -> None:
    show = f"print({', '.join(f'{name}.__file__' for name in asyncfl.PACKAGES)})"
    done = python(occupied, f"import asyncfl, {', '.join(asyncfl.PACKAGES)}\n{show}")
    expected = [str(ROOT / name / "__init__.py") for name in asyncfl.PACKAGES]
    assert done.stdout.split() == expected, done.stderr


@pytest.mark.parametrize("name", ["benchmarks", "tuning"])
def test_another_package_that_is_imported_already_is_named(occupied: Path, name: str) -> None:
    alone = f"import sys; path, sys.path = sys.path, ['']; import {name}; sys.path = path"
    done = python(occupied, f"{alone}; import asyncfl")
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert last.startswith("ImportError: ") and f"'{name}'" in last and str(occupied / name) in last


TINY = "{name: tiny, seeds: 2, problem: quadratic, budget: {updates: 9}, strategies: [%s]}"


def test_a_class_behind_the_name_of_one_of_our_packages(
    occupied: Path, typed: Callable[..., CompletedProcess[str]]
) -> None:
    (occupied / "tiny.yaml").write_text(TINY % "'benchmarks.mine:B'")
    done = typed("show", "tiny.yaml")
    assert done.returncode == 2 and done.stderr.count("\n") == 1, done.stderr
    assert "cannot import 'benchmarks.mine:B': ModuleNotFoundError" in done.stderr
    assert f"'benchmarks' is {ROOT / 'benchmarks'}; another folder of that name is not" in done.stderr


OURS = re.compile(rf"^[\s\">.]*(?:from|import) (?:{'|'.join(asyncfl.PACKAGES)})\b.*", re.MULTILINE)
PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "docs").rglob("*.ipynb")]
PAGES.remove(ROOT / "AGENTS.md")  # its code becomes part of fl_core


def test_pages_import_from_here_alone() -> None:
    assert {page.name: found for page in PAGES if (found := OURS.findall(page.read_text()))} == {}


def test_docstrings_import_from_here_alone() -> None:
    texts = [
        ast.get_docstring(node) or ""
        for found in nodes().values()
        for node in found
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
    ]
    assert [found for text in texts for found in OURS.findall(text)] == []
    assert OURS.findall(">>> from fl_core import parts") and OURS.findall('    "from benchmarks import x\\n"')
