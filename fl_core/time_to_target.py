"""Time to target: when a learning curve first meets a target, and comparisons of runs with misses.

The only implementation: the recorder, the report, the gate, claims and leaderboard all call these functions.
The time to target of a run is the reading of a clock at the first evaluation that is as good as the target,
whatever follows; it is ∞ for a run that never meets the target. Where a problem asks for several `marks`, the
mean of so many successive evaluations has to be as good, and the first of them counts. A run that never meets
the target is one of two kinds:

- It was *cut*: it ended by its budget, and might have met the target later. It was observed up to its end.
- It *diverged*, *stalled* or lost all its clients: its model never changes again. It is observed for ever.

Two runs are compared up to the time at which the first of them was cut (`restricted`), as a restricted mean
time is (Royston and Parmar, Statistics in Medicine 30, 2011).

Fixed: the rule. Recorded metrics, stored numbers of claims, baselines and the leaderboard follow it.
"""

from math import inf

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import ArrayLike

Array = np.ndarray


def meets(values: ArrayLike, target: float, higher: bool) -> Array:
    """Return whether values are as good as a target: equal or on the better side; NaN never is."""
    values = np.asarray(values, float)
    return np.asarray(values >= target if higher else values <= target)


def first_meeting(values: ArrayLike, target: float, higher: bool, marks: int = 1) -> int | None:
    """Return the index of the first evaluation that meets a target; None if the target is never met.

    Args:
        values: The metric at successive evaluations [evaluations].
        target: A value of the metric.
        higher: Whether more is better.
        marks: Successive evaluations whose mean has to be as good as the target.
    """
    values = np.asarray(values, float)
    if len(values) < marks:
        return None
    if marks > 1:
        values = sliding_window_view(values, marks).mean(axis=1)
    met = meets(values, target, higher)
    return int(met.argmax()) if met.any() else None


def time_to_target(clock: Array, values: Array, target: float, higher: bool, marks: int = 1) -> float:
    """Return the clock at the first evaluation as good as a target; ∞ without any.

    Args:
        clock: Readings of a clock at the evaluations, such as virtual time, updates or bytes.
        values: The metric at the same evaluations.
        target: A value of the metric.
        higher: Whether more is better.
        marks: Successive evaluations whose mean has to be as good as the target.
    """
    first = first_meeting(values, target, higher, marks)
    return inf if first is None else float(clock[first])


def observed_until(time: float, end: float, at_a_standstill: bool) -> float:
    """Return how long a run was observed: to the end, or for ever if certain to miss the target.

    Args:
        time: The time to target; ∞ for never.
        end: The clock at the end of the run.
        at_a_standstill: Whether the model never changes again: the run diverged, stalled or lost all clients.
    """
    return inf if time == inf and at_a_standstill else end


def restricted(first: tuple[float, float], second: tuple[float, float]) -> tuple[float, float]:
    """Return the times to target of two runs, both cut where the first run without the target ended.

    Each argument is a time to target, ∞ for never, and until when the run was observed. Against a run at a
    standstill the end of the other run counts; where both stand still there is no such end, and both are 0.
    """
    last = min((end for time, end in (first, second) if time == inf), default=inf)
    last = min(last, max((end for _, end in (first, second) if end < inf), default=0.0))
    return min(first[0], last), min(second[0], last)
