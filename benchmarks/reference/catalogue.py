"""What a suite can choose from: parts by family, and the shipped suites; each in a line, with its paper."""

from __future__ import annotations

import importlib
import re
from dataclasses import dataclass

from benchmarks.documents import read
from benchmarks.suite.labels import first_line
from benchmarks.suite.suite import shipped
from fl_core.parts import Part

# kind → where its family stands
FAMILIES = {
    "strategies": "fl_core.strategies.strategy:Strategy",
    "samplings": "fl_core.strategies.rounds.sampling:Sampling",
    "problems": "fl_core.problems.problem:Problem",
    "partitions": "fl_core.problems.partitions.partition:Partition",
    "models": "fl_core.problems.models.model:Model",
    "durations": "fl_core.timing.durations:Durations",
    "availability": "fl_core.timing.availability:Availability",
    "arrangements": "fl_core.arrangements.arrangement:Arrangement",
    "local": "fl_core.local.work:LocalWork",
}


@dataclass(frozen=True, slots=True)
class CatalogueEntry:
    """One thing to choose."""

    name: str
    what: str
    paper: str


def entries(kind: str) -> list[CatalogueEntry]:
    """All entries of a kind, by name."""
    if kind == "suites":
        return [_suite(name) for name in shipped()]
    return [entry(name, member) for name, member in family(kind).members().items()]


def family(kind: str) -> type[Part]:
    """The family of parts of a kind."""
    module, _, name = FAMILIES[kind].partition(":")
    found: type[Part] = getattr(importlib.import_module(module), name)
    return found


def entry(name: str, member: type[Part]) -> CatalogueEntry:
    """A docstring's first line ends with its source, where it has one: `What it is (Author, venue, year).`"""
    text = first_line(member).rstrip(".")
    found = re.fullmatch(r"(.*?) \(((?:[^()]|\([^()]*\))*\d{4}(?:[^()]|\([^()]*\))*)\)", text)
    return CatalogueEntry(name, found[1], found[2]) if found else CatalogueEntry(name, text, "")


def _suite(name: str) -> CatalogueEntry:
    document = read(shipped()[name])
    description = " ".join(str(document.get("description", "")).split())
    first = re.split(r"\. (?=[A-Z])", description)[0]
    return CatalogueEntry(name, first.rstrip("."), str(document.get("paper") or ""))
