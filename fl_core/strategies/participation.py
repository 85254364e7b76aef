"""How often each client takes part in the long run: the laws that several strategies share."""

from collections.abc import Callable

from numpy.typing import ArrayLike

from fl_core.server.server import Server
from fl_core.theory import participation

Participation = Callable[["Server"], ArrayLike]  # each client's share of all arrivals, up to a factor [n]


def alike(server: Server) -> list[float]:
    """Return equal shares [n]."""
    return [1.0] * server.n


def by_speed(server: Server) -> list[float]:
    """Return shares ∝ 1/τ_i [n]: every client works all the time."""
    return [float(1 / time) for time in server.mean_time]


def drawn(jobs: int) -> Participation:
    """Return the law for `jobs` in flight, clients drawn uniformly from the idle, exponential times."""
    return lambda server: participation.drawn(server.mean_time, jobs)
