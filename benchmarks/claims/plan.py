"""Plans of runs: the scenarios of a paper at a scale, and the runs used by each claim.

`asyncfl claims run` computes a `ClaimPlan` as a `Session` computes a suite, and `reports/claims/measured.py`
reads the numbers of claims off the runs that `picked` names.

Fixed: the keys of the runs, and which runs a sample picks: stored numbers name both.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from benchmarks import device
from benchmarks.claims.claim import SCALES, Claim, Sample, Where
from benchmarks.claims.files import Paper
from benchmarks.errors import UserError
from benchmarks.suite import labels
from benchmarks.suite.document import split
from benchmarks.suite.overrides import Setting, take_scale
from benchmarks.suite.shipped import shipped
from benchmarks.suite.suite import PlannedRun, Suite, build
from benchmarks.yaml_io import read
from fl_core.import_guard import guarded
from fl_core.parts import exact
from fl_core.recorded_names import CLAIMS, Clock
from fl_core.text import nearest

Picked = dict[int, tuple[PlannedRun, ...]]  # seed → runs from which the number of the seed is computed


@dataclass(frozen=True)
class ClaimPlan:
    """Plan of the runs for claims of a paper at a scale, in the form of a suite."""

    paper: Paper
    scale: str
    claims: tuple[Claim, ...]  # whose runs are planned
    seeds: tuple[int, ...] | None = None  # instead of the scenarios' own seeds

    @property
    def name(self) -> str:
        """Name for recording the runs."""
        return f"{CLAIMS}{self.paper.name}-{self.scale}"

    @property
    def description(self) -> str:
        """The plan's description in MLflow."""
        return f"What the claims of {self.paper.title} need, at scale {self.scale}."

    @property
    def highlighted(self) -> Sequence[str]:
        """Strategies to highlight: none."""
        return ()

    def runs(self) -> list[PlannedRun]:
        """Return the runs needed by the claims, each once, evaluated for all claims of the paper.

        On a GPU they are computed with CUDA graphs, which give the same numbers as one by one.
        """
        needed = {run.key: run for claim in self.claims for run in self._runs(claim)}
        if device.chosen().type == "cuda":
            needed = {key: replace(run, execution="graphed") for key, run in needed.items()}
        return [
            replace(run, evaluate="clients") if key in self._need_clients else run
            for key, run in needed.items()
        ]

    @cached_property
    def _need_clients(self) -> set[str]:
        """Keys of the runs with training losses read by a claim before the end.

        All claims of the paper count, so that a run computed for one claim can be used by the others. A
        recorded run without these losses is computed again, under the same key.
        """
        at_this_scale = (
            claim for claim in self.paper.claims.values() if self.scale in self.paper.scales(claim)
        )
        return {
            run.key
            for claim in at_this_scale
            if any(sample.needs_clients for sample in claim.samples.values())
            for run in self._runs(claim)
        }

    def _runs(self, claim: Claim) -> Iterator[PlannedRun]:
        return (run for by_seed in self.picked(claim).values() for runs in by_seed.values() for run in runs)

    def picked(self, claim: Claim) -> dict[str, Picked]:
        """Return the runs of each sample of a claim, by seed; UserError if a sample leaves the runs open."""
        by_sample = {}
        for name, sample in claim.samples.items():
            assert sample.scenario is not None
            try:
                by_sample[name] = self._scenario(sample.scenario).picked(sample, claim.clock)
            except ValueError as error:
                file = self.paper.places[sample.scenario].rpartition(":")[0]
                raise UserError(f"{file}: claims.{claim.id}: {name}: {error} (scale {self.scale})") from None
        return by_sample

    def problems(self, claim: Claim) -> list[str]:
        """Return the data and the network behind a claim, each once."""
        of_samples = (
            self._scenario(sample.scenario or "").problems(sample.where) for sample in claim.samples.values()
        )
        return list(dict.fromkeys(itertools.chain.from_iterable(of_samples)))

    @cached_property
    def _scenarios(self) -> dict[str, ClaimScenario]:
        return {}

    def _scenario(self, name: str) -> ClaimScenario:
        if name not in self._scenarios:
            self._scenarios[name] = ClaimScenario(
                self.name, name, expanded(self.paper, name, self.scale, self.seeds)
            )
        return self._scenarios[name]


@cache
def plan_of_seed(paper: Paper, scale: str, seed: int = 0) -> ClaimPlan:
    """Return the plan of a single seed, without claims; cached, since making a plan reads suites."""
    return ClaimPlan(paper, scale, (), (seed,))


