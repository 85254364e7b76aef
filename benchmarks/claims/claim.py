"""Claims of the papers as data; every entry fixes scenario, comparison and margin beforehand.

A file in `benchmarks/claims/` holds entries of one paper:

    paper: fraboni                       # short, names the results
    title: Fraboni et al., JMLR 2023
    scenarios:                           # where runs come from; entries share them by name
      weights:                           # the keys of a suite file, or a shipped suite and changes
        suite: fraboni_weights
        entries:                           # defaults of its entries
          arrangement: {small: ours, paper: paper}  # or one for all scales: paper, code, reading, ours
          workload: paper                # paper or stand-in
          looks: [8, 16, 32, 64]         # numbers of seeds at which they are judged
        set: {seeds: 8}
        scales: {small: {budget.time: 1000}, paper: {}}
        needs: {paper: {runs: two networks, gpu: a day, cores: a week of two cores}}
    claims:
      - id: F-weights-FP/mnist           # row of the list of claims, and the case
        place: Fig. 2a, §5.2.1
        statement: Time-based weights reach a lower loss on the federated problem than identical ones.
        kind: better                     # better, same, value, contrast, ratio, rank, report, theorem
        margin: 0.01                     # a difference certainly smaller counts as none
        clock: time                      # the paper's axis
        rates: stated                    # paper, tuned, or stated: chosen by hand
        scenario: weights
        where: {problem.partition: iid}  # selects the point of the grid
        metric: fp/loss
        a: {strategy: {name: async_fedavg, weights: time_based}}
        b: {strategy: {name: async_fedavg, weights: identical}}

    seen:                                # what was observed, for refuted members of a family
      F-weights-FP/mnist: …

    main:                                # the paper's main results, each with all of its readings
      - id: time-based
        words: Time-based weights reach a lower federated loss than identical ones.
        place: Fig. 2a
        readings: [F-weights-FP/*]

The arrangement says whose experiment it is, that is, which client works on which version, when, and for how
long: the paper's, that of its published code, an interpretation of a text that leaves it open (`reading`), or
ours. The workload is the data and model: the paper's or a stand-in. Both follow one rule for all papers: an
interpretation for one claim is an interpretation for all claims that use it. The meaning of a failure follows
from both and `outside_conditions`.

A `Sample` defines a number a seed; its keys may stand at the entry, for all of its samples. An entry with
`each` or `table` expands to many (`expansion.py`). An entry of kind `theorem` has no scenario: it names
the test that decides it, and `found`, at the end of its file, holds the result of the test.

Files are read by `claims.files`, scenarios become runs in `claims.plan`, and verdicts are made in
`reports.claims.verdicts`.

Fixed: names and defaults of fields. Digests of the judged keys of entries are in the register
(`claims.register`), and a test refuses other digests.
"""

from __future__ import annotations

import itertools
from functools import cached_property
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from fl_core.metrics import TRAINING, Metric, named
from fl_core.parts import FieldError, Frozen
from fl_core.recorded_names import DIAGNOSED

Finite = Annotated[float, Field(allow_inf_nan=False)]
Band = tuple[Finite | None, Finite | None]  # lower and upper end; None for an open end
Where = dict[str, Any]  # dotted keys of a suite → required values
SCALES = ("small", "paper")
SEEDS = (8, 16, 32, 64)  # numbers of seeds at which a claim is judged unless it names others
ScaleName = Annotated[str, Field(pattern="^(small|paper)$")]

Arrangement = Literal["paper", "code", "reading", "ours"]  # whose experiment it is
Arrangements = Arrangement | dict[ScaleName, Arrangement]
Workload = Literal["paper", "stand-in"]  # data and model
Workloads = Workload | dict[ScaleName, Workload]
Evidence = Literal["experiment", "statement", "bound"]  # kinds, which are counted separately
DIVERGED = Metric("diverged", "Diverged", higher=False)  # 1 for a run that diverged, else 0
Failure = Literal[
    "contradicts", "other_workload", "other_arrangement", "outside_conditions", "underspecified", "ours"
]
# Meaning of a failure for the arrangements that determine it alone.
OF_ARRANGEMENT: dict[Arrangement, Failure] = {
    "code": "other_arrangement",
    "reading": "underspecified",
    "ours": "ours",
}


