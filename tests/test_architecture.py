"""The house as a test: who imports whom, what the science never touches, a docstring on everything public."""

import ast
import functools
import re
import subprocess
import sys
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ("asyncfl", "fl_core", "benchmarks", "tuning", "reports")

BELOW = {  # package → those that it may import
    "fl_core": set[str](),
    "benchmarks": {"fl_core"},  # but for the two folders that start everything
    "tuning": {"fl_core", "benchmarks"},
    "reports": {"fl_core", "benchmarks"},
    "asyncfl": {"fl_core", "benchmarks", "tuning", "reports"},
}
STARTING = ("benchmarks.commands", "benchmarks.leaderboard")  # they stand above tuning and reports

NEVER_IN_THE_SCIENCE = {"mlflow", "optuna", "yaml", "pandas", "matplotlib", "click", "rich", "jinja2"}

# Methods that a library calls; their documentation is the library's.
LIGHTNING = {"forward", "training_step", "configure_optimizers"}
CLICK = {"list_commands", "get_command", "resolve_command", "make_context", "invoke"}


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(path): path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))}


@functools.cache
def trees() -> dict[str, ast.Module]:
    """All modules of the house, parsed when a test asks."""
    return {name: ast.parse(path.read_text(), str(path)) for name, path in MODULES.items()}


@functools.cache
def nodes() -> dict[str, list[ast.AST]]:
    """All nodes of each module."""
    return {name: list(ast.walk(tree)) for name, tree in trees().items()}


@functools.cache
def imports(module: str) -> frozenset[str]:
    """Every module that is imported anywhere in a module: inside functions and for type checking, too."""
    return frozenset(_imports(nodes()[module]))


def _imports(nodes: list[ast.AST]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.module is not None and node.level == 0, "imports are absolute"
            yield from (
                inner if (inner := f"{node.module}.{alias.name}") in MODULES else node.module
                for alias in node.names
            )


PAGE = (ROOT / "docs" / "architecture.md").read_text()


def layer_list() -> str:
    """The block below the heading *Layers*."""
    return PAGE.partition("## Layers")[2].split("```")[1]


def drawn() -> list[list[str]]:
    """The rooms of docs/architecture.md as paths of files and folders, the highest first.

    Rooms within a room, drawn further in, are part of it.
    """
    rooms: list[list[str]] = []
    for line in layer_list().splitlines():
        names, indent = re.split(r" {2,}", line.strip())[0].split(), len(line) - len(line.lstrip())
        if indent == 0:
            package = "".join(names[:1])
            rooms.append(names)
        elif indent == 2:
            rooms.append([package + name for name in names])
    return [room for room in rooms if room and not any(is_in(other, room) for other in rooms)]


def is_in(inner: list[str], outer: list[str]) -> bool:
    return inner != outer and bool(inner) and inner[0].startswith(outer[0])


ROOMS = drawn()
HEIGHT = {path: -place for place, room in enumerate(ROOMS) for path in room}


@functools.cache
def height(module: str) -> int:
    """How high a module stands."""
    path = MODULES[module].relative_to(ROOT).as_posix()
    found = [place for place in HEIGHT if path == place or (place.endswith("/") and path.startswith(place))]
    return HEIGHT[max(found, key=len)]


def empty(module: str) -> bool:
    """Whether it holds nothing but a docstring."""
    return MODULES[module].name == "__init__.py" and module != "asyncfl"


def may_import(importer: str, imported: str) -> bool:
    """Whether one module of the house may import another."""
    return empty(imported) or height(imported) <= height(importer)


def test_imports_only_what_stands_below() -> None:
    found = [
        f"{module} imports {name}"
        for module in MODULES
        if not empty(module)
        for name in imports(module)
        if name in MODULES and not may_import(module, name)
    ]
    assert found == []


def test_no_modules_import_each_other() -> None:
    """Not even by a detour."""
    graph = {name: {other for other in imports(name) if other in MODULES} - {name} for name in MODULES}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as circle:
        pytest.fail(" → ".join(circle.args[1]))


def package(module: str) -> str:
    return module.split(".", maxsplit=1)[0]


@pytest.mark.parametrize("importer", BELOW)
def test_packages_import_only_those_below(importer: str) -> None:
    """Tuning and reports stand side by side: neither knows of the other, nor of what starts them."""
    imported = {
        package(other)
        for name in MODULES
        if package(name) == importer and not name.startswith(STARTING)
        for other in imports(name)
        if other in MODULES
    }
    assert imported - {importer} <= BELOW[importer]


def test_the_rule_tells_up_from_down() -> None:
    assert may_import("fl_core.strategies.ace", "fl_core.server.server")
    assert not may_import("fl_core.server.server", "fl_core.strategies.ace")
    assert not may_import("fl_core.loop.simulation", "fl_core.recording.recorder")
    assert not may_import("fl_core.recording.recorder", "benchmarks.mlflow_store.writer")
    assert not may_import("benchmarks.runs.session", "reports.page")
    assert not may_import("benchmarks.runs.session", "asyncfl.cli")
    assert not may_import("tuning.study", "reports.page")
    assert may_import("benchmarks.commands.report", "reports.page")
    assert may_import("asyncfl", "benchmarks.commands.functions")
    assert not may_import("benchmarks.commands.functions", "asyncfl")
    assert may_import("reports.claims.html", "reports.page")
    assert not may_import("reports.page", "reports.claims.html")
    assert not may_import("benchmarks.claims.plan", "reports.claims.verdicts")


def test_every_room_is_drawn_and_everything_drawn_is_there() -> None:
    there = {path for room in ROOMS for path in room}
    assert [path for path in there if not (ROOT / path).exists()] == []
    for module in MODULES:
        if not empty(module):
            height(module)  # KeyError or ValueError if it stands in no room


STEP = re.compile(r"^\| .+ \| `([\w.]+)` \| `([\w/]+\.py)` \|$", re.MULTILINE)


def definitions(path: Path) -> set[str]:
    """Classes and functions of a file, and methods as `Class.method`."""
    found: set[str] = set()
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.ClassDef):
            inner = [item.name for item in node.body if isinstance(item, ast.FunctionDef)]
            found |= {node.name, *(f"{node.name}.{name}" for name in inner)}
        elif isinstance(node, ast.FunctionDef):
            found.add(node.name)
    return found


