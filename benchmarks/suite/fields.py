"""The contents of a suite file: keys, types, limits, and the settings shared by all strategies.

`SuiteFile` is the model of the file. Comments above or beside its fields are their descriptions for users, in
the schema and on the reference pages (`fl_core/field_comments.py`).

Fixed: names, defaults and meaning of keys, which users write. Free: limits may be raised.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Discriminator,
    Field,
    NonNegativeInt,
    SerializeAsAny,
    Tag,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic_core import PydanticCustomError

from benchmarks.suite.document import as_part, part_name
from benchmarks.suite.shipped import reserved
from fl_core.arrangements import Arrangement
from fl_core.diagnostics.diagnosis import Diagnostics
from fl_core.local_work import SGD, LocalWork
from fl_core.metrics import TRAINING
from fl_core.parts import Count, FieldError, Frozen, Rate, Share, Tune, find
from fl_core.problems.problem import Problem
from fl_core.recording.evaluation import Evaluate, EvaluationSample
from fl_core.scenario import Budget, Scenario, Timing
from fl_core.strategies.strategy import Strategy

ANY_STRATEGY = "*"
MAX_LABEL_CHARACTERS = 60
MAX_NAME_CHARACTERS = 120  # of a suite, whose name folders and files have as well
TUNED = "tuned"  # value of `lr`: use the results of `asyncfl tune`

# Limits of a suite, so that a mistyped size costs neither memory nor years. Larger studies are several
# suites, or several calls with `--set`.
MAX_CLIENTS = 1_000_000  # whose mean durations, exact fractions, take a second and 200 MB
MAX_POINTS = 10_000  # of a grid; the validation of each takes about a millisecond
MAX_RUNS = 100_000
BYTES_AN_UPDATE = 32  # of memory, for a run's table of arrivals (schema.ARRIVALS)


def too_many(noun: str, count: int, allowed: int) -> str:
    """Return a message about too large a number, with the limit and a remedy."""
    return f"{count:,} {noun}, but a suite has at most {allowed:,}. Use fewer, or several suites"


def beyond_this_machine(scenario: Scenario) -> str:
    """Return the reason why no run of a scenario can finish on the present machine; empty if a run can."""
    updates = scenario.budget.updates or 0
    needed = updates * BYTES_AN_UPDATE
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if needed <= memory:
        return ""
    return (
        f"{updates:,} updates need {needed / 2**30:,.0f} GB for the record of arrivals alone, and this "
        f"machine has {memory / 2**30:.0f}: lower budget.updates"
    )


class Rates(Frozen):
    """Learning rates of a strategy; a single number is the local rate."""

    local: Rate | None = None  # η_l, of the clients
    server: Rate | None = None  # η_g, of the server


# Validators of fields. Those before validation turn a short form, such as `lr: 0.1`, into the long one.


def _unreserved(name: str) -> str:
    if reason := reserved(name):
        raise ValueError(f"{reason}: choose another, not {name!r}")
    return name


def _rates(value: Any) -> Any:
    """Return the rates of a strategy in the long form: a number is the local rate."""
    return value if isinstance(value, dict | Rates) else {"local": value}


def _rates_of_each(value: Any) -> Any:
    """Return rates by strategy; a single rate holds for all strategies."""
    return value if isinstance(value, dict) else {ANY_STRATEGY: value}


def _strategy_name(name: str) -> str:
    if name != ANY_STRATEGY:
        find(Strategy, name)
    return name


def _printable(label: str) -> str:
    if not label.isprintable():
        raise ValueError(f"must be a single line without control characters, not {label!r}")
    return label


def _seeds(value: Any) -> Any:
    """Return a list of seeds: a number n stands for 0 to n - 1."""
    if isinstance(value, list | tuple):
        return value
    if not isinstance(value, int) or isinstance(value, bool):
        shown_value = "empty" if value is None else repr(value)
        raise ValueError(f"must be a number or a list, not {shown_value}")
    if value > MAX_RUNS:
        raise ValueError(too_many("seeds", value, MAX_RUNS))
    return list(range(value))


def _distinct(seeds: tuple[int, ...]) -> tuple[int, ...]:
    if not seeds:
        raise ValueError("needs at least one seed: the suite expands to no run")
    if len(set(seeds)) < len(seeds):
        raise ValueError(f"duplicate seed {next(seed for seed in seeds if seeds.count(seed) > 1)}")
    return seeds


def _plain_sgd(value: Any) -> Any:
    """Return local work in the long form: without a name it is plain SGD."""
    return {"name": SGD.name, **value} if isinstance(value, dict) and "name" not in value else value


ListOfSeeds = Annotated[list[NonNegativeInt], Field(min_length=1, json_schema_extra={"uniqueItems": True})]
Seeds = Annotated[
    tuple[NonNegativeInt, ...],
    BeforeValidator(_seeds, json_schema_input_type=Count | ListOfSeeds),
    AfterValidator(_distinct),
]
NumberOrRates = Annotated[Rates, BeforeValidator(_rates, json_schema_input_type=Rate | Rates)]
RatesOfEach = dict[Annotated[str, AfterValidator(_strategy_name)], NumberOrRates]
EachRates = Annotated[RatesOfEach, BeforeValidator(_rates_of_each, json_schema_input_type=Rate | RatesOfEach)]

EvaluateOrNone = Annotated[
    Annotated[Literal["test", "clients"] | None, Tag("what")] | Annotated[EvaluationSample, Tag("sample")],
    Discriminator(lambda value: "sample" if isinstance(value, dict | EvaluationSample) else "what"),
]

RatesOrTuned = Annotated[
    Annotated[EachRates, Tag("rates")] | Annotated[Literal["tuned"], Tag(TUNED)],
    Discriminator(lambda value: TUNED if value == TUNED else "rates"),
]


Objective = Literal["final", "auc", "updates_to_target", "time_to_target"]
Sampler = Literal["tpe", "random", "grid", "sobol", "cmaes", "gp"]
NON_ADAPTIVE = ("random", "grid", "sobol")  # samplers whose draws do not depend on results
Pruner = Literal["none", "wilcoxon", "median", "hyperband"]


Values = Annotated[tuple[int | float | str, ...], Field(min_length=1)]
RangeOrValues = Annotated[
    Annotated[Tune, Tag("range")] | Annotated[Values, Tag("values")],
    Discriminator(lambda value: "range" if isinstance(value, dict | Tune) else "values"),
]
Which = Annotated[tuple[NonNegativeInt, ...], Field(min_length=1)]
FewSeeds = Annotated[Count, Field(le=10_000)]
HowManyOrWhich = Annotated[
    Annotated[FewSeeds, Tag("count")] | Annotated[Which, Tag("which")],
    Discriminator(lambda value: "which" if isinstance(value, list | tuple) else "count"),
]


class Reevaluation(Frozen):
    """More seeds for the best of the trials."""

    share: Annotated[Share, Field(gt=0)]  # of the trials
    seeds: FewSeeds  # how many more


class Tuning(Frozen):
    """Tuning of the suite's strategies: equal trials, seeds and budget for each."""

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
    # What trials are judged on: a tenth of the training data, or one half of the test data, where the suite's
    # own runs are judged on the other
    evaluate_on: Literal["validation", "first_half", "second_half"] = "validation"
    # Parameter, or strategy.parameter → its range or values; empty: what each strategy declares.
    # `server_lr.adam` is the server's rate under that optimiser (with the sampler `sobol`).
    # The parameter `c` is the factor of a local rate c·√(n/T), n clients, T server iterations or updates.
    space: dict[str, RangeOrValues] = Field(default_factory=dict)
    declared: bool = False  # whether what strategies declare is searched too, beside `space`
    # Label of a strategy → label of the one whose parameters it takes, and which is tuned in its place.
    reuse: dict[str, str] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _again_after_all(self) -> Self:
        if self.again and (self.sampler not in NON_ADAPTIVE or self.pruner != "none"):
            raise FieldError(
                "again",
                f"cannot be used with a pruner, and needs one of the samplers {', '.join(NON_ADAPTIVE)}",
            )
        return self


