"""Code that a file names by its import path: importing `package.module:Class` runs whatever the module holds.

It runs if the file is the user's own: owned by the user, and not world-writable. Files of
others and claims need `--allow-code`. Shipped suites name no code; what `--set` names was typed by the user.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

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
