"""Modules of the project in memory: imported once, and forgotten where a mutation can reach them.

A module whose mutated neighbour it never imports is the same module with and without the mutation. Parts that
are found by name are looked up in `sys.modules` when they are needed, and what is cached is computed anew.
"""

import ast
import contextlib
import functools
import importlib
import sys
from collections.abc import Collection
from pathlib import Path

from tests.mutants.targets import ROOT

PACKAGE = "fl_core"
STAY = ("fl_core.lightning", "fl_core.vision")  # torchvision's operators can be declared only once


def files() -> dict[str, Path]:
    """Module → its file, packages included."""
    found = {}
    for path in sorted((ROOT / PACKAGE).rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def import_all() -> None:
    """Import every module, and read what imports what; a module without its library is left out."""
    for module in files():
        with contextlib.suppress(ImportError):
            importlib.import_module(module)
    imported()


@functools.cache
def imported() -> dict[str, set[str]]:
    """Module → modules of the project that it imports, be it in a function or for types only."""
    known = files()
    found: dict[str, set[str]] = {}
    for module, path in known.items():
        names = set()
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                names |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        found[module] = names & known.keys()
    return found


def reached(module: str) -> set[str]:
    """The module and all that import it, directly or not."""
    found, new = set[str](), {module}
    while new:
        found |= new
        new = {other for other, names in imported().items() if names & found} - found
    return found


def forget(module: str) -> None:
    """The next import of the module, and of all that import it, is a fresh one."""
    for name in reached(module) - {*STAY}:
        sys.modules.pop(name, None)
        package, _, last = name.rpartition(".")
        vars(sys.modules.get(package, sys)).pop(last, None)
    empty_caches([str(path) for name, path in files().items() if name not in STAY])


def empty_caches(paths: Collection[str]) -> None:
    """Let the functions of the modules in these files compute anew what they keep."""
    for module in list(sys.modules.values()):
        if getattr(module, "__file__", None) in paths:
            for value in vars(module).values():
                if isinstance(value, functools._lru_cache_wrapper):
                    value.cache_clear()
