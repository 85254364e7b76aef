"""Files and folders written atomically, so that a killed process leaves no half-written file.

Used for checkpoints, the outbox, tuned values, stored numbers and pages.

Fixed: a path is complete or absent, whatever is killed; `is_being_written` reads the process from the name.
"""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import get_ident

PARTIAL = ".partial"  # suffix of unfinished files and folders
_in_progress: set[str] = set()  # names of temporary paths of this process


@contextmanager
def whole(path: Path) -> Iterator[Path]:
    """Yield a temporary path in the folder of `path`, and rename it to `path` at the end.

    Missing folders are created. After an error the temporary path is removed, and an older file stays.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f"{path.name}.{get_ident()}.{os.getpid()}{PARTIAL}")
    _in_progress.add(partial.name)
    try:
        yield partial
        partial.replace(path)
    finally:
        _in_progress.discard(partial.name)
        remove(partial)


def is_being_written(partial: Path) -> bool:
    """Return whether a temporary path of `whole` is in use, by this or another live local process."""
    process = partial.name.removesuffix(PARTIAL).removesuffix(".gone").rpartition(".")[2]
    if not process.isdecimal() or int(process) == os.getpid():
        return partial.name in _in_progress
    try:
        os.kill(int(process), 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return True


def remove(path: Path) -> None:
    """Remove a file or a folder, if present."""
    shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
