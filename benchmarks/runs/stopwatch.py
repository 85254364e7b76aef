"""Real time that a task took, over all attempts, and when each row of its learning curve was evaluated."""

from benchmarks.tracking.run_result import now


class Stopwatch:
    """The time that is charged to a task."""

    def __init__(self) -> None:
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

    def state(self) -> tuple[int, float, list[int]]:
        """What `restore` needs, for a checkpoint."""
        return self.began, self.seconds, self.evaluated

    def restore(self, state: tuple[int, float, list[int]]) -> None:
        """Continue from the state of an earlier attempt."""
        self.began, self._before, self.evaluated = state
