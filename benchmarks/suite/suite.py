"""Suites: YAML files as runs, the product of grid, strategies and seeds, and as centralised baselines.

`load` is the entry for all commands. A `PlannedRun` has an experiment, whose hash is its key, and labels;
`tasks` adds the baselines.

Fixed: the experiments and baselines of a suite, whose keys name stored runs, and the names of tags.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from benchmarks.errors import UserError
from benchmarks.suite import labels
from benchmarks.suite import tuned as tuned_file
from benchmarks.suite.expansion import Grid, GridPoint, expand, read_grid
from benchmarks.suite.fields import TUNED, SuiteSpec
from benchmarks.suite.overrides import Setting, assignment, override, take_scale
from benchmarks.suite.shipped import SUITES, file_of, recorded
from benchmarks.suite.tuned import TunedFile
from benchmarks.yaml_io import fault, read
from fl_core.diagnostics.diagnosis import Diagnostics
from fl_core.experiment import Experiment
from fl_core.import_guard import guarded, not_own, search_beside
from fl_core.keys import key
from fl_core.metrics import as_data
from fl_core.problems.problem import Problem
from fl_core.recorded_names import JOINT, VARIANT, Kind, Tag, untuned
from fl_core.recording.evaluation import Evaluate
from fl_core.recording.recorder import Record
from fl_core.strategies.strategy import Strategy
from fl_core.text import nearest, unknown, varying
from fl_core.user_code import digests, named

T = TypeVar("T", str, int)

# Fields of a problem without influence on a model trained on all data: one baseline for all their values.
NOT_IN_POOLED_TRAINING = {"partition", "target"}
BASELINES = 3  # seeds with a baseline: it is a single line in a report, but takes as long as many small runs


@dataclass(frozen=True)
class PlannedRun:
    """A run of a suite: an experiment, labels, and settings without influence on the key."""

    kind: ClassVar = Kind.RUN
    curve_only: ClassVar = False  # whether the curve is the only recorded table
    suite: str
    experiment: Experiment
    scenario: str  # label, unique in the suite, e.g. "digits · Dirichlet 0.1 · F80"
    strategy: str  # label, unique in the suite
    show: tuple[str, ...] = ()  # metrics that a report shows first
    diagnostics: Diagnostics = field(default_factory=Diagnostics)
    evaluate: Evaluate = "clients"  # data evaluated at every mark
    execution: str = "one_by_one"
    scale: str | None = None  # None where the suite has no scales
    prunable: bool = False  # whether every evaluation is reported, and the run may be stopped
    conditions: tuple[str, ...] = ()  # the parts of the scenario's label: problem, partition, timing, …
    varying: tuple[str, ...] = ()  # conditions that not all scenarios of the suite share

    @cached_property
    def key(self) -> str:
        """The run's identity: a hash of the experiment."""
        return self.experiment.key

    @property
    def name(self) -> str:
        """Return a readable name: strategy, varying conditions of the suite, and seed."""
        return JOINT.join([self.strategy, *self.varying, f"seed {self.seed}"])

    @property
    def place(self) -> tuple[str, str, str, str]:
        """Return scenario, strategy, number of the trial (if any) and seed; equal values mean equal names."""
        return self.scenario, self.strategy, "", str(self.seed)

    @property
    def parameters(self) -> Mapping[str, Any]:
        """Return the parameters shown in MLflow instead of the whole description; empty for all."""
        return {}

    def measures(self, record: Record) -> dict[str, float]:
        """Return additional metrics of the finished run."""
        return {}

    @property
    def problem(self) -> Problem:
        """Return the run's problem."""
        return self.experiment.scenario.problem

    @property
    def seed(self) -> int:
        """Return the seed of the run and of the world."""
        return self.experiment.seed

    def description(self) -> dict[str, Any]:
        """Return the experiment as plain data."""
        return self.experiment.description()

    def tags(self) -> dict[Tag, Any]:
        """Return the tags for searching and grouping runs."""
        scenario, problem = self.experiment.scenario, self.problem
        return {
            Tag.SCENARIO: self.scenario,
            Tag.CONDITIONS: json.dumps(self.conditions, ensure_ascii=False),
            Tag.PROBLEM: labels.problem(problem),
            Tag.PARTITION: labels.partition(problem),
            Tag.TIMING: scenario.timing.label(),
            Tag.STRATEGY: self.strategy,
            Tag.PAPER: labels.first_line(type(self.experiment.strategy)),
            Tag.SEED: self.seed,
            Tag.METRIC: problem.metric,
            Tag.HIGHER_IS_BETTER: problem.ranking.higher,
            Tag.METRICS: as_data(problem.recorded()),
            Tag.TARGET: problem.target,
            Tag.SHOW: list(self.show),
            **_own_code(self.description()),
            Tag.EVALUATE: str(self.evaluate),
            **({Tag.TIME_UNIT: unit} if (unit := scenario.timing.durations.time_unit) else {}),
        }


