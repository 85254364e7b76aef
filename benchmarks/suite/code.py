"""Code that a file names by its import path: importing `package.module:Class` runs whatever the module holds.

It runs if the file is the user's own: owned by the user, and not world-writable. Files of
others and claims need `--allow-code`. Shipped suites name no code; what `--set` names was typed by the user.
"""

from __future__ import annotations

import hashlib
import os
import stat
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from fl_core.parts import without_code

ALLOWED = ContextVar("asyncfl_allow_code", default=False)  # by --allow-code
HOW = "allow it with --allow-code if you trust it"


def not_own(path: Path) -> str:
    """Why a file is not the user's own; empty if it is, or if the system knows no owners."""
    if not hasattr(os, "getuid"):
        return ""
    try:
        about = path.stat()
    except OSError as error:
        return f"{path} cannot be looked at ({error.strerror})"
    if about.st_uid != os.getuid():
        return f"{path} belongs to another user"
    return f"everyone can write to {path}" if about.st_mode & stat.S_IWOTH else ""


@contextmanager
def guarded(refusal: str) -> Iterator[None]:
    """A context in which, if a reason is given, no class is imported by its path unless code is allowed."""
    if not refusal or ALLOWED.get():
        yield
    else:
        with without_code(f"{refusal}: {HOW}"):
            yield


def named(description: Mapping[str, Any]) -> dict[str, str]:
    """The classes that an experiment names by import path: each with its file, and the digest of that."""
    return {path: _source(path) for path in sorted(set(_paths(description)))}


def _paths(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        name = node.get("name")
        if isinstance(name, str) and ":" in name:
            yield name
        for inside in node.values():
            yield from _paths(inside)
    elif isinstance(node, list):
        for inside in node:
            yield from _paths(inside)


def _source(path: str) -> str:
    file = getattr(sys.modules.get(path.partition(":")[0]), "__file__", None)
    if file is None:
        return "no file"
    try:
        digest = hashlib.sha256(Path(file).read_bytes()).hexdigest()[:16]
    except OSError:
        return file
    return f"{file} sha256:{digest}"
