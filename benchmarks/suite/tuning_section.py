"""How a suite is to be tuned: its section `tuning`, all of it optional.

tuning:
  trials: 30
  seeds: 3
  space:
    local_lr: {low: 0.001, high: 1}
    fedbuff.buffer: [1, 5, 10]
"""

from typing import Annotated, Literal, Self

from pydantic import Discriminator, Field, NonNegativeInt, Tag, model_validator

from fl_core.parts import Count, FieldError, Frozen, Share, Tune
from fl_core.scenario import Budget

Objective = Literal["final", "auc", "updates_to_target", "time_to_target"]
Sampler = Literal["tpe", "random", "grid", "sobol", "cmaes", "gp"]
BLIND = ("random", "grid", "sobol")  # samplers that do not look at results
Pruner = Literal["none", "wilcoxon", "median", "hyperband"]


Values = Annotated[tuple[int | float | str, ...], Field(min_length=1)]
RangeOrValues = Annotated[
    Annotated[Tune, Tag("range")] | Annotated[Values, Tag("values")],
    Discriminator(lambda value: "range" if isinstance(value, dict | Tune) else "values"),
]
Which = Annotated[tuple[NonNegativeInt, ...], Field(min_length=1)]
Few = Annotated[Count, Field(le=10_000)]
HowManyOrWhich = Annotated[
    Annotated[Few, Tag("count")] | Annotated[Which, Tag("which")],
    Discriminator(lambda value: "which" if isinstance(value, list | tuple) else "count"),
]


class Reevaluation(Frozen):
    """More seeds for the best of the trials."""

    share: Annotated[Share, Field(gt=0)]  # of the trials
    seeds: Few  # how many more


class Tuning(Frozen):
    """How the suite's strategies are tuned: the same trials × seeds × budget for each."""

    # Of each strategy in each scenario; a grid has as many as it has points
    trials: Annotated[Count, Field(le=100_000)] = 30
    # How many, counted from 1000 above the suite's largest, or which: none that the suite itself uses.
    seeds: HowManyOrWhich = 3
    objective: Objective = "final"  # at the end, mean over the run, or when the target is reached
    metric: str | None = None  # of the learning curve; None: the problem's own
    last: Count | None = None  # evaluations that `final` is the mean of; None: a fifth of them
    # How values are proposed: by one of Optuna's samplers, from lists (`grid`), or as points of a scrambled
    # Sobol sequence (`sobol`), which for a strategy are the same in every scenario
    sampler: Sampler = "tpe"
    scramble: NonNegativeInt = 0  # the seed of Sobol's scrambling
    # When all trials have ended, the best get more seeds, and the best of these is chosen
    again: Reevaluation | None = None
    pruner: Pruner = "none"  # when a trial is given up early
    batch: Count = 5  # trials that are simulated together
    budget: Budget | None = None  # of a trial's simulations; None: the suite's
    # Parameter, or strategy.parameter → its range or values; empty: what each strategy declares.
    # The parameter `c` is the factor of a local rate c·√(n/T), n clients, T server iterations or updates.
    space: dict[str, RangeOrValues] = Field(default_factory=dict)
    declared: bool = False  # whether what strategies declare is searched too, beside `space`
    # Label of a strategy → label of the one whose parameters it takes, and which is tuned in its place.
    reuse: dict[str, str] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _again_after_all(self) -> Self:
        if self.again and (self.sampler not in BLIND or self.pruner != "none"):
            raise FieldError("again", f"needs no pruner, and one of the samplers {', '.join(BLIND)}")
        return self
