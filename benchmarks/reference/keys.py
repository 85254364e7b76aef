"""The keys of a suite file in words: each with its values, default and description."""

from __future__ import annotations

import typing
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from benchmarks.reference.parts import Field, fields_of
from benchmarks.suite.file import SuiteFile
from fl_core.parts import Frozen, Part


@dataclass(frozen=True, slots=True)
class Section:
    """Keys that stand together: those of the file itself, or of a mapping inside of it."""

    key: str  # where it stands; empty for the file itself
    what: str
    fields: tuple[Field, ...]


def sections() -> list[Section]:
    """The file, then each of its mappings that is no part, in the order of the file."""
    return list(_sections("", SuiteFile))


def _sections(key: str, model: type[Frozen]) -> Iterator[Section]:
    what = (model.__doc__ or "").strip().partition("\n")[0]
    yield Section(key, what, tuple(fields_of(model)))
    for name, field in model.model_fields.items():
        for inner in dict.fromkeys(_mappings(field.annotation)):
            yield from _sections(f"{key}.{name}".lstrip("."), inner)


def _mappings(annotation: Any) -> Iterator[type[Frozen]]:
    """The models that a type consists of, but for parts, which have pages of their own."""
    if isinstance(annotation, type) and issubclass(annotation, Frozen):
        if not issubclass(annotation, Part):
            yield annotation
        return
    for one in typing.get_args(annotation):
        yield from _mappings(one)