class Goal(Frozen):
    """Budget and target of a scenario, instead of the suite's."""

    budget: Budget  # where its runs end
    target: float | None = None  # of the problem


class SuiteSpec(Frozen):
    """Settings of a suite at a point of the grid."""

    # Under which its runs are recorded
    name: Annotated[
        str, Field(pattern=r"^\w[\w.-]*$", max_length=MAX_NAME_CHARACTERS), AfterValidator(_unreserved)
    ]
    description: str = ""  # what it is for; shown on the report page
    # Short name of the scenarios in tables and figures, in place of all that they share; runs keep their keys
    label: Annotated[str, Field(max_length=MAX_LABEL_CHARACTERS), AfterValidator(_printable)] = ""
    paper: str | None = None  # whose experiments it repeats
    seeds: Seeds  # how many, counted from 0, or which
    problem: SerializeAsAny[Problem]  # what the clients learn: data, partition, network, metric, target
    timing: Timing = Timing()  # how long jobs take, and when clients are present
    # Prescribes which client works on which version; left out: the strategy decides
    arrangement: SerializeAsAny[Arrangement] | None = None
    budget: Budget  # where a run ends
    # Label of a scenario → its own budget and target; others have those of the suite
    scenarios: dict[str, Goal] = Field(default_factory=dict)
    evaluations: Count = 20  # of the model, evenly spread over every budget
    # What is evaluated at every mark: `test` data, or the `clients`' training data as well, all of them or
    # a fixed sample of so many points, with standard errors: {sample: 5000}. Left out, all of them where a
    # metric of their losses is shown or ranks, else none. The end of a run has all.
    evaluate: EvaluateOrNone = None
    # What an update with an infinity or NaN does: it is counted and the run `end`s as diverged; or the server
    # is to `refuse` it, so that the strategy does not see it, and its client is sent a new job
    non_finite: Literal["end", "refuse"] = "end"
    # What a client does with a model; strategies may say otherwise
    local: Annotated[SerializeAsAny[LocalWork], BeforeValidator(_plain_sgd)] = SGD()
    # Learning rates: a number for all, rates by strategy (`*`: all others), or `tuned`
    lr: RatesOrTuned = Field(default_factory=dict)
    # By name, with hyper-parameters, or by import path; with a `label` for tables and figures
    strategies: tuple[SerializeAsAny[Strategy], ...]
    show: tuple[str, ...] = ()  # metrics that the report shows first; the first one ranks
    highlight: tuple[str, ...] = ()  # strategies, by label or name, that all figures draw in ink
    tuning: Tuning = Tuning()  # how `asyncfl tune` searches
    # What is measured beside the curve; left out for strategies whose steps are not linear
    diagnostics: Diagnostics = Diagnostics()
    # How jobs are computed. Stacking them differs in the last bits of a sum, and `auto` decides by a clock:
    # only the default, and `graphed` (CUDA graphs, for --device cuda), repeat bit for bit.
    execution: Literal["one_by_one", "all_in_flight", "graphed", "auto"] = "one_by_one"

    @field_validator("problem", mode="after")
    @classmethod
    def _fits_into_memory(cls, problem: Problem) -> Problem:
        if problem.clients > MAX_CLIENTS:
            raise ValueError(too_many("clients", problem.clients, MAX_CLIENTS))
        return problem

    @field_validator("strategies", mode="before")
    @classmethod
    def _with_what_all_share(cls, items: Any, info: ValidationInfo) -> Any:
        if not isinstance(items, list):
            return items
        if not items:
            raise ValueError("needs at least one strategy: the suite expands to no run")
        local, lr = info.data.get("local", SGD()), info.data.get("lr", {})
        # A Flower app, for instance, prescribes its local work.
        of_problem = getattr(info.data.get("problem"), "local_work", None)
        if of_problem is not None and local == SGD():
            local = LocalWork.model_validate(of_problem)
        return [_completed(item, local, {} if lr == TUNED else lr) for item in items]

    @property
    def evaluates(self) -> Evaluate:
        """Return the data evaluated at every mark."""
        read = {self.problem.metric, *self.show}
        return self.evaluate or ("clients" if read & TRAINING else "test")

    def scenario(self) -> Scenario:
        """Return the setting for comparing the strategies; may raise ValidationError."""
        return Scenario(
            problem=self.problem,
            timing=self.timing,
            arrangement=self.arrangement,
            budget=self.budget,
            evaluations=self.evaluations,
            non_finite=self.non_finite,
        )


