"""Jobs that compute nothing of use, in a pool: they count, die, save themselves, and go on side by side."""

import os
import signal
import time
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

from patience import PATIENCE

from benchmarks.pool.job import Capacity, Final, Message, PoolJob, Worker
from benchmarks.pool.pool import Pool


@dataclass(frozen=True)
class Counted(Message):
    """A counting job has come so far."""

    number: int


@dataclass(frozen=True)
class Sum(Final):
    """A counting job has come to its end."""

    total: int
    process: int
    jobs_before: int = 0  # in the same worker
    beside: int = 1


@dataclass(frozen=True)
class Count:
    """Adds up numbers, slowly, until it is cancelled."""

    key: str
    numbers: int = 10
    pause: float = 0.0
    holds: int = 0  # the number at which it waits for the file `go`, or to be stopped
    go: str = ""
    kind: Hashable = None
    saves: bool = False

    def files(self) -> dict[str, bytes]:
        return {}

    def put_files(self, files: Mapping[str, bytes]) -> None:
        pass

    def elsewhere(self, folder: Path) -> Self:
        return self

    def hold(self, number: int, worker: Worker) -> None:
        """Wait, if this is the number."""
        while number == self.holds and not worker.stopping and not (self.go and Path(self.go).exists()):
            time.sleep(0.01)

    def compute(self, worker: Worker) -> None:
        jobs = worker.shared(list)
        total = 0
        for number in range(1, self.numbers + 1):
            time.sleep(self.pause)
            total += number
            worker.tell(self, Counted(number))
            self.hold(number, worker)
            if worker.is_cancelled(self):
                break
        worker.tell(self, Sum(total, os.getpid(), len(jobs)))
        jobs.append(self.key)


@dataclass(frozen=True)
class Deadly(Count):
    """Kills its process in the middle, `deaths` times in all; each leaves a line in the file `tally`."""

    deaths: int = 1
    tally: str = ""

    def compute(self, worker: Worker) -> None:
        worker.tell(self, Counted(0))
        die(Path(self.tally), self.deaths)
        super().compute(worker)


def die(tally: Path, deaths: int) -> None:
    """Kill this process, unless so many have died."""
    with tally.open("a+") as file:
        file.seek(0)
        if len(file.readlines()) >= deaths:
            return
        file.write(f"{os.getpid()}\n")
    os.kill(os.getpid(), signal.SIGKILL)


@dataclass(frozen=True)
class Saving(Count):
    """Goes on where it was stopped: the file `saved` says where."""

    saves: bool = True
    saved: str = ""

    def files(self) -> dict[str, bytes]:
        saved = Path(self.saved)
        return {"saved": saved.read_bytes()} if saved.exists() else {}

    def put_files(self, files: Mapping[str, bytes]) -> None:
        for content in files.values():
            Path(self.saved).write_bytes(content)

    def elsewhere(self, folder: Path) -> Self:
        return replace(self, saved=str(folder / "saved"))

    def compute(self, worker: Worker) -> None:
        saved = Path(self.saved)
        begin = int(saved.read_text()) if saved.exists() else 0
        for number in range(begin + 1, self.numbers + 1):
            time.sleep(self.pause)
            worker.tell(self, Counted(number))
            self.hold(number, worker)
            if worker.stopping:
                saved.write_text(str(number))
                return
        worker.tell(self, Sum(self.numbers - begin, os.getpid()))


@dataclass(frozen=True)
class Sociable(Count):
    """Goes on beside others of its kind, until those of two workers have company; it has room for another."""

    kind: Hashable = "sociable"
    met: str = ""  # a folder with a file for each of these workers

    def compute(self, worker: Worker) -> None:
        opened: list[PoolJob] = [self]
        worker.tell(self, Capacity(3))
        left = self.numbers  # looks for a third
        while left or len(list(Path(self.met).iterdir())) < 2:
            time.sleep(self.pause)
            if len(opened) < 3 and (companion := worker.companion()):
                opened.append(companion)
            if len(opened) > 1:
                Path(self.met, str(os.getpid())).touch()
                left = max(0, left - 1)
        for job in opened:
            worker.tell(job, Sum(0, os.getpid(), beside=len(opened)))


def told(pool: Pool[Any, Any]) -> Iterator[tuple[PoolJob, Message]]:
    """All messages until every job has ended."""
    end = time.monotonic() + PATIENCE
    while pool.busy:
        assert time.monotonic() < end
        yield from pool.messages(1.0)


def finals(pool: Pool[Any, Any]) -> dict[str, Message]:
    """The last message of each job, by key; it is the only one."""
    found = [(job.key, message) for job, message in told(pool) if isinstance(message, Final)]
    assert len(found) == len(dict(found))
    return dict(found)