@dataclass(frozen=True, slots=True)
class PooledTask:
    """Training of a model on all clients' data together: the centralised baseline in a report."""

    kind: ClassVar = Kind.POOLED
    suite: str
    problem: Problem
    seed: int

    @property
    def key(self) -> str:
        """Return the baseline's identity, a hash of problem and seed."""
        identity = self.problem.identity().items()
        problem = {name: value for name, value in identity if name not in NOT_IN_POOLED_TRAINING}
        return key([self.kind, problem, self.seed])

    @property
    def name(self) -> str:
        """Return a readable name."""
        return f"centralised baseline · {labels.problem(self.problem)} · seed {self.seed}"

    def description(self) -> dict[str, Any]:
        """Return problem and seed as plain data."""
        return {"problem": self.problem.model_dump(mode="json"), "seed": self.seed}

    def tags(self) -> dict[Tag, Any]:
        """Return the tags for searching baselines."""
        return {
            Tag.PROBLEM: labels.problem(self.problem),
            Tag.SEED: self.seed,
            **_own_code(self.description()),
        }


def _own_code(description: dict[str, Any]) -> dict[Tag, Any]:
    """Return a tag with files and digests of the user's own classes; empty without any."""
    code = named(description)
    return {Tag.CODE: code} if code else {}


@dataclass(frozen=True, slots=True)
class Suite:
    """A validated suite: the settings at every point of the grid."""

    grid: Grid
    points: tuple[GridPoint, ...]
    scale: str | None = None
    source: Path = Path()  # its file
    tuned: TunedFile | None = None  # replaces values of the file
    labels: tuple[str, ...] = ()  # given by the file, one for each strategy; "" where it gives none
    as_variant: bool = False  # whether runs are recorded as SUITE-tuned: with --tuned, not by `lr: tuned`

    @property
    def spec(self) -> SuiteSpec:
        """Return the settings at the first point, for keys outside the grid."""
        return self.points[0].spec

    @property
    def name(self) -> str:
        """Return the name of recorded runs: the file's name, the scale, and a suffix for tuned values."""
        return recorded(self.spec.name, self.scale) + (VARIANT if self.as_variant else "")

    @property
    def tuned_values(self) -> Path:
        """Path of the tuned values: in the package for a shipped suite, otherwise next to the suite file."""
        name = f"{recorded(self.spec.name, self.scale)}.yaml"
        shipped = self.source.parent == SUITES
        return tuned_file.FOLDER / name if shipped else self.source.with_name(f"tuned-{name}")

    @property
    def description(self) -> str:
        """Return the purpose of the suite, with a warning where untuned rates may explain differences."""
        return " ".join(filter(None, (self.spec.description.strip(), self.untuned)))

    @property
    def untuned(self) -> str:
        """Return a warning where all strategies share a rate; empty with tuned values."""
        if self.tuned:
            return ""
        return untuned(
            (str(point.place), label, str(strategy.local_lr))
            for point in self.points
            for label, strategy in self.labelled(point).items()
        )

    @property
    def highlighted(self) -> list[str]:
        """Return the labels of the highlighted strategies."""
        picked, strategies = {*self.spec.highlight}, self.labelled(self.points[0])
        return [label for label, part in strategies.items() if {label, part.reference()} & picked]

    def labelled(self, point: GridPoint) -> dict[str, Strategy]:
        """Return the strategies at a point of the grid by label."""
        return dict(zip(labels.strategies(point.spec, self.labels), point.spec.strategies, strict=True))

    def runs(self) -> list[PlannedRun]:
        """Return all runs in the order of the file, seeds next to each other."""
        distinct = varying([point.conditions for point in self.points])
        points = zip(self.points, distinct, strict=True)
        return [run for point, conditions in points for run in self._runs_at(point, conditions)]

    def _runs_at(self, point: GridPoint, varying: tuple[str, ...]) -> Iterator[PlannedRun]:
        """Yield the runs at a point of the grid; seeds share the validated experiment."""
        for untuned_experiment, label in zip(point.experiments, self.labelled(point), strict=True):
            experiment = untuned_experiment
            if self.tuned:
                strategy = self.tuned.strategy(point.scenario, experiment.strategy, point.label, label)
                experiment = Experiment(scenario=point.scenario, strategy=strategy)
            first = PlannedRun(
                self.name,
                experiment,
                scenario=point.label,
                conditions=point.conditions,
                varying=varying,
                strategy=label,
                show=self.spec.show,
                scale=self.scale,
                diagnostics=self.spec.diagnostics,
                evaluate=point.spec.evaluates,
                execution=self.spec.execution,
            )
            for seed in self.spec.seeds:
                yield replace(first, experiment=experiment.model_copy(update={"seed": seed}))