class SuiteFile(SuiteSpec):
    """Contents of a suite file."""

    # Dotted key of the suite → the values that it takes; every combination is a scenario
    grid: dict[str, tuple[Any, ...]] = Field(default_factory=dict)
    scale: str | None = None  # one of `scales`, the default of the command line
    # Name → keys that are changed at that scale
    scales: dict[str, dict[str, Any]] = Field(default_factory=dict)


def _completed(item: Any, local: LocalWork, lr: Mapping[str, Rates]) -> Any:
    """Return a strategy's document, completed by the suite's local work and rates."""
    item = as_part(item)
    if not isinstance(item, dict):
        return item
    called, item = part_name(item), Strategy.written_out(item)
    names = (called or ANY_STRATEGY, part_name(item) or ANY_STRATEGY, ANY_STRATEGY)
    rates = next((lr[name] for name in names if name in lr), Rates())
    shared = {"local_lr": rates.local, "server_lr": rates.server}
    return {
        **{key: value for key, value in shared.items() if value is not None},
        **item,
        "local": _completed_local(as_part(item.get("local")), _usual_local(item, local)),
    }


def _usual_local(item: dict[str, Any], shared: LocalWork) -> LocalWork:
    """Return the suite's local work, or the kind from the strategy's paper with the suite's K and B."""
    try:
        default = find(Strategy, item.get("name")).model_fields["local"].default
    except PydanticCustomError:
        return shared  # validation reports what is wrong with the name
    if default == Strategy.model_fields["local"].default or shared.whole:
        return shared
    unset = LocalWork.model_fields.keys() - default.model_fields_set
    return default.model_copy(update={key: getattr(shared, key) for key in unset})


def _completed_local(written: Any, usual: LocalWork) -> Any:
    """Return a strategy's local work, completed; another kind of local work gets the usual K and B."""
    if written is None:
        return usual
    if not isinstance(written, dict):
        return written
    same = written.get("name", usual.reference()) == usual.reference()
    fields = type(usual).model_fields if same else LocalWork.model_fields
    name = {"name": usual.reference()} if same else {}
    return {**name, **{key: getattr(usual, key) for key in fields}, **written}
