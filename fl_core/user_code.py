"""The user's own code and data in an experiment: import paths, and a digest of each file.

The digests are recorded beside the key of a run; a run whose code or data were edited is computed again.

Fixed: the digest of a file. With another one, runs with users' own code or data would be computed again.
"""

import re
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from pydantic import AfterValidator, ValidationInfo

from fl_core import file_reading
from fl_core.keys import digest

PATH = re.compile(r"[\w.]+:\w+")  # package.module:name
PATH_FIELDS = {"name", "module", "data", "collate_fn"}  # fields that may hold an import path
DIGEST = " sha256:"


def named(description: Mapping[str, Any]) -> dict[str, str]:
    """Return file and digest for each import path in an experiment."""
    return {path: _source(path) for path in sorted(set(_paths(description)))}


def digests(code: Mapping[str, str]) -> dict[str, str]:
    """Return the digest for each import path, without the place of the file."""
    return {path: source.rpartition(DIGEST)[2] for path, source in code.items()}


def content(kind: str, path: Path, known_digest: str = "", limit: int = file_reading.MOST_BYTES) -> bytes:
    """Return the content of a user's file; raise ValueError if unreadable, or not of the known digest."""
    try:
        data = file_reading.content(path, limit)
    except OSError as error:
        raise ValueError(f"{kind} {path}: {error.strerror}") from None
    if known_digest and digest(data) != known_digest:
        raise ValueError(
            f"{kind} {path}: the file was edited: its digest is no longer {known_digest}. Restore the file, "
            "or rerun the command"
        )
    return data


def filled_in(identify: Callable[[Path], str]) -> AfterValidator:
    """Return a validator that fills an empty field with the digest of the file named in the field `path`."""

    def validate(value: str, info: ValidationInfo) -> str:
        path = info.data.get("path")
        return value if value or path is None else identify(path)

    return AfterValidator(validate)


def _paths(node: Any) -> Iterator[str]:
    """Yield the import paths in nested plain data."""
    if isinstance(node, dict):
        for key, inside in node.items():
            if key in PATH_FIELDS and isinstance(inside, str) and PATH.fullmatch(inside):
                yield inside
            yield from _paths(inside)
    elif isinstance(node, list):
        for inside in node:
            yield from _paths(inside)


def _source(path: str) -> str:
    """Return file and digest of an imported module; the experiment's parts are imported by now."""
    module = sys.modules.get(path.partition(":")[0])
    return "no file" if module is None else _as_loaded(module)


@cache  # the digest is of the code that was imported: the file may be edited later
def _as_loaded(module: ModuleType) -> str:
    file = getattr(module, "__file__", None)
    if file is None:
        return "no file"
    try:
        return f"{file}{DIGEST}{digest(Path(file).read_bytes())}"
    except OSError:
        return file
