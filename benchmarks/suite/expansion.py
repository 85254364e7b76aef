"""Expansion of a suite's document to the points of the grid: scenarios with an experiment per strategy.

`suite.build` calls `expand`. The whole grid is validated before anything runs; every mistake is reported
once, with file and line, or with the setting or grid value that caused it.

Fixed: the points, and their order, which tables and pages keep. Free: messages.
"""

from __future__ import annotations

import copy
import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from benchmarks import yaml_io
from benchmarks.errors import UserError
from benchmarks.suite import labels
from benchmarks.suite.document import Steps, dotted, part_name, put, split
from benchmarks.suite.fields import (
    MAX_POINTS,
    MAX_RUNS,
    Goal,
    SuiteFile,
    SuiteSpec,
    beyond_this_machine,
    too_many,
)
from benchmarks.suite.overrides import Setting
from benchmarks.suite.validation_errors import Complaint, complaints, reason
from fl_core.experiment import Experiment
from fl_core.scenario import Scenario

# Keys that a grid may span: those shared by all strategies. Values of one strategy are listed under
# `strategies`.
SPANNABLE = ("problem", "timing", "arrangement", "budget", "local", "lr")

Grid = dict[str, tuple[Any, ...]]  # dotted key → its values
Place = Mapping[str, Any]  # dotted key of the grid → its value at one point


@dataclass(frozen=True, slots=True)
class GridPoint:
    """A point of a suite's grid: settings, scenario, and an experiment for each strategy."""

    place: Place
    spec: SuiteSpec
    scenario: Scenario
    experiments: tuple[Experiment, ...]  # by strategy, under seed 0
    conditions: tuple[str, ...] = ()  # the parts of the scenario's label: problem, partition, timing, …
    label: str = ""  # of the scenario, unique in the suite

    def with_goal(self, goal: Goal | None) -> GridPoint:
        """Return the point with the budget and target of a goal, or unchanged without a goal.

        For `scenarios:` of a suite, where goals are given by label; so the label is kept. A goal without a
        target removes the target of the problem.
        """
        if goal is None:
            return self
        problem = self.scenario.problem.model_copy(update={"target": goal.target})
        scenario = self.scenario.model_copy(update={"problem": problem, "budget": goal.budget})
        return replace(
            self,
            spec=self.spec.model_copy(update={"problem": problem, "budget": goal.budget}),
            scenario=scenario,
            experiments=tuple(
                Experiment(scenario=scenario, strategy=experiment.strategy) for experiment in self.experiments
            ),
        )


class _ValidatedValues:
    """Cache of validated values, by key of the document and text: points of a grid share most values."""

    def __init__(self) -> None:
        self.values: dict[tuple[str, str], Any] = {}

    def spec(self, document: dict[str, Any]) -> SuiteSpec:
        """Validate the document at a point of a grid; values of earlier points are not validated again."""
        texts = {key: repr(value) for key, value in document.items()}
        if "strategies" in document:  # their validated values depend on these keys, too
            problem = part_name(document.get("problem"))
            texts["strategies"] += repr([problem, texts.get("local"), texts.get("lr")])
        validated = {key: self.values[key, text] for key, text in texts.items() if (key, text) in self.values}
        spec = SuiteSpec.model_validate({**document, **validated})
        self.values |= {(key, text): getattr(spec, key) for key, text in texts.items()}
        return spec


def read_grid(path: Path, document: dict[str, Any]) -> Grid:
    """Take the grid out of a document; UserError with all faults."""
    grid = document.pop("grid", None) or {}
    if not isinstance(grid, dict):
        sentence = "must be a mapping of dotted keys to lists of values"
        raise UserError(yaml_io.fault(path, document, ("grid",), sentence))
    wrong = [
        yaml_io.fault(path, document, ("grid", axis), fault)
        for axis, values in grid.items()
        if (fault := _grid_fault(axis, values))
    ]
    if wrong:
        raise UserError(*wrong)
    return {axis: tuple(values) for axis, values in grid.items()}


def _grid_fault(axis: Any, values: Any) -> str | None:
    """Return the fault in a key or the values of the grid; None without a fault."""
    if not isinstance(axis, str) or split(axis)[0] not in SPANNABLE:
        return f"a grid may have keys of {', '.join(SPANNABLE)}; strategies and seeds are separate lists"
    if not isinstance(values, list):
        return f"must be a list of values, not {values!r}"
    if not values:
        return "is empty: the suite expands to no run"
    if any(value in values[:place] for place, value in enumerate(values)):
        return "duplicate value"
    return None


def expand(
    path: Path, document: dict[str, Any], grid: Grid, settings: Sequence[Setting]
) -> tuple[GridPoint, ...]:
    """Return every point of the grid, validated; UserError with every mistake in the file.

    Args:
        path: Of the file, for messages.
        document: Without its grid, and with `settings` applied.
        grid: Of the document.
        settings: A mistake in a value that one of them set is reported at the setting, not at a line.
    """
    size = math.prod(map(len, grid.values()))
    if size > MAX_POINTS:
        raise UserError(yaml_io.fault(path, document, ("grid",), too_many("points", size, MAX_POINTS)))
    places = [dict(zip(grid, values, strict=True)) for values in itertools.product(*grid.values())]
    validated = _ValidatedValues()
    points: list[GridPoint] = []
    twins: dict[str, list[GridPoint]] = {}  # scenario as JSON → its points
    mistakes: dict[str, list[Place]] = {}  # line of a message → places with the mistake
    runs = 0
    for place in places:
        document_here = _document_at(path, document, place)
        try:
            spec = validated.spec(document_here)
        except ValidationError as error:
            faults = list(complaints(error, SuiteFile, document_here))
        else:
            runs += len(spec.strategies) * len(spec.seeds)
            point, faults = _point(place, spec, document_here)
            if point is not None:
                faults = faults or list(_repeated(point, twins))
                points.append(point)
        for complaint in faults:
            source = _source(path, complaint, document_here, place, grid=grid, settings=settings)
            line = f"{source}: {complaint.sentence}"
            mistakes.setdefault(line, []).append(place)
    if runs > MAX_RUNS:
        raise UserError(f"{path}: {too_many('runs', runs, MAX_RUNS)}")
    if mistakes:
        raise UserError(*(line + _where(grid, failed) for line, failed in mistakes.items()))
    conditions = labels.conditions([point.scenario for point in points], places)
    names = labels.scenarios(conditions, points[0].spec.label)
    labelled = zip(points, conditions, names, strict=True)
    return tuple(replace(point, conditions=parts, label=name) for point, parts, name in labelled)


