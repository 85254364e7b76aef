"""Description of a part in words: summary, paper, and fields with type, range and default.

`asyncfl list KIND NAME` prints it, and the reference pages of the documentation show it. Texts come from
docstrings and from the comments beside fields.

Free: no code parses these texts.
"""

import inspect
import json
import sys
import types
import typing
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any

from pydantic.fields import FieldInfo
from pydantic_core import PydanticCustomError, PydanticUndefined

from benchmarks.catalogue import FAMILIES, entries, entry, family
from benchmarks.errors import UserError
from benchmarks.suite.labels import first_line
from benchmarks.suite.shipped import shipped
from fl_core.parts import Candidates, Frozen, Part, Tune, find
from fl_core.text import nearest

TYPES = {
    bool: "true or false",
    int: "whole number",
    float: "number",
    Fraction: "number or fraction",
    str: "text",
    Path: "path",
    type(None): "none",
}
BOUNDS = (("gt", ">"), ("ge", "≥"), ("lt", "<"), ("le", "≤"))


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a part, in words."""

    name: str
    values: str  # type and range
    default: str
    tuned: str  # default search space of `asyncfl tune`; empty if not searched
    what: str  # description, from the comment beside the field


@dataclass(frozen=True, slots=True)
class Description:
    """A part, in words."""

    kind: str
    name: str
    what: str  # first line of the docstring
    paper: str
    text: str  # rest of the docstring; also that of the module, if it has no other part
    fields: tuple[Field, ...]


def described(kind: str | None, name: str) -> Description:
    """Return the part of a name or import path; UserError if unknown, or found in several kinds."""
    kinds = [kind] if kind else list(FAMILIES)
    parts, reasons = dict[str, type[Part]](), list[str]()
    for candidate in kinds:
        try:
            parts[candidate] = find(family(candidate), name)
        except PydanticCustomError as error:
            reasons.append(error.message())
    if not parts and ":" in name:
        raise UserError(reasons[0])
    if not parts and name in shipped():
        raise UserError(f"'{name}' is a suite. Use asyncfl show {name}")
    if not parts:
        names = sorted({entry.name for candidate in kinds for entry in entries(candidate)})
        raise UserError(f"unknown name '{name}'{nearest(name, names)} asyncfl list prints all names")
    if len(parts) > 1:
        ways = " or ".join(f"asyncfl list {candidate} {name}" for candidate in parts)
        raise UserError(f"'{name}' is the name of several parts: write {ways}")
    [(kind, part)] = parts.items()
    preset, fields = part.presets.get(name, ("", {}))
    line = entry(name, preset) if preset else entry(part.reference(), first_line(part))
    text = f"A preset: {json.dumps({**fields, 'name': part.name})}." if preset else _text(part)
    return Description(kind, line.name, line.what, line.paper, text, tuple(fields_of(part)))


def _text(part: type[Part]) -> str:
    """Return the docstring of a part without the first line, and of a module with no other part."""
    text = (inspect.getdoc(part) or "").partition("\n")[2].strip()
    module = sys.modules[part.__module__]
    parts = [
        member for member in vars(module).values() if isinstance(member, type) and issubclass(member, Part)
    ]
    alone = [neighbour for neighbour in parts if neighbour.__module__ == part.__module__] == [part]
    return "\n\n".join(filter(None, [text, inspect.getdoc(module) if alone else ""]))


def fields_of(model: type[Frozen]) -> Iterator[Field]:
    """Yield the fields of a part, or of another mapping of a suite."""
    tuned, descriptions = model.tunable() if issubclass(model, Part) else {}, model.descriptions()
    for name, field in model.model_fields.items():
        default = "required" if field.is_required() else _value(field.get_default(call_default_factory=True))
        values = in_words(field.annotation, field.metadata)
        yield Field(name, values, default, _search(tuned[name]) if name in tuned else "", descriptions[name])


def in_words(annotation: Any, metadata: Iterable[Any] = ()) -> str:
    """Return a type in words, like "whole number ≥ 1 or none"; with short forms, the accepted input."""
    metadata = list(metadata)
    written = _as_written(metadata)
    origin, inner = typing.get_origin(annotation), typing.get_args(annotation)
    if written is not None or origin is Annotated:
        return in_words(written) if written is not None else in_words(inner[0], [*metadata, *inner[1:]])
    if origin in (typing.Union, types.UnionType):
        return " or ".join(in_words(member) for member in inner)
    if origin is typing.Literal:
        return " or ".join(map(str, inner))
    if origin in (tuple, list):
        return f"list of {in_words(inner[0])}"
    if origin is dict:
        return "mapping"
    return _plain(annotation, metadata)


def _as_written(metadata: Iterable[Any]) -> Any:
    """Return the input type declared by a validator; None without a declaration."""
    for constraint in metadata:
        written = getattr(constraint, "json_schema_input_type", PydanticUndefined)
        if written is not PydanticUndefined:
            return written
    return None


def _plain(annotation: Any, metadata: Iterable[Any]) -> str:
    """Return a type without inner types in words, with the bounds in the metadata."""
    if isinstance(annotation, type) and issubclass(annotation, Part):
        kind = next((kind for kind in FAMILIES if family(kind) is annotation.family()), None)
        return f"one of asyncfl list {kind}" if kind else annotation.__name__
    if isinstance(annotation, type) and issubclass(annotation, Frozen):
        return "mapping"
    bounds = [f"{sign} {limit:g}" for key, sign in BOUNDS for limit in _limits(metadata, key)]
    return " ".join(
        [TYPES.get(annotation, getattr(annotation, "__name__", str(annotation))), ", ".join(bounds)]
    ).strip()


def _limits(metadata: Iterable[Any], key: str) -> Iterator[float]:
    for constraint in metadata:
        for limit in constraint.metadata if isinstance(constraint, FieldInfo) else [constraint]:
            if hasattr(limit, key):
                yield float(getattr(limit, key))


def _value(default: Any) -> str:
    """Return a default value in words."""
    if isinstance(default, Part):
        return default.label()
    if isinstance(default, bool):
        return str(default).lower()
    if isinstance(default, tuple | list):
        return ", ".join(map(_value, default)) or "empty"
    if isinstance(default, Frozen | dict):
        return "empty"
    return "none" if default is None else str(default) or "empty"


def _search(candidates: Candidates) -> str:
    if isinstance(candidates, Tune):
        return f"{candidates.low:g} to {candidates.high:g}{', logarithmic' if candidates.log else ''}"
    return "one of " + ", ".join(map(str, candidates))
