"""The house as a test: who imports whom, what the science never touches, a docstring on everything public."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ("fl_core", "benchmarks", "tuning", "reports")  # each may import those before it, and itself

# The command line is the door that opens onto every room; nothing else imports it.
DOOR = ("benchmarks.cli", "benchmarks.commands")

# The rooms of fl_core: each imports from the floors below, and on its own floor from the neighbours it names.
FLOORS = (
    {"parts", "streams", "vision", "flat"},
    {"jobs", "roster", "timing", "problems"},
    {"theory", "strategy", "arrangement", "local_work", "server", "scenario", "caches"},
    {"execution", "all_in_flight", "auto", "schedule_only", "experiment"},
    {"simulation", "strategies"},
    {"measure", "diagnostics", "checkpoint", "together"},
)
NEIGHBOURS = {
    ("local_work", "server"),  # the three interfaces are written against the server
    ("arrangement", "server"),
    ("caches", "server"),
    ("strategy", "server"),
    ("strategy", "local_work"),  # and a strategy chooses its local work
    ("strategy", "scenario"),  # and may refuse a scenario
    ("scenario", "arrangement"),
    ("auto", "execution"),  # it chooses between the two
    ("auto", "all_in_flight"),
    ("all_in_flight", "execution"),  # the batched way stands beside the plain one
    ("schedule_only", "execution"),  # and so does the way of no training
    ("together", "measure"),
    ("measure", "diagnostics"),  # what is asked for beside the curve
    ("checkpoint", "measure"),  # what was measured so far is saved too
}
FLOOR = {room: height for height, rooms in enumerate(FLOORS) for room in rooms}

NEVER_IN_THE_SCIENCE = {"mlflow", "optuna", "yaml", "pandas", "matplotlib", "click", "rich", "jinja2"}

# Methods that a library calls; their documentation is the library's.
LIGHTNING = {"forward", "training_step", "configure_optimizers"}
CLICK = {"list_commands", "get_command", "resolve_command"}


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(path): path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))}
TREES = {name: ast.parse(path.read_text(), str(path)) for name, path in MODULES.items()}


def imports(tree: ast.Module) -> Iterator[str]:
    """Every module that is imported anywhere in `tree`: inside functions and for type checking, too."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.module is not None and node.level == 0, "imports are absolute"
            yield from (
                inner if (inner := f"{node.module}.{alias.name}") in MODULES else node.module
                for alias in node.names
            )


def is_door(module: str) -> bool:
    return any(module == door or module.startswith(f"{door}.") for door in DOOR)


def may_import(importer: str, imported: str) -> bool:
    """Whether one module of the house may import another."""
    if is_door(importer):
        return True
    if is_door(imported):
        return False
    here, there = importer.split("."), imported.split(".")
    if here[0] != there[0]:
        return PACKAGES.index(there[0]) < PACKAGES.index(here[0])
    if here[0] != "fl_core" or len(here) == 1 or len(there) == 1:
        return True
    room, other = here[1], there[1]
    return room == other or FLOOR[other] < FLOOR[room] or (room, other) in NEIGHBOURS


@pytest.mark.parametrize("module", MODULES)
def test_imports_only_what_stands_below(module: str) -> None:
    inside = {name for name in imports(TREES[module]) if name.split(".")[0] in PACKAGES}
    assert [name for name in sorted(inside) if not may_import(module, name)] == []


def test_the_rule_tells_up_from_down() -> None:
    assert may_import("fl_core.strategies.tables.ace", "fl_core.server.server")
    assert not may_import("fl_core.server.server", "fl_core.strategies.tables.ace")
    assert not may_import("fl_core.server.server", "fl_core.strategies.strategy")
    assert not may_import("fl_core.loop.simulation", "fl_core.strategies.tables.ace")
    assert not may_import("fl_core.recording.recorder", "benchmarks.tracking.tracking")
    assert not may_import("benchmarks.session", "reports.page")
    assert not may_import("benchmarks.session", "benchmarks.cli")
    assert not may_import("tuning.study", "reports.page")
    assert may_import("benchmarks.commands.report", "reports.page")
    assert may_import("reports.page", "tuning.study")


def test_every_room_of_the_core_has_its_floor() -> None:
    rooms = {name.split(".")[1] for name in MODULES if name.startswith("fl_core.")}
    assert rooms - FLOOR.keys() == set()


@pytest.mark.parametrize("module", [name for name in MODULES if name.split(".")[0] == "fl_core"])
def test_the_science_knows_no_tracker_tuner_or_command_line(module: str) -> None:
    assert {name.split(".")[0] for name in imports(TREES[module])} & NEVER_IN_THE_SCIENCE == set()


def test_a_problem_without_data_loads_no_lightning() -> None:
    program = (
        "import sys, fl_core.loop.simulation, fl_core.recording.recorder\n"
        "from fl_core.problems.problem import Problem\n"
        "from fl_core.strategies.strategy import Strategy\n"
        "Problem.members(), Strategy.members()\n"
        "print(*{'pytorch_lightning', 'torchvision', 'sklearn', 'mlflow', 'pandas'} & sys.modules.keys())"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == []


def public(nodes: list[ast.stmt]) -> Iterator[ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in nodes:
        definition = isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        if definition and not node.name.startswith("_"):
            yield node


def documented_methods() -> set[str]:
    """Names of all methods that some class of the house documents: an override inherits that."""
    classes = (node for tree in TREES.values() for node in ast.walk(tree) if isinstance(node, ast.ClassDef))
    return {method.name for one in classes for method in public(one.body) if ast.get_docstring(method)}


def undocumented(tree: ast.Module, inherited: set[str]) -> Iterator[str]:
    if not ast.get_docstring(tree):
        yield "the module"
    for node in public(tree.body):
        if not ast.get_docstring(node):
            yield node.name
        if isinstance(node, ast.ClassDef):
            overrides = inherited if node.bases else set()
            for inner in public(node.body):
                if not ast.get_docstring(inner) and inner.name not in overrides:
                    yield f"{node.name}.{inner.name}"


@pytest.mark.parametrize("module", MODULES)
def test_everything_public_says_what_it_is(module: str) -> None:
    inherited = documented_methods() | LIGHTNING | CLICK
    assert list(undocumented(TREES[module], inherited)) == []
