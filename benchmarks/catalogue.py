"""Catalogue of parts of suites by family, and of shipped suites: a line for each, with the paper.

`asyncfl list`, shell completion and the reference pages read it. Parts are found in their source files, by
`ast`, without an import: importing them all, and torch with them, takes two seconds.

Fixed: the kinds in `FAMILIES`, which users type. Free: texts.
"""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.suite.shipped import shipped
from benchmarks.yaml_io import read

if TYPE_CHECKING:
    from fl_core.parts import Part

SOURCES = Path(__file__).parents[1]

# kind, as in `asyncfl list KIND` → module and base class of its family; `homes` of the class are its modules
FAMILIES = {
    "strategies": "fl_core.strategies.strategy:Strategy",
    "samplings": "fl_core.strategies.sampling:Sampling",
    "problems": "fl_core.problems.problem:Problem",
    "partitions": "fl_core.problems.partitions:Partition",
    "models": "fl_core.problems.models.model:Model",
    "durations": "fl_core.timing.durations:Durations",
    "availability": "fl_core.timing.availability:Availability",
    "links": "fl_core.timing.network:PerClient",
    "arrangements": "fl_core.arrangements:Arrangement",
    "local": "fl_core.local_work:LocalWork",
    "optimizers": "fl_core.server.optimizers:ServerOptimizer",
    "codings": "fl_core.compression:Coding",
}


@dataclass(frozen=True, slots=True)
class CatalogueEntry:
    """A part or suite to choose."""

    name: str  # in a suite file
    what: str  # first line of the docstring, without the paper
    paper: str  # "Author, venue, year"; empty if none


def entries(kind: str) -> list[CatalogueEntry]:
    """Return all entries of a kind, by name, presets included."""
    if kind == "suites":
        return [_suite(name) for name in shipped()]
    # A family's folder may also have a module of another family, as that of strategies has the samplings.
    foreign_homes = {home for family in FAMILIES if family != kind for home in _homes(family)}
    classes = {
        called: node
        for home in _homes(kind)
        for file in (home.glob("*.py") if home.is_dir() else [home])
        if file not in foreign_homes
        for node in _classes(file)
        if isinstance(called := _constant(node, "name"), str)
    }
    named = {called: ast.get_docstring(node) or "" for called, node in classes.items()}
    for node in classes.values():
        presets = _constant(node, "presets")
        if isinstance(presets, dict):
            named |= {called: line for called, (line, _) in presets.items()}
    return [entry(called, text.partition("\n")[0]) for called, text in sorted(named.items())]


def family(kind: str) -> type[Part]:
    """Import and return the base class of a kind."""
    module, _, name = FAMILIES[kind].partition(":")
    part: type[Part] = getattr(importlib.import_module(module), name)
    return part


def _homes(kind: str) -> list[Path]:
    """Return the files and folders with the members of a family."""
    module, _, name = FAMILIES[kind].partition(":")
    (homes,) = [_constant(node, "homes") for node in _classes(_path(module)) if node.name == name]
    assert isinstance(homes, tuple)
    return [_path(home) for home in homes]


def _path(module: str) -> Path:
    """Return the file of a module, or the folder of a package."""
    path = SOURCES.joinpath(*module.split("."))
    return path if path.is_dir() else path.with_suffix(".py")


def _classes(file: Path) -> Iterator[ast.ClassDef]:
    return (node for node in ast.parse(file.read_bytes()).body if isinstance(node, ast.ClassDef))


def _constant(class_: ast.ClassDef, name: str) -> object:
    """Return the value assigned to `name` in a class body; None without a value."""
    for node in class_.body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.target.id == name:
            return ast.literal_eval(node.value) if node.value else None
    return None


def entry(name: str, line: str) -> CatalogueEntry:
    """Split a first line into text and source: `A thing (Author, venue, year).`, the source empty if none."""
    text = line.rstrip(".")
    match = re.fullmatch(r"(.*?) \(((?:[^()]|\([^()]*\))*\d{4}(?:[^()]|\([^()]*\))*)\)", text)
    return CatalogueEntry(name, match[1], match[2]) if match else CatalogueEntry(name, text, "")


def _suite(name: str) -> CatalogueEntry:
    document = read(shipped()[name])
    description = " ".join(str(document.get("description", "")).split())
    first = re.split(r"\. (?=[A-Z])", description)[0]
    return CatalogueEntry(name, first.rstrip("."), str(document.get("paper") or ""))
