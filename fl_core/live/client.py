"""A client's side: local work on the model that it received, and the rest of the job's length."""

from heapq import heapify, heappop, heappush
from multiprocessing.connection import Connection
from time import monotonic, time

from fl_core.execution.one_by_one import work
from fl_core.live.transport import JobMessage, UpdateMessage, digest_of
from fl_core.local.work import LocalWork
from fl_core.problems.problem import World
from fl_core.server.jobs import Job


def train(message: JobMessage, world: World, local: LocalWork, steps: int | None = None) -> UpdateMessage:
    """Return the update of a job, computed on the model that was received.

    Args:
        message: The job.
        world: The problem under the run's seed.
        local: The strategy's local work.
        steps: K, or fewer for a job that is collected.
    """
    began, clock = time(), monotonic()
    job = Job(
        message.client,
        message.index,
        message.version,
        message.start,
        message.broadcast,
        message.steps if steps is None else steps,
        message.lr,
        sent=0,
        with_loss=message.with_loss,
        client_state=message.client_state,
    )
    work(job, world, local)
    assert job.delta is not None and job.gradient is not None
    return UpdateMessage(
        client=job.client,
        index=job.index,
        version=job.version,
        received=digest_of(message.start),
        steps=job.steps,
        delta=job.delta,
        gradient=job.gradient,
        loss=job.loss,
        finite=job.finite,
        began=began,
        computed=monotonic() - clock,
    )
