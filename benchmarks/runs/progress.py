"""Progress display of a suite: bars in a terminal, lines in a file or pipe, or problems only (`--quiet`).

`Session.run` passes each message of a worker to `Progress.see`.

Free: layout and wording. Problems go to stderr, all else to stdout.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from time import monotonic
from typing import TYPE_CHECKING, Self

from benchmarks.pool.job import Died, Message
from benchmarks.runs.messages import Advanced, Finished, Notice
from benchmarks.suite.suite import Task
from fl_core.recorded_names import Status
from fl_core.text import duration

if TYPE_CHECKING:
    from rich.console import RenderableType

REFRESH_SECONDS = 0.25  # between two updates in a terminal
MAX_SILENCE_SECONDS = 5.0  # without a line in a file or pipe
BAR_COLUMNS = 24
MAX_ROWS, MAX_NAMES = 8, 3  # of runs in progress: rows in a terminal, names in a line

TaskMessage = tuple[Task, Message] | None


def display(tasks: int, *, quiet: bool) -> Progress:
    """Return the display for the output: bars in a terminal, lines elsewhere, problems only if quiet."""
    if quiet:
        return Progress(tasks)
    return Bars(tasks) if sys.stdout.isatty() else Lines(tasks)


def value(task: Task, number: float | None) -> str:
    """Return the latest value of the problem's metric as text."""
    if number is None:
        return ""
    metric = task.problem.ranking
    if metric.share:
        return f"{metric.short} {100 * number:.1f} %"
    return " ".join(filter(None, [metric.short, f"{number:.4g}", metric.unit]))


def news(task: Task, message: Notice | Finished | Died) -> str:
    """Return a message about a task as a line of text."""
    if isinstance(message, Notice):
        return f"{task.name}: {message.text}"
    if isinstance(message, Died):
        return f"{task.name}: worker died ({message.how}); will be retried"
    result = message.result
    if result.status is Status.ERROR:
        return f"{task.name}: error: {result.reason}"
    unusual = result.status in {Status.DIVERGED, Status.STALLED}
    outcome = f"{result.status}: {result.reason}" if unusual else value(task, message.value)
    return f"{task.name}: {outcome} ({result.seconds:.1f} s)"


class Progress:
    """Progress of the tasks of a session, between the start and end of `with`.

    This class shows problems only, subclasses show more.
    """

    def __init__(self, total: int = 1) -> None:
        self.total = total
        self.began = monotonic()
        self.first_shares: dict[str, float] = {}  # by key: finished share when the task began or was resumed
        self.ended: Counter[str] = Counter()  # by status
        self.active: dict[str, tuple[Task, Advanced]] = {}  # by key: the newest progress

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def see(self, event: TaskMessage) -> None:
        """Take in and show a message; None if none has come for a while."""
        if event is not None:
            task, message = event
            if isinstance(message, Advanced):
                self.first_shares.setdefault(task.key, message.share)
                self.active[task.key] = task, message
            elif not isinstance(message, Notice):
                self.active.pop(task.key, None)
            if isinstance(message, Finished):
                self.ended[message.result.status] += 1
        self.show(event)

    def show(self, event: TaskMessage) -> None:
        """Show a message, and the state of the session."""
        if event is None:
            return
        task, message = event
        if isinstance(message, Died | Notice) or (
            isinstance(message, Finished) and message.result.status is Status.ERROR
        ):
            sys.stderr.write(news(task, message) + "\n")

    @property
    def share(self) -> float:
        """Finished share of all tasks, tasks in progress included."""
        return (self.ended.total() + sum(message.share for _, message in self.active.values())) / self.total

    def first_active(self, limit: int) -> tuple[list[tuple[Task, Advanced]], str]:
        """Return the first `limit` tasks in progress, in stable order, and a text about further tasks."""
        active = list(self.active.values())
        return active[:limit], f"and {len(active) - limit} more" if len(active) > limit else ""

    @property
    def remaining(self) -> str:
        """Text with the remaining time at the pace of the session; empty if too early to tell."""
        earlier = sum(self.first_shares.values()) / self.total
        progress = self.share - earlier
        if progress <= 0.03 * (1 - earlier):
            return ""  # too early to tell
        seconds = (monotonic() - self.began) * (1 - self.share) / progress
        return f"about {duration(seconds)} left"

    @property
    def start_text(self) -> str:
        """Text for the time before the first message."""
        return "" if self.active or self.ended else "starting workers"

    @property
    def count(self) -> str:
        """Text with the number of finished tasks."""
        return f"{self.ended.total():{len(str(self.total))}}/{self.total}"


class Lines(Progress):
    """Progress display with a line for each finished task, and status lines in between."""

    def __init__(self, total: int) -> None:
        super().__init__(total)
        self._last_line, self._status = monotonic(), ""

    def show(self, event: TaskMessage) -> None:
        if event is not None and isinstance(event[1], Notice | Finished | Died):
            self._say(news(event[0], event[1]))
        elif (
            monotonic() - self._last_line > MAX_SILENCE_SECONDS
            and (status := " | ".join(self._status_parts())) != self._status
        ):
            self._status = status
            self._say(status)

    def _status_parts(self) -> Iterator[str]:
        """Yield the parts of a status line: finished share, time left, runs in progress."""
        yield self.start_text or f"{self.share:.0%}"
        if self.remaining:
            yield self.remaining
        active, more = self.first_active(MAX_NAMES)
        for task, message in active:
            text = value(task, message.value)
            yield f"{task.name}: {text}" if text else task.name
        if more:
            yield more

    def _say(self, line: str) -> None:
        self._last_line = monotonic()
        sys.stdout.write(f"[{self.count}] {line}\n")
        sys.stdout.flush()


class Bars(Progress):
    """Progress display with a bar and a value for each task in progress, and a bar with the time left."""

    def __init__(self, total: int) -> None:
        from rich.live import Live

        super().__init__(total)
        self._live = Live(auto_refresh=False, transient=True)
        self._drawn = 0.0

    def __enter__(self) -> Self:
        self._live.start()
        self._draw()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def show(self, event: TaskMessage) -> None:
        if event is not None:
            task, message = event
            if isinstance(message, Died | Notice) or (
                isinstance(message, Finished) and message.result.status is not Status.DONE
            ):
                self._live.console.print(news(task, message), markup=False, highlight=False)
        if monotonic() - self._drawn > REFRESH_SECONDS:
            self._draw()

    def _draw(self) -> None:
        self._drawn = monotonic()
        self._live.update(self._picture(), refresh=True)

    def _picture(self) -> RenderableType:
        """Return the rows of bars to draw."""
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        picture = Table.grid(padding=(0, 2))
        picture.add_column(no_wrap=True, overflow="ellipsis")
        active, more = self.first_active(MAX_ROWS)
        for task, message in active:
            text = Text(value(task, message.value))
            picture.add_row(
                Text(task.name, style="dim"), ProgressBar(1.0, message.share, width=BAR_COLUMNS), text
            )
        if more:
            picture.add_row(Text(more, style="dim"))
        bar = ProgressBar(1.0, self.share, width=BAR_COLUMNS)
        picture.add_row(f"{self.count} finished", bar, self.remaining or self.start_text)
        return picture
