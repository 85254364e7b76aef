"""Laws of how often each client's update arrives in the long run, shared by several strategies.

`Strategy.participation` returns one; recorders take it for each client's weight in the minimised problem.

Fixed: each law, since recorded sp/loss and sp/std are weighted by it. No learning curve depends on them.
"""

from collections.abc import Callable

from numpy.typing import ArrayLike

from fl_core.scenario import Scenario
from fl_core.server.server import Server
from fl_core.theory import arrival_shares

Participation = Callable[["Server"], ArrayLike]  # each client's share of all arrivals, up to a factor [n]


def alike(server: Server) -> list[float]:
    """Return equal shares [n]."""
    return [1.0] * server.n


def by_speed(server: Server) -> list[float]:
    """Return shares ∝ 1/τ_i [n]: every client works all the time."""
    return [float(1 / time) for time in server.mean_time]


def drawn(jobs: int) -> Participation:
    """Return the law for `jobs` in flight, clients drawn uniformly from the idle, exponential times."""
    return lambda server: arrival_shares.drawn(server.mean_time, jobs)


def by_replacement(concurrency: int | None, scenario: Scenario) -> Participation | None:
    """Return the law for a new job at each arrival, for the sender or for a drawn client."""
    if concurrency is None or concurrency >= scenario.problem.clients:
        return by_speed
    return drawn(concurrency) if scenario.timing.durations.memoryless else None


def begun_anew(concurrency: int | None, scenario: Scenario) -> Participation | None:
    """Return `by_speed` if all always work, and an abandoned job had no less to do than the replacement."""
    unlimited = concurrency is None or concurrency >= scenario.problem.clients
    return by_speed if unlimited and scenario.timing.durations.memoryless else None


def buffered(concurrency: int | None, buffer: int, scenario: Scenario) -> Participation | None:
    """Return `by_replacement`, or None where senders wait until the buffer is full."""
    waits = concurrency is None and buffer > 1
    return None if waits else by_replacement(concurrency, scenario)
