"""Descriptions of fields, from the comments next to or directly above fields in the source.

    clip: Rate | None = None  # the largest norm of a gradient

`Frozen.descriptions` (`parts.py`) takes them from here, so a reader of the code, `asyncfl list`, editors and
the reference pages see the same text. To change a description, edit the comment.

Free: keys and results of runs contain no description.
"""

import ast
import functools
import inspect
import textwrap
from enum import Enum


@functools.cache
def of_fields(cls: type) -> dict[str, str]:
    """Return each field's description, inherited fields included; none for a class without a source."""
    descriptions: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        descriptions |= _own(base)
    return descriptions


@functools.cache
def _own(cls: type) -> dict[str, str]:
    """Return the descriptions of the fields annotated in the class body, or of an enumeration's members."""
    if cls.__module__ == "builtins" or cls.__module__.startswith("pydantic"):
        return {}
    try:
        lines = textwrap.dedent(inspect.getsource(cls)).splitlines()
    except (OSError, TypeError):
        return {}
    (body,) = ast.parse("\n".join(lines)).body
    assert isinstance(body, ast.ClassDef)
    return {
        name: text
        for field in body.body
        if isinstance(field, ast.AnnAssign | ast.Assign)
        and (name := _name(field, issubclass(cls, Enum)))
        and (text := _beside(field, lines) or _above(field, lines))
    }


def _name(field: ast.AnnAssign | ast.Assign, member: bool) -> str:
    """Return the name of an annotated field or an enumeration's member; empty for other statements."""
    if isinstance(field, ast.Assign) and not member:
        return ""
    target = field.target if isinstance(field, ast.AnnAssign) else field.targets[0]
    return target.id if isinstance(target, ast.Name) else ""


def _beside(field: ast.AnnAssign | ast.Assign, lines: list[str]) -> str:
    """Return the comment behind the field's last line."""
    assert field.end_lineno is not None
    rest = lines[field.end_lineno - 1].encode()[field.end_col_offset :].decode().strip()
    return rest.removeprefix("#").strip()


def _above(field: ast.AnnAssign | ast.Assign, lines: list[str]) -> str:
    """Return the comment in the lines directly before the field."""
    text: list[str] = []
    for line in reversed(lines[: field.lineno - 1]):
        if not line.strip().startswith("#"):
            break
        text.insert(0, line.strip().removeprefix("#").strip())
    return " ".join(text)
