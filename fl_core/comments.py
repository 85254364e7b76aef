"""The descriptions of fields: the comments that stand beside them in the source, or directly above.

    clip: Rate | None = None  # the largest norm of a gradient

So a reader of the code, `asyncfl list`, editors and the reference pages see the same text.
"""

from __future__ import annotations

import ast
import functools
import inspect
import textwrap


@functools.cache
def of_fields(cls: type) -> dict[str, str]:
    """Field → its description, with those of inherited fields; none for a class without a source."""
    found: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        found |= _own(base)
    return found


@functools.cache
def _own(cls: type) -> dict[str, str]:
    """The descriptions of the fields that the class's own body annotates."""
    if cls.__module__ == "builtins" or cls.__module__.startswith("pydantic"):
        return {}
    try:
        lines = textwrap.dedent(inspect.getsource(cls)).splitlines()
    except (OSError, TypeError):
        return {}
    (body,) = ast.parse("\n".join(lines)).body
    assert isinstance(body, ast.ClassDef)
    fields = [one for one in body.body if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name)]
    return {
        one.target.id: text
        for one in fields
        if isinstance(one.target, ast.Name) and (text := _beside(one, lines) or _above(one, lines))
    }


def _beside(field: ast.AnnAssign, lines: list[str]) -> str:
    """The comment behind its last line."""
    assert field.end_lineno is not None
    rest = lines[field.end_lineno - 1].encode()[field.end_col_offset :].decode().strip()
    return rest.removeprefix("#").strip()


def _above(field: ast.AnnAssign, lines: list[str]) -> str:
    """The comment in the lines directly before it."""
    text: list[str] = []
    for line in reversed(lines[: field.lineno - 1]):
        if not line.strip().startswith("#"):
            break
        text.insert(0, line.strip().removeprefix("#").strip())
    return " ".join(text)