def load(
    name_or_path: str,
    overrides: Sequence[str | Setting] = (),
    scale: str | None = None,
    tuned: bool | Path | None = None,
) -> Suite:
    """Load and validate a suite.

    Args:
        name_or_path: A shipped suite, or a YAML file.
        overrides: Settings, or texts as of `--set`.
        scale: One of its scales; None for the file's default.
        tuned: Whether to use tuned values, or their file; None: only if the suite says `lr: tuned`.

    Raises:
        UserError: The suite has mistakes; every one is named.
    """
    path = file_of(name_or_path)
    document = read(path)
    if path.parent != SUITES:
        search_beside(path)
    with guarded("" if path.parent == SUITES else not_own(path)):
        settings = (item if isinstance(item, Setting) else assignment(item) for item in overrides)
        suite = build(path, document, settings, scale)
    if tuned is False or (tuned is None and suite.spec.lr != TUNED):
        return suite
    if tuned is None and not suite.tuned_values.is_file():
        raise UserError(
            f"{path}: lr: tuned: {suite.tuned_values} does not exist. Create it with asyncfl tune"
        )
    values = tuned_file.load(tuned if isinstance(tuned, Path) else suite.tuned_values, suite.name)
    values.check_seeds(suite.spec.seeds)
    if values.code:
        runs = {(run.scenario, run.strategy): run for run in suite.runs()}.values()
        values.warn_of_edits(digests({k: v for run in runs for k, v in named(run.description()).items()}))
    return replace(suite, tuned=values, as_variant=bool(tuned))


def build(
    path: Path,
    document: dict[str, Any],
    overrides: Iterable[Setting] = (),
    scale: str | None = None,
) -> Suite:
    """Build the suite of a document, changing the document; raises errors like `load`."""
    chosen, scaled = take_scale(path, document, scale)
    settings = [*scaled, *overrides]
    for setting in settings:
        try:
            # A copy, since later settings may change the value in place.
            override(document, setting.steps, deepcopy(setting.value))
        except ValueError as error:
            raise UserError(f"{setting.source}{'.'.join(setting.steps)}: {error}") from None
    grid, explicit = read_grid(path, document), labels.take_labels(path, document)
    points = _with_goals(path, expand(path, document, grid, settings))
    suite = Suite(grid, points, chosen, path, labels=explicit)
    names = labels.strategies(suite.spec, explicit)
    labels.must_be_printable(path, "strategy", names)
    labels.must_be_printable(path, "scenario", [point.label for point in points])
    for at, name in enumerate(names):
        if name in names[:at]:
            sentence = f"duplicate label {name!r}, also of strategy {names.index(name)}"
            raise UserError(fault(path, document, ("strategies", at, "label"), sentence))
    allowed = [*names, *(part.reference() for part in suite.spec.strategies)]
    for name in suite.spec.highlight:
        if name not in allowed:
            sentence = f"unknown strategy {name!r}{nearest(name, allowed)} Available: {', '.join(names)}"
            raise UserError(fault(path, document, ("highlight",), sentence))
    return suite


def _with_goals(path: Path, points: Sequence[GridPoint]) -> tuple[GridPoint, ...]:
    """Return the points with the budgets and targets of scenarios; UserError for an unknown scenario."""
    goals, names = points[0].spec.scenarios, [point.label for point in points]
    if wrong := [label for label in goals if label not in names]:
        raise UserError(f"{path}: scenarios: {unknown('scenario', wrong[0], names)}")
    for label, goal in goals.items():
        problem = points[names.index(label)].spec.problem
        for goal_key, target in (("target", goal.target), ("budget.target", goal.budget.target)):
            if reason := problem.never_reaches(target):
                raise UserError(f"{path}: scenarios.{label}.{goal_key}: {reason}")
    return tuple(point.with_goal(goals.get(point.label)) for point in points)


Task = PlannedRun | PooledTask
AnyTask = TypeVar("AnyTask", bound=Task)


def tasks(runs: Sequence[PlannedRun]) -> list[Task]:
    """Return all tasks, baselines included, seed by seed and problem by problem.

    So comparisons of strategies grow evenly during a session, and consecutive runs share a world.
    """
    problems = {id(run.problem): run.problem for run in runs}  # by id, as seeds share the object
    places = _places(map(repr, problems.values()))
    place_of = {identity: places[repr(problem)] for identity, problem in problems.items()}
    seeds = _places(run.seed for run in runs)
    baselines = [
        PooledTask(run.suite, run.problem, run.seed)
        for run in runs
        if seeds[run.seed] < BASELINES and run.problem.has_baseline
    ]
    simulated = sorted(runs, key=lambda run: (seeds[run.seed], place_of[id(run.problem)]))
    return [*{task.key: task for task in baselines}.values(), *simulated]


def _places(items: Iterable[T]) -> dict[T, int]:
    """Return the index of each distinct item, in order of first occurrence."""
    return {item: index for index, item in enumerate(dict.fromkeys(items))}
