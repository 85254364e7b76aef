"""Descriptions of fields, from the comments next to or directly above fields in the source.

    clip: Rate | None = None  # the largest norm of a gradient

So a reader of the code, `asyncfl list`, editors and the reference pages see the same text.
"""

import ast
import functools
import inspect
import textwrap


@functools.cache
def of_fields(cls: type) -> dict[str, str]:
    """Return each field's description, inherited fields included; none for a class without a source."""
    descriptions: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        descriptions |= _own(base)
    return descriptions


@functools.cache
def _own(cls: type) -> dict[str, str]:
    """Return the descriptions of the fields annotated in the class body."""
    if cls.__module__ == "builtins" or cls.__module__.startswith("pydantic"):
        return {}
    try:
        lines = textwrap.dedent(inspect.getsource(cls)).splitlines()
    except (OSError, TypeError):
        return {}
    (body,) = ast.parse("\n".join(lines)).body
    assert isinstance(body, ast.ClassDef)
    return {
        field.target.id: text
        for field in body.body
        if isinstance(field, ast.AnnAssign)
        and isinstance(field.target, ast.Name)
        and (text := _beside(field, lines) or _above(field, lines))
    }


def _beside(field: ast.AnnAssign, lines: list[str]) -> str:
    """Return the comment behind the field's last line."""
    assert field.end_lineno is not None
    rest = lines[field.end_lineno - 1].encode()[field.end_col_offset :].decode().strip()
    return rest.removeprefix("#").strip()


def _above(field: ast.AnnAssign, lines: list[str]) -> str:
    """Return the comment in the lines directly before the field."""
    text: list[str] = []
    for line in reversed(lines[: field.lineno - 1]):
        if not line.strip().startswith("#"):
            break
        text.insert(0, line.strip().removeprefix("#").strip())
    return " ".join(text)