def test_the_functions_that_the_page_names_exist() -> None:
    """On the way of an update, of a learning rate and of a run through the code."""
    steps = STEP.findall(PAGE)
    assert len(steps) > 20
    assert [step for step in steps if step[0] not in definitions(ROOT / step[1])] == []


FOLDERS = sorted({path.parent for path in MODULES.values()} - {ROOT / "asyncfl"})  # it has the public names


def test_a_folder_says_in_its_init_what_belongs_there() -> None:
    """Nothing stands in an `__init__.py` but a docstring of at most four lines."""
    for folder in FOLDERS:
        init = ast.parse((folder / "__init__.py").read_text())
        lines = (ast.get_docstring(init) or "").splitlines()
        assert len(init.body) == 1 and len(lines) in range(1, 5), folder


HANGS_ON = re.compile(r"^(Fixed|Free): ", re.MULTILINE)  # AGENTS.md, "What a change may break"


def test_a_module_or_its_package_says_what_a_change_may_break() -> None:
    says = {name: HANGS_ON.search(ast.get_docstring(tree) or "") for name, tree in trees().items()}
    assert [name for name in says if not (says[name] or says.get(name.rpartition(".")[0]))] == []


def test_the_science_knows_no_tracker_tuner_or_command_line() -> None:
    science = [name for name in MODULES if name.split(".")[0] == "fl_core"]
    roots = {name: {other.split(".")[0] for other in imports(name)} for name in science}
    assert {name: used for name in science if (used := roots[name] & NEVER_IN_THE_SCIENCE)} == {}


@pytest.mark.slow  # torch is imported anew
def test_a_problem_loads_no_lightning_before_its_world_is_built() -> None:
    program = (
        "import sys, fl_core.loop.simulation, fl_core.recording.recorder\n"
        "from fl_core.problems.problem import Problem\n"
        "from fl_core.strategies.strategy import Strategy\n"
        "Problem.members(), Strategy.members()\n"
        "Problem.model_validate({'name': 'digits', 'partition': 'iid', 'model': 'cnn'})\n"
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
    classes = (node for found in nodes().values() for node in found if isinstance(node, ast.ClassDef))
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


def test_everything_public_says_what_it_is() -> None:
    inherited = documented_methods() | LIGHTNING | CLICK
    found = [f"{name}: {what}" for name, tree in trees().items() for what in undocumented(tree, inherited)]
    assert found == []


# Words that stand for what another docstring says: a tooltip shows one docstring alone.
ANAPHORA = re.compile(r"(The same|Same|Likewise|It|Its|Those|That|These|They|This|So many)\b")
NAMELESS = {"one", "found", "told", "of"}  # what a local variable is not called: it is the thing


def test_docstrings_stand_alone_and_names_name_the_thing() -> None:
    faults = []
    for module, found in nodes().items():
        classes = [node for node in found if isinstance(node, ast.ClassDef)]
        # Fields have names for good.
        fields = {field.target for one in classes for field in one.body if isinstance(field, ast.AnnAssign)}
        for node in found:
            stored = isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node not in fields
            name = node.id if stored else node.arg if isinstance(node, ast.arg) else ""
            defined = isinstance(node, ast.ClassDef | ast.FunctionDef)
            if name in NAMELESS or (defined and ANAPHORA.match(ast.get_docstring(node) or "")):
                faults.append(f"{module}:{node.lineno}")
    assert faults == []