def _growing(looks: tuple[int, ...]) -> tuple[int, ...]:
    if any(later <= earlier for earlier, later in itertools.pairwise(looks)):
        raise ValueError("must increase from look to look")
    return looks


Looks = Annotated[
    tuple[Annotated[int, Field(ge=2)], ...], Field(min_length=1), AfterValidator(_growing)
]  # numbers of seeds


def _named(value: Any) -> Any:
    return {"name": value} if isinstance(value, str) else value


class Sample(Frozen):
    """Definition of a number for each seed: runs of a scenario, a metric, and the way to read the number."""

    scenario: str | None = None
    where: Where = Field(default_factory=dict)
    strategy: Annotated[dict[str, Any] | None, BeforeValidator(_named)] = None
    metric: str | None = None  # a column of the curve, a metric of the run, `diverged`, or module:function
    at: Literal["end", "shared"] | Finite | None = None  # on the entry's clock
    # of the curve up to `at`
    along: Literal["last", "mean", "std", "min", "max", "step_std", "spikes"] = "last"
    reach: Finite | None = None  # the number is then the first clock reading at which the metric is as good
    over: Literal["mean", "min", "max", "sum"] | None = None  # of several points of a grid
    times: Finite = 1  # coefficient, in contrasts and ratios

    @property
    def needs_clients(self) -> bool:
        """Return whether training losses are read before the end; a metric function has to do without."""
        only_last = self.at == "end" and self.along == "last" and self.reach is None
        return self.metric in TRAINING and not only_last

    def within(self, entry: Sample) -> Sample:
        """Return the sample completed with the entry's keys; keys of the sample take precedence."""
        keys = {key: getattr(entry, key) for key in Sample.model_fields if key in entry.model_fields_set}
        fields = {key: getattr(self, key) for key in self.model_fields_set}
        return Sample.model_construct(**{**keys, **fields, "where": {**entry.where, **self.where}})


class Need(Frozen):
    """Resources for runs beyond an evening on two cores."""

    runs: str  # what has to be computed
    gpu: str  # time on one GPU
    cores: str  # time without

    def __str__(self) -> str:
        return f"{self.runs}: {self.cost}"

    @property
    def cost(self) -> str:
        """Time with and without a GPU."""
        return f"about {self.gpu} on a GPU, or {self.cores}"


