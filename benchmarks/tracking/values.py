"""Single values of MLflow's tags and parameters; an unreadable value counts as absent."""

import json
import re
from datetime import UTC, datetime
from functools import lru_cache
from math import isfinite
from typing import Any, TypeVar

T = TypeVar("T", dict[str, Any], list[Any])


@lru_cache(maxsize=2**16)  # thousands of runs have the same
def clean(text: str) -> str:
    """Return a text without invisible characters and without characters invalid in HTML or XML."""
    if not text.isprintable():  # quick, and nearly all are
        text = re.sub(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]+", " ", text)
    return text.strip()


def number(text: str) -> float | None:
    """Return the finite number in a text, or None."""
    try:
        value = float(text)
    except ValueError:
        return None
    return value if isfinite(value) else None


def parsed(text: str, otherwise: T) -> T:
    """Return the JSON in a text, or `otherwise` if invalid or of another type."""
    try:
        content = json.loads(text or "null")
    except ValueError:
        return otherwise
    return content if isinstance(content, type(otherwise)) else otherwise


def moment(milliseconds: int | None) -> datetime | None:
    """Return a time stored by MLflow in milliseconds, or None."""
    return None if not milliseconds else datetime.fromtimestamp(milliseconds / 1000, UTC)
