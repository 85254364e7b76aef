"""Real time that a task took, over all attempts, and when each row of its learning curve was evaluated."""

from __future__ import annotations

import json
from pathlib import Path
from time import time


class Stopwatch:
    """The time that is charged to a task; `path` keeps its state of when the task was last saved."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.began = now()  # of the first attempt; milliseconds since 1970
        self.evaluated: list[int] = []  # of each row; milliseconds since 1970
        self.here = 0.0  # seconds of this attempt
        self._before = 0.0  # seconds of earlier attempts

    @property
    def seconds(self) -> float:
        """Seconds of all attempts."""
        return self._before + self.here

    def stamp(self, rows: int) -> None:
        """The curve has `rows` by now."""
        self.evaluated += [now()] * (rows - len(self.evaluated))

    def save(self) -> None:
        """Write it down, atomically."""
        partial = self.path.with_name(self.path.name + ".partial")
        partial.write_text(json.dumps([self.began, self.seconds, self.evaluated]))
        partial.replace(self.path)

    def load(self, rows: int) -> None:
        """Go on from what was written down, for a checkpoint whose curve has `rows`."""
        self.began, self._before, evaluated = json.loads(self.path.read_text())
        self.evaluated = evaluated[:rows]


def now() -> int:
    """Milliseconds since 1970."""
    return int(time() * 1000)
