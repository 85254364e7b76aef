"""A pool of worker processes on the local machine; dead processes are replaced.

`concurrent.futures` is no substitute: there, a killed worker ends the jobs of all workers and cannot be told
from the others, and a running job can neither report progress, save a checkpoint at a stop, nor take in
a companion.
"""

import multiprocessing
import signal
from collections.abc import Iterator
from contextlib import suppress
from multiprocessing import connection
from multiprocessing.context import ForkServerContext
from pathlib import Path
from time import monotonic

from benchmarks.pool.fork_server import same_import_path
from benchmarks.pool.job import Cancel, Died, J, Message
from benchmarks.pool.pool import Pool, WorkerHandle
from benchmarks.pool.worker import serve
from fl_core.import_guard import own_packages

STOP_SECONDS = 15.0  # that workers have to save their jobs after Ctrl-C, before they are killed


class WorkerProcess(WorkerHandle[J]):
    """Handle of a worker process on the driver's side."""

    def __init__(self, context: ForkServerContext, log: Path, daemon: bool) -> None:
        super().__init__()
        self.pipe, worker_end = context.Pipe()
        self.process = context.Process(target=serve, args=(worker_end, log, own_packages()), daemon=daemon)
        with same_import_path():  # if the fork server is started only now
            self.process.start()
        worker_end.close()  # with a copy open here, the death of the process would not end the pipe

    def begin(self, job: J) -> None:
        """Send a job to the process."""
        super().begin(job)
        self._send(job)

    def cancel(self, key: str) -> None:
        """Ask the process to end a job."""
        self._send(Cancel(key))

    def _send(self, message: J | Cancel) -> None:
        with suppress(OSError):  # the process is dead: `receive` will say so
            self.pipe.send(message)

    def receive(self) -> tuple[str, Message] | Died:
        """Wait for a message; return the job's key and the message, or `Died` if the process has ended."""
        try:
            return self.pipe.recv()
        except (EOFError, OSError):
            self.process.join()
            code = self.process.exitcode or 0
            return Died(f"killed by {signal.Signals(-code).name}" if code < 0 else f"exit code {code}")


class LocalPool(Pool[J, WorkerProcess[J]]):
    """Pool of at most `size` worker processes, started as needed; output of libraries goes to `log`.

    With `parents`, workers may start processes of their own (clients of runs in real time).
    """

    def __init__(self, size: int, log: Path, *, parents: bool = False) -> None:
        super().__init__()
        self._size, self.log, self._parents = size, log, parents
        log.parent.mkdir(parents=True, exist_ok=True)
        log.touch()  # messages name it
        self._context = multiprocessing.get_context("forkserver")

    @property
    def size(self) -> int:
        """Maximum number of processes."""
        return self._size

    def start(self) -> WorkerProcess[J]:
        """Start another process."""
        return WorkerProcess(self._context, self.log, daemon=not self._parents)

    def lost(self, deaths: int, last: Died) -> str:
        """Return how the processes died, and the path of the log with the output."""
        return f"its worker process died {deaths} times ({last.how}); see {self.log}"

    def messages(self, seconds: float) -> list[tuple[J, Message]]:
        """Return a message from each process with a message ready; empty after `seconds` without any."""
        self.assign()
        ready = connection.wait([worker.pipe for worker in self.workers], seconds)
        talking = [worker for worker in self.workers if worker.pipe in ready]
        return [message for worker in talking for message in self._received(worker)]

    def _received(self, worker: WorkerProcess[J]) -> Iterator[tuple[J, Message]]:
        """Yield the message of a process, or the consequences of the process's death."""
        received = worker.receive()
        if isinstance(received, Died):
            worker.pipe.close()
            yield from self.died(worker, received)
        else:
            yield from self.accept(worker, *received)

    def stop(self) -> None:
        """Terminate all processes; kill slow processes, or all after a second Ctrl-C."""
        try:
            for worker in self.workers:
                worker.process.terminate()
            end = monotonic() + STOP_SECONDS
            for worker in self.workers:
                worker.process.join(max(0.0, end - monotonic()))
        finally:
            for worker in self.workers:
                worker.process.kill()
                worker.pipe.close()
            self.workers.clear()
            self.waiting.clear()
