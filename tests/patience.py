"""Waiting for what must happen, however slow the machine: a guard against hanging, no bound on speed."""

import time
from collections.abc import Callable

PATIENCE = 240.0  # seconds


def eventually(what: Callable[[], object]) -> bool:
    """Whether something becomes true in time."""
    end = time.monotonic() + PATIENCE
    while not what():
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True