@dataclass(frozen=True)
class ClaimScenario:
    """A scenario of a claims file, expanded to a suite."""

    recorded: str  # name of the plan in records
    name: str  # in the claims file
    suite: Suite

    def picked(self, sample: Sample, clock: str | None = None) -> Picked:
        """Return the runs of a sample, by seed; ValueError if the sample leaves the runs open."""
        points = [at for at, spec in enumerate(self._documents) if matches(spec, sample.where)]
        if not points:
            places = {
                " ".join(f"{k}={labels.value(v)}" for k, v in point.place.items())
                for point in self.suite.points
            }
            raise ValueError(f"`where` picks no point of {self.name}. Available: {'; '.join(sorted(places))}")
        if len(points) > 1 and sample.over is None:
            raise ValueError(f"`where` picks {len(points)} points of {self.name}: pick one, or set `over`")
        rows = [self._runs[point][self._strategy(point, sample.strategy)] for point in points]
        for run in (row[0] for row in rows):
            if reason := run.experiment.lacks(sample.metric or ""):
                raise ValueError(f"{run.strategy} in {run.scenario}: {reason}")
            if clock == Clock.ENERGY and run.experiment.scenario.timing.power is None:
                raise ValueError(f"{self.name} has no energy: set timing.power")
        return {runs[0].experiment.seed: runs for runs in zip(*rows, strict=True)}

    def problems(self, where: Where) -> Iterator[str]:
        """Yield the data and the network at the points selected by `where`."""
        for point, spec in zip(self.suite.points, self._documents, strict=True):
            if matches(spec, where):
                network = (spec["problem"].get("model") or {}).get("name")
                yield ", ".join(filter(None, (labels.problem(point.spec.problem), network)))

    @cached_property
    def _documents(self) -> list[dict[str, Any]]:
        """The settings at every point of the grid as plain data, defaults included."""
        return [point.spec.model_dump(mode="json") for point in self.suite.points]

    @cached_property
    def _runs(self) -> list[list[list[PlannedRun]]]:
        """The runs by point of the grid, strategy and seed."""
        runs = (
            replace(
                run,
                suite=self.recorded,
                scenario=labels.scenario((self.name, run.scenario)),
                conditions=(self.name, *run.conditions),
                varying=(self.name, *run.varying),
            )
            for run in self.suite.runs()
        )
        return [
            [[next(runs) for _ in point.spec.seeds] for _ in point.spec.strategies]
            for point in self.suite.points
        ]

    def _strategy(self, point: int, choice: Mapping[str, Any] | None) -> int:
        """Return the index of the only strategy at a point to match a choice; ValueError otherwise."""
        strategies = self._documents[point]["strategies"]
        places = [
            at for at, strategy in enumerate(strategies) if choice is None or contains(strategy, choice)
        ]
        if len(places) == 1:
            return places[0]
        names = labels.strategies(self.suite.points[point].spec)
        description = "no strategy" if choice is None else labels.value(choice)
        many = len(places) or "none"
        raise ValueError(
            f"{description} must name one strategy of {self.name}, not {many}. Available: {', '.join(names)}"
        )


def expanded(paper: Paper, name: str, scale: str, seeds: Sequence[int] | None = None) -> Suite:
    """Return a scenario at a scale as a suite, with given or own seeds; UserError with every mistake."""
    place = paper.scenarios[name]
    path = Path(f"{paper.places[name]}: scenarios.{name}")
    settings: list[Setting] = []
    if place.suite is None:
        document = {**place.document}
    elif place.suite in shipped():
        document = deepcopy(_document(shipped()[place.suite]))
        scales = document.get("scales", {scale: {}})
        if scale not in scales:
            raise UserError(
                f"{path}.scales.{scale}: unknown scale of suite {place.suite}. Available: {', '.join(scales)}"
            )
        settings += take_scale(shipped()[place.suite], document, scale if "scale" in document else None)[1]
    else:
        raise UserError(f"{path}.suite: unknown suite '{place.suite}'{nearest(place.suite, shipped())}")
    document["name"] = name
    for source, changes in (("set", place.set), (f"scales.{scale}", place.scales[scale])):
        settings += [Setting(split(key), value, f"{path}.{source}.") for key, value in changes.items()]
    if seeds is not None:
        settings.append(Setting(("seeds",), list(seeds), f"{path}: "))
    with guarded("a claims file names it"):
        return build(path, document, settings)


@cache
def _document(path: Path) -> dict[str, Any]:
    """Return a shipped suite as written, read only once for all numbers of seeds."""
    return read(path)


def matches(spec: Mapping[str, Any], condition: Mapping[str, Any]) -> bool:
    """Return whether a document has the required value at each of the dotted keys."""
    return all(contains(_value_at(spec, key), expected) for key, expected in condition.items())


def _value_at(node: Any, key: str) -> Any:
    for step in split(key):
        node = node.get(step) if isinstance(node, dict) else None
    return node


def contains(actual: Any, expected: Any) -> bool:
    """Return whether a value matches: mappings may have more keys, parts match by name, 80 matches '80'."""
    if isinstance(actual, dict):
        if not isinstance(expected, dict):
            return actual.get("name") == expected
        return all(key in actual and contains(actual[key], inner) for key, inner in expected.items())
    if isinstance(actual, list) and isinstance(expected, list):
        return len(actual) == len(expected) and all(map(contains, actual, expected))
    if isinstance(actual, bool) or isinstance(expected, bool) or actual is None or expected is None:
        return actual is expected
    if isinstance(actual, list) or isinstance(expected, list | dict):
        return False
    return actual == expected or _number(actual) == _number(expected) is not None


@cache
def _number(value: float | str) -> Fraction | None:
    try:
        return exact(value)
    except ValueError:
        return None


def mistakes(papers: Iterable[Paper]) -> list[str]:
    """Return the mistakes in scenarios and samples at any scale, each once; nothing is run."""
    lines: dict[str, None] = {}
    for paper in papers:
        plans = {scale: ClaimPlan(paper, scale, ()) for scale in SCALES}
        for claim in paper.claims.values():
            for scale in paper.scales(claim):
                try:
                    plans[scale].picked(claim)
                except UserError as error:
                    lines |= dict.fromkeys(error.lines)
    return list(lines)
