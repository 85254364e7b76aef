"""How a suite is to be tuned: its section `tuning`, all of it optional.

tuning:
  trials: 30
  seeds: 3
  space:
    local_lr: {low: 0.001, high: 1}
    fedbuff.buffer: [1, 5, 10]
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Discriminator, Field, NonNegativeInt, Tag

from fl_core.parts import Count, Frozen, Tune
from fl_core.scenario import Budget

Objective = Literal["final", "auc", "updates_to_target", "time_to_target"]
Sampler = Literal["tpe", "random", "grid", "cmaes", "gp"]
Pruner = Literal["none", "wilcoxon", "median", "hyperband"]


Values = Annotated[tuple[int | float | str, ...], Field(min_length=1)]
RangeOrValues = Annotated[
    Annotated[Tune, Tag("range")] | Annotated[Values, Tag("values")],
    Discriminator(lambda value: "range" if isinstance(value, dict | Tune) else "values"),
]
Which = Annotated[tuple[NonNegativeInt, ...], Field(min_length=1)]
HowManyOrWhich = Annotated[
    Annotated[Count, Tag("count")] | Annotated[Which, Tag("which")],
    Discriminator(lambda value: "which" if isinstance(value, list | tuple) else "count"),
]


class Tuning(Frozen):
    """How the suite's strategies are tuned: the same trials × seeds × budget for each."""

    trials: Count = 30  # of each strategy in each scenario; a grid has as many as it has points
    # How many, counted from 1000 above the suite's largest, or which: none that the suite itself uses.
    seeds: HowManyOrWhich = 3
    objective: Objective = "final"  # at the end, mean over the run, or when the target is reached
    metric: str | None = None  # of the learning curve; None: the problem's own
    last: Count | None = None  # evaluations that `final` is the mean of; None: a fifth of them
    sampler: Sampler = "tpe"  # how Optuna proposes values
    pruner: Pruner = "none"  # when a trial is given up early
    batch: Count = 5  # trials that are simulated together
    budget: Budget | None = None  # of a trial's simulations; None: the suite's
    # Parameter, or strategy.parameter → its range or values; empty: what each strategy declares.
    # The parameter `c` is the factor of a local rate c·√(n/T), n clients, T server iterations or updates.
    space: dict[str, RangeOrValues] = Field(default_factory=dict)
    # Label of a strategy → label of the one whose parameters it takes, and which is tuned in its place.
    reuse: dict[str, str] = Field(default_factory=dict)