class Claim(Sample):
    """Base class of claims of all kinds (`claims.kinds`)."""

    shared_clock: ClassVar[bool] = False  # whether samples are compared at a reading that all have reached
    needs_runs: ClassVar[bool] = True

    id: Annotated[str, Field(pattern=r"^\w[\w.-]*/\S+$")]
    place: str
    statement: str
    kind: str
    row: str = ""  # of the list of claims, within which tests are counted; the id's first half
    arrangement: Arrangements | None = None  # the scenario's, if not named; a theorem's is the paper's
    workload: Workloads | None = None  # likewise
    outside_conditions: bool = False  # of the paper's theorem
    stated_by: Literal["paper", "ours"] = "paper"  # a statement of ours decides no main result
    twin: bool = False  # repeats the comparison of another entry, on runs that they share
    case: dict[str, Any] = Field(default_factory=dict)  # conditions: those that its id names, and more
    table: str = ""  # file of the published table that it is a cell of
    unjudged: str = ""  # why there is no verdict: what is left open, or that no sentence claims it
    looks: Looks | None = None  # the scenario's, if not named
    clock: Literal["iterations", "updates", "time", "energy"] | None = None
    rates: Literal["paper", "tuned", "stated"] | None = None
    higher: bool | None = None  # better; None where the metric is declared so
    note: str = ""  # what the paper leaves open, and our reading of it
    needs: dict[ScaleName, Need] = Field(default_factory=dict)
    seen: str = ""  # of a refuted claim, or of one without any effect: what was seen

    @property
    def plan(self) -> tuple[int, ...]:
        """Numbers of seeds at the looks of the claim, growing."""
        return self.looks or SEEDS

    @property
    def holds(self) -> Band | None:
        """Band of the found number if the claim holds; None for a printed number, and a report."""
        return None

    @property
    def evidence(self) -> Evidence:
        """Kind of evidence: runs, a printed number or theorem open to failure, or a proven bound."""
        return "experiment"

    def arranged(self, scale: str) -> Arrangement:
        """Return the arrangement of the experiment at a scale; by default the paper's."""
        named = self.arrangement
        return (named.get(scale) if isinstance(named, dict) else named) or "paper"

    def works_on(self, scale: str) -> Workload:
        """Return the workload (data and model) at a scale; by default the paper's."""
        named = self.workload
        return (named.get(scale) if isinstance(named, dict) else named) or "paper"

    def failure(self, scale: str) -> Failure:
        """Return the meaning of a failure at a scale; an explanation only, no failure is hidden."""
        arrangement = self.arranged(scale)
        if self.outside_conditions and arrangement != "ours":
            return "outside_conditions"
        if arrangement != "paper":
            return OF_ARRANGEMENT[arrangement]
        return "contradicts" if self.works_on(scale) == "paper" else "other_workload"

    def parts(self) -> dict[str, Sample]:
        """Return the samples as written, by name; by default a single sample from the entry."""
        return {"value": Sample()}

    @cached_property
    def samples(self) -> dict[str, Sample]:
        """The samples, complete, by name; none for a theorem."""
        at = "shared" if self.shared_clock else "end"
        complete = {name: part.within(self) for name, part in self.parts().items()}
        return {
            name: sample if sample.at is not None else sample.model_copy(update={"at": at})
            for name, sample in complete.items()
        }

    @property
    def sign(self) -> int:
        """1 if more is better, −1 if less is: the metric's direction, unless set by the entry."""
        more = self.higher
        if more is None:
            more = all(metric.higher for metric in self.metrics)
        return 1 if more else -1

    @property
    def shares(self) -> bool:
        """Return whether all samples are shares, for example accuracies, and no clocks at a target."""
        reaching = any(sample.reach is not None for sample in self.samples.values())
        return not reaching and all(metric.share for metric in self.metrics)

    @property
    def metrics(self) -> list[Metric]:
        """Metrics of the samples as declared by problems, or without direction if undeclared."""
        names = [sample.metric or "" for sample in self.samples.values()]
        return [_declared(name) for name in names]

    @model_validator(mode="before")
    @classmethod
    def _of_a_row(cls, entry: Any) -> Any:
        if isinstance(entry, dict) and "row" not in entry:
            return {**entry, "row": str(entry.get("id", "")).partition("/")[0]}
        return entry

    @model_validator(mode="after")
    def _whole(self) -> Self:
        """Refuse an entry without a complete sample, clock or origin of learning rates."""
        if not self.needs_runs:
            return self
        for name, sample in self.samples.items():
            for key in ("scenario", "metric"):
                if getattr(sample, key) is None:
                    raise ValueError(f"{name}.{key}: is missing")
        if self.clock is None:
            raise FieldError(
                "clock", "must be iterations, updates, time or energy: the axis on which runs are compared"
            )
        if self.rates is None:
            raise FieldError("rates", "must be paper, tuned or stated: the origin of the learning rates")
        return self


def _declared(name: str) -> Metric:
    """Return the metric as known everywhere, or as declared by a problem of the package."""
    if name == DIVERGED.name:
        return DIVERGED
    metric = named(name)
    if metric.higher is not None or ":" in name or name.startswith(DIAGNOSED):  # no problem's metric
        return metric
    from fl_core.problems.problem import shipped_metrics  # imports torch, which few claims need

    return shipped_metrics().get(name, metric)
