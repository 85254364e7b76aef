"""Staleness and participation of each client, and predictions of queueing theory.

`Recorder` puts both into a run's record, for the report. The relative delay of client i in a round is the
staleness of the round's update if it is i's, else 0 (Alahyane et al., arXiv 2502.08206, §2.1). Its mean is
E[X_i], the mean number of i's jobs that an arrival leaves in flight: the discrete Little's law. Where every
arrival is a step, C jobs in flight sum to C − 1.

Fixed: names and definitions of the columns, which are recorded for every run.
"""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import inf, nan
from typing import Any

import numpy as np

from fl_core.loop.simulation import Simulation
from fl_core.recorded_names import Name
from fl_core.theory.jackson import Array
from fl_core.theory.routing import QueueingNetwork
from fl_core.timing.durations import Exponential


def by_client(arrivals: Mapping[str, Any], n: int) -> dict[str, list[float]]:
    """Return the columns of a table with a row per client.

    Args:
        arrivals: Clients and staleness of all arrivals, `Record.arrivals`.
        n: The number of clients.

    Returns:
        Updates, their share, mean and largest staleness (nan without updates), mean relative delay; [n] each.
    """
    client = np.asarray(arrivals[Name.CLIENT], int)
    staleness = np.asarray(arrivals[Name.STALENESS], float)
    updates = np.bincount(client, minlength=n)
    total = np.bincount(client, weights=staleness, minlength=n)
    largest = np.full(n, -1.0)
    np.maximum.at(largest, client, staleness)
    return {
        "updates": updates.tolist(),
        "share": (updates / max(len(client), 1)).tolist(),
        "staleness_mean": [float(t / k) if k else nan for t, k in zip(total, updates, strict=True)],
        "staleness_max": [value if value >= 0 else nan for value in largest.tolist()],
        "relative_delay": (total / max(len(client), 1)).tolist(),
    }


def one_job_each(mean_time: Sequence[Fraction]) -> Array:
    """Return each client's mean staleness [n] if all are always busy and every arrival is a step.

    Every arrival falls within exactly one job of client i, or ends one: (Σ_j 1/τ_j − 1/τ_i) τ_i, whatever the
    law of the durations.
    """
    rates = np.array([float(1 / time) for time in mean_time])
    predicted: Array = (rates.sum() - rates) / rates
    return predicted


def queued(p: Array, mean_time: Sequence[Fraction], tasks: int, server: float = inf) -> Array:
    """Return each client's mean staleness [n] for `tasks` routed with p [n] and exponential service.

    `server` is how many updates per unit of time the server takes when busy, in exponential times.
    """
    speeds = np.array([float(1 / time) for time in mean_time])
    return QueueingNetwork(np.asarray(p), speeds, tasks, server).staleness


def predicted(simulation: Simulation) -> Array | None:
    """Return each client's mean staleness [n] as theory predicts; None if no formula here applies.

    A formula applies if bytes take no time, all clients are present and every arrival is a step, except for
    fewer than n at the start: with one job per client at all times, or with jobs routed to queues and
    exponential service.
    """
    state, server, strategy = simulation.state, simulation.server, simulation.strategy
    covered = (
        simulation.experiment.participation is not None  # else jobs take other times than τ_i
        and state.updates - state.version < server.n
        and sum(state.indices) == state.updates + state.in_flight  # no job was dismissed
        and not any(job.waits for job in server.jobs)  # no client is polled
    )
    if not covered:
        return None
    timing = simulation.experiment.scenario.timing
    if state.in_flight == len(state.flight) == server.n and timing.server is None:
        return one_job_each(server.mean_time)
    laws = [timing.durations, *([timing.server.durations] if timing.server else [])]
    if strategy.routed_by is None or not all(isinstance(law, Exponential) for law in laws):
        return None
    assert strategy.concurrency is not None
    speed = 1 / float(laws[1].means(1, 0)[0]) if timing.server else inf
    return queued(getattr(server.memory, strategy.routed_by), server.mean_time, strategy.concurrency, speed)
