"""The worker processes of a command."""

import os
from contextlib import suppress
from pathlib import Path

ACTOR = "ray::RayWorker"  # other names are those of processes of Ray's own, whose end takes the node with it


def workers(driver: int) -> list[int]:
    """Processes that a child of the driver's has started, or Ray for us."""
    parents = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            text = stat.read_text()
            parents[int(stat.parent.name)] = int(text.rpartition(")")[2].split()[1])
    local = [one for one, parent in parents.items() if parent != driver and is_below(one, driver, parents)]
    actors = [one for one in parents if name(one).startswith(ACTOR)]
    ours = [one for one in actors if is_below(one, os.getpid(), parents)]
    return sorted(local + ours)


def is_below(process: int, ancestor: int, parents: dict[int, int]) -> bool:
    """Whether it descends from another one."""
    while (parent := parents.get(process)) is not None:
        if parent == ancestor:
            return True
        process = parent
    return False


def name(process: int) -> str:
    """Its command line; empty if it has ended."""
    with suppress(OSError):
        return Path(f"/proc/{process}/cmdline").read_text()
    return ""
