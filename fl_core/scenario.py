"""A scenario: a problem, a timing, possibly an arrangement, and a budget; the same for all strategies."""

from __future__ import annotations

from typing import Self

from pydantic import SerializeAsAny, model_validator

from fl_core.arrangements.arrangement import Arrangement
from fl_core.parts import Count, Frozen, Length
from fl_core.problems.problem import Problem
from fl_core.timing.timing import Timing


class Budget(Frozen):
    """Where a run ends: after `iterations` or `updates`, or before the first event later than `time`.

    Whichever comes first; `updates` or `time` is required, since a strategy may never step.
    """

    iterations: Count | None = None  # server iterations
    updates: Count | None = None  # client updates received
    time: Length | None = None  # virtual time

    @model_validator(mode="after")
    def _ends(self) -> Self:
        if self.updates is None and self.time is None:
            raise ValueError("a budget needs 'updates' or 'time': by iterations alone a run might never end")
        return self


class Scenario(Frozen):
    """What a strategy is tried on."""

    problem: SerializeAsAny[Problem]
    timing: Timing = Timing()
    arrangement: SerializeAsAny[Arrangement] | None = None
    budget: Budget
    evaluations: Count = 20  # E: marks at k/E of every budget

    @model_validator(mode="after")
    def _times_fit_the_clients(self) -> Self:
        self.timing.durations.means(self.problem.clients, seed=0)  # ValueError if they do not
        return self
