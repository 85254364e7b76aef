"""Errors of pydantic as complaints for the author of a file: the place, the fault, and the allowed values.

Suites, claims, tuned values and errata are validated by pydantic, whose messages name Python types.

Free: wording; tests/commands/messages.txt holds frequent messages.
"""

import re
import typing
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails, PydanticCustomError

from benchmarks.suite.document import as_part, dotted, part_name
from benchmarks.yaml_io import place
from fl_core.parts import FieldError, Part, find
from fl_core.text import nearest

# Patterns in pydantic's messages → words for authors of YAML, which say what to do.
WORDS = (
    (r"^Field required$", "is missing"),
    (r"^Input should be None", "must be left out"),
    (r"^Input should be", "must be"),
    (r"^(Input|String) should", "should"),
    (r"\bvalid (tuple|list)\b", "list"),
    (r"\bvalid dictionary\b", "mapping"),
    (r"\bvalid string\b", "text"),
    (r"\bvalid integer\b", "whole number"),
    (r"\bvalid number\b", "number"),
    (r", unable to parse string as an? \w+$", ""),
    (r", got a number with a fractional part$", ""),
    (r"^Tuple should have at least 1 item.*$", "must not be empty"),
)
# pydantic's types of errors whose message shows the value already, or that have no value.
SELF_EXPLAINING = {"value_error", "missing", "name", "import", "extra_forbidden", "too_short"}


@dataclass(frozen=True, slots=True)
class Complaint:
    """A fault at a place of a document."""

    steps: tuple[str | int, ...]  # keys and positions that lead to the place
    sentence: str  # follows `key: `


def complaints(
    error: ValidationError, model: type[BaseModel], document: dict[str, Any]
) -> Iterator[Complaint]:
    """Yield complaints about a document refused by a model, at most a complaint per place."""
    by_key: dict[tuple[str | int, ...], list[str]] = {}
    for detail in error.errors(include_url=False):
        steps = _in_document(detail, document)
        sentence = _sentence(detail, steps, model, document)
        raised = _raised(detail)
        if isinstance(raised, FieldError):
            field, *inner = raised.field.split(".")
            if field in model_at(model, steps, document).model_fields:
                steps, sentence = (*steps, field, *inner), raised.what
        by_key.setdefault(steps, []).append(sentence)
    for steps, sentences in by_key.items():
        yield Complaint(steps, " or ".join(dict.fromkeys(sentences)))


def lines_of(
    path: Path | str, error: ValidationError, model: type[BaseModel], document: dict[str, Any]
) -> Iterator[str]:
    """Yield the complaints about a document as lines `file:line: key: fault`."""
    for complaint in complaints(error, model, document):
        steps = complaint.steps
        key = f"{dotted(steps, document)}: " if steps else ""
        yield f"{place(path, document, steps)}: {key}{complaint.sentence}"


def reason(detail: ErrorDetails) -> str:
    """Return the message of an error, in the words of YAML."""
    sentence = str(_raised(detail) or detail["msg"])
    for pattern, word in WORDS:
        sentence = re.sub(pattern, word, sentence)
    return sentence


def _raised(detail: ErrorDetails) -> Exception | None:
    """Return the exception raised by a validator; None for an error of pydantic's own."""
    return detail.get("ctx", {}).get("error")


def _in_document(detail: ErrorDetails, document: Any) -> tuple[str | int, ...]:
    """Return the place of an error in the document, without pydantic's names for branches of a union."""
    steps: list[str | int] = []
    node: Any = document
    for step in detail["loc"]:
        in_list = isinstance(node, list) and isinstance(step, int) and step < len(node)
        if in_list or (isinstance(node, dict) and step in node):
            node = node[step]
            steps.append(step)
    if detail["type"] == "missing":
        steps.append(detail["loc"][-1])
    return tuple(steps)


def _sentence(
    detail: ErrorDetails, steps: Sequence[str | int], model: type[BaseModel], document: dict[str, Any]
) -> str:
    """Return pydantic's error as a sentence in words of YAML."""
    if detail["type"] == "missing":
        return "is missing"
    if detail["type"] == "extra_forbidden":
        cls, key = model_at(model, steps[:-1], document), str(steps[-1])
        allowed = [*(["name"] if issubclass(cls, Part) else []), *cls.model_fields]
        deeper = (
            f"{outer}.{key}"
            for outer in allowed
            if key in model_at(model, (*steps[:-1], outer), document).model_fields
        )
        inside = next(deeper, None)
        hint = f". Did you mean '{inside}'?" if inside else nearest(key, allowed)
        return f"no such key{hint} Allowed: {', '.join(allowed)}"
    sentence = reason(detail)
    value = detail["input"]
    if detail["type"] in SELF_EXPLAINING or not isinstance(value, str | int | float | None):
        return sentence
    return f"{sentence}, not {'empty' if value is None else repr(value)}"


def model_at(model: type[BaseModel], steps: Sequence[str | int], document: Any) -> type[BaseModel]:
    """Return the class at a place of a document of the given model."""
    chosen, candidates, node = model, [model], document
    for step in steps:
        if isinstance(node, dict):
            field = chosen.model_fields.get(str(step))
            candidates = list(_models(field.annotation)) if field else candidates
            node = node.get(step)
        elif isinstance(node, list | tuple) and isinstance(step, int):
            node = node[step]
        chosen = _chosen(candidates, node) or chosen
    return chosen


def _models(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for inner in typing.get_args(annotation):
        yield from _models(inner)


def _chosen(candidates: Sequence[type[BaseModel]], node: Any) -> type[BaseModel] | None:
    """Return the class of a node: the named part, or the first candidate."""
    if not candidates:
        return None
    first = candidates[0]
    if issubclass(first, Part) and isinstance(as_part(node), dict):
        try:
            return find(first, part_name(node))
        except PydanticCustomError:
            return first
    return first