def _document_at(path: Path, document: dict[str, Any], place: Place) -> dict[str, Any]:
    """Return the document at a point of the grid; `problem` is set before `problem.partition`."""
    copied = copy.deepcopy(document)
    for axis in sorted(place, key=lambda axis: len(split(axis))):
        try:
            put(copied, split(axis), copy.deepcopy(place[axis]))
        except ValueError as error:
            raise UserError(yaml_io.fault(path, document, ("grid", axis), str(error))) from None
    return copied


def _point(
    place: Place, spec: SuiteSpec, document: dict[str, Any]
) -> tuple[GridPoint | None, list[Complaint]]:
    """Return a point with all possible experiments, and complaints about incompatible combinations.

    Such a combination is one of timing with the number of clients, or of a strategy with the scenario. The
    point is None without a valid scenario.
    """
    try:
        scenario = spec.scenario()
    except ValidationError as error:
        return None, list(complaints(error, SuiteFile, document))
    faults = []
    if fault := beyond_this_machine(scenario):
        faults.append(Complaint(("budget",), fault))
    if fault := spec.problem.never_reaches(spec.budget.target):
        faults.append(Complaint(("budget", "target"), fault))
    experiments = []
    for number, strategy in enumerate(spec.strategies):
        try:
            experiments.append(Experiment(scenario=scenario, strategy=strategy))
        except ValidationError as error:
            for detail in error.errors(include_url=False):
                fault = f"{strategy.label()} is incompatible with this scenario: {reason(detail)}"
                faults.append(Complaint(("strategies", number), fault))
    return GridPoint(place, spec, scenario, tuple(experiments)), faults


def _repeated(point: GridPoint, by_scenario: dict[str, list[GridPoint]]) -> Iterator[Complaint]:
    """Yield complaints about duplicate strategies, and about values of the grid without effect."""
    strategies = point.spec.strategies
    for number, strategy in enumerate(strategies):
        if (first := strategies.index(strategy)) < number:
            yield Complaint(
                ("strategies", number), f"duplicate of entry {first}, {strategy.label()}. Remove one of them"
            )
    twins = by_scenario.setdefault(point.scenario.model_dump_json(), [])
    for twin in twins:
        axes = [axis for axis in point.place if point.place[axis] != twin.place[axis]]
        for strategy in strategies:
            if strategy in twin.spec.strategies:
                yield Complaint(("grid", *axes), f"has no effect on {strategy.label()}")
    twins.append(point)


def _source(
    path: Path,
    complaint: Complaint,
    document: dict[str, Any],
    place: Place,
    *,
    grid: Grid,
    settings: Sequence[Setting],
) -> str:
    """Return file, line and key of a complaint, or the setting or grid value responsible.

    The last setting that reaches the key is responsible, or a grid value that reaches further.
    """
    steps = tuple(str(step) for step in complaint.steps)
    key = dotted(complaint.steps, document)
    sources = (setting for setting in reversed(settings) if _reaches(steps, setting.steps))
    setting = next(
        (setting for setting in reversed(settings) if _reaches(setting.steps, steps, split(key))),
        None if yaml_io.is_in_file(document, complaint.steps) else next(sources, None),
    )
    axes = [axis for axis in place if _reaches(split(axis), steps)]
    axis = max(axes, key=lambda axis: len(split(axis)), default=None)
    if axis is None or (setting and len(setting.steps) >= len(split(axis))):
        return f"{setting.source if setting else f'{yaml_io.place(path, document, complaint.steps)}: '}{key}"
    value, depth = place[axis], len(split(axis))
    inner = dotted(complaint.steps[depth:], value)
    words = ["grid", axis, *([part_name(value) or labels.value(value), inner] if inner else [])]
    grids = (setting.source for setting in reversed(settings) if setting.steps == ("grid", *split(axis)))
    written = ("grid", axis, grid[axis].index(value), *complaint.steps[depth:])
    return next(grids, f"{yaml_io.place(path, document, written)}: ") + ".".join(words)


def _reaches(outer: Steps, *inner: Steps) -> bool:
    """Return whether any of the `inner` keys is at or inside `outer`."""
    return any(steps[: len(outer)] == outer for steps in inner)


def _where(grid: Grid, failed: Sequence[Place]) -> str:
    """Return ` (where KEY is VALUE)` for a mistake confined to some values of a key of the grid."""
    parts = []
    for axis, values in grid.items():
        bad = [value for value in values if any(place[axis] == value for place in failed)]
        if len(bad) < len(values):
            parts.append(f"{axis} is {' or '.join(labels.value(value) for value in bad)}")
    return f" (where {' and '.join(parts)})" if parts else ""
