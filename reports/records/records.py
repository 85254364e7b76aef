"""What MLflow holds of a suite, as plain data: runs, the centralised baseline, scenarios."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from math import inf, isfinite, isnan, nan

import numpy as np
import pandas as pd

from benchmarks.tracking.reader import Entry
from fl_core.keys import is_older
from fl_core.metrics import SURROGATE, Metric, from_text
from fl_core.schema import DIAGNOSED, NETWORK, OF_BUDGET, OF_STRATEGY, SEED, Clock, Status, Tag
from fl_core.text import many, natural
from reports.records.measures import Measure, measure
from reports.records.steps import first_reach
from reports.records.studies import RecordedStudy
from reports.records.summary import Reach, Spread
from reports.records.values import clean, moment, number, parsed

# Begins of the names of parameters with which bytes matter
OF_BYTES = (NETWORK, *(f"{OF_STRATEGY}{way}." for way in ("uplink", "downlink")), f"{OF_BUDGET}{Clock.BYTES}")

# Shared by all runs without files: each takes a tenth of a millisecond to make
NO_ROWS, NO_UPDATES, NO_COUNTS = pd.DataFrame(), pd.Series(dtype=int), np.zeros(0, int)


@dataclass(frozen=True, slots=True, eq=False)
class Files:
    """The contents of a run's artifacts; missing ones are empty."""

    curve: (
        pd.DataFrame
    )  # one row per evaluation: iteration, updates, time, uploads_bytes, …, then metrics by name
    clients: pd.DataFrame  # one row per client: client, importance, mean_time, size, loss, accuracy
    staleness: pd.Series  # updates of each staleness that occurred, by staleness
    participation: np.ndarray  # [client], updates of each client
    unread: str = ""  # why a file that should be there could not be read
    diagnostics: pd.DataFrame = field(default_factory=pd.DataFrame)  # one row per diagnosed server iteration

    @classmethod
    def none(cls, unread: str = "") -> Files:
        """Return no files at all."""
        return cls(NO_ROWS, NO_ROWS, NO_UPDATES, NO_COUNTS, unread, NO_ROWS)


@dataclass(frozen=True, slots=True, eq=False)
class RecordedRun:
    """One seed of one strategy in one scenario."""

    id: str  # MLflow's
    key: str
    scenario: str
    problem: str
    partition: str
    timing: str
    strategy: str
    paper: str
    seed: int
    status: Status
    reason: str
    metric: str
    higher_is_better: bool
    target: float | None
    show: tuple[str, ...]  # metrics that the suite shows first
    params: Mapping[str, str]
    totals: Mapping[str, float]  # metrics of the whole run by name: kept_bytes/server, staleness/mean, …
    started: datetime | None
    ended: datetime | None
    wall_seconds: float
    version: str
    commit: str
    versions: Mapping[str, str]
    data: Mapping[str, str]
    execution: str
    machine: str
    repository: str = ""  # commit of the repository in which the run was started
    processor: str = ""
    device: str = ""
    code: Mapping[str, str] = field(default_factory=dict)  # user's own classes → file and its digest
    superseded: bool = False  # the runner marked it as replaced by other runs of the same names
    metrics: tuple[Metric, ...] = ()  # as declared; none for runs older than the declarations
    folder: str = ""  # where its files lie, by MLflow's address
    files: Files = field(default_factory=Files.none)

    @classmethod
    def of_entry(cls, entry: Entry) -> RecordedRun:
        """Return a run from what MLflow says of it, of which much may be invalid; files come later."""

        def read(tag: Tag, otherwise: str = "") -> str:
            return clean(entry.tags.get(tag, "")) or otherwise

        def texts(tag: Tag) -> dict[str, str]:
            return {name: str(value) for name, value in parsed(read(tag), {}).items()}

        return cls(
            id=entry.run_id,
            key=read(Tag.KEY),
            scenario=read(Tag.SCENARIO),
            problem=read(Tag.PROBLEM),
            partition=read(Tag.PARTITION),
            timing=read(Tag.TIMING),
            strategy=read(Tag.STRATEGY),
            paper=read(Tag.PAPER),
            seed=int(read(Tag.SEED)),
            status=Status(read(Tag.STATUS)),
            reason=read(Tag.REASON),
            metric=read(Tag.METRIC),
            higher_is_better=read(Tag.HIGHER_IS_BETTER, "true").lower() != "false",
            target=number(read(Tag.TARGET)),
            show=tuple(name for part in read(Tag.SHOW).split(",") if (name := part.strip())),
            params={name: clean(value) for name, value in entry.params.items()},
            totals=dict(entry.metrics),
            started=moment(entry.start_time),
            ended=moment(entry.end_time),
            wall_seconds=number(read(Tag.WALL_SECONDS)) or 0.0,
            version=read(Tag.VERSION),
            commit=read(Tag.COMMIT),
            versions=texts(Tag.VERSIONS),
            data=texts(Tag.DATA),
            code=texts(Tag.CODE),
            execution=read(Tag.EXECUTION),
            machine=read(Tag.MACHINE),
            repository=read(Tag.REPOSITORY),
            processor=read(Tag.PROCESSOR),
            device=read(Tag.DEVICE),
            superseded=bool(read(Tag.SUPERSEDED)),
            metrics=from_text(read(Tag.METRICS)),
            folder=entry.artifact_uri,
        )

    def measure(self, name: str) -> Measure:
        """Return a metric of the run."""
        return measure(name, self.metrics, self.higher_is_better if name == self.metric else None)

    @property
    def budget_clock(self) -> Clock | None:
        """The clock of its budget, at whose marks it was evaluated; None if the budget has several."""
        clocks = [clock for clock in Clock if f"{OF_BUDGET}{clock.budget}" in self.params]
        return clocks[0] if len(clocks) == 1 else None

    @property
    def outdated(self) -> bool:
        """Whether it was recorded by an earlier version with different results."""
        return is_older(self.key)

    def with_files(self, files: Files) -> RecordedRun:
        """Return the run with its files; unreadable if it ended with a model, and its curve is not there."""
        lost = self.status.finite and files.curve.empty
        return replace(self, files=files, status=Status.UNREADABLE if lost else self.status)

    @property
    def whole(self) -> bool:
        """Whether its outcome is known and all of its files were read."""
        return self.status.terminated and not self.files.unread

    @property
    def diagnosed(self) -> bool:
        """Whether it left diagnostics beside its curve."""
        return any(name.startswith(DIAGNOSED) for name in self.totals)

    def final(self, metric: str) -> float:
        """Return the metric at the last evaluation; NaN where it was not recorded, or is not finite."""
        curve = self.files.curve
        last = float(curve[metric].iloc[-1]) if metric in curve and len(curve) else nan
        return last if isfinite(last) else nan


def time_to_target(run: RecordedRun, clock: str, target: float | None) -> float:
    """Return the clock when a run's metric first reached the target; ∞ if never, or without a target.

    NaN where the clock was not recorded.
    """
    curve = run.files.curve
    if target is None or run.metric not in curve:
        return inf
    if clock not in curve:
        return nan  # recorded before there was this clock
    return first_reach(
        curve[clock].to_numpy(), curve[run.metric].to_numpy(), target, higher=run.higher_is_better
    )


@dataclass(frozen=True, slots=True)
class Pooled:
    """The centralised baseline: one model trained on all clients' data together."""

    problem: str
    seed: int
    metrics: Mapping[str, float]


@dataclass(frozen=True, eq=False)
class Cell:
    """One strategy in one scenario: its seeds, and what they come to.

    Final values are those of the runs that ended, and of those that stalled: their model would
    not change any more. A run that diverged is counted apart; a target that it had not met until then
    counts as never met. Runs that failed or are still running are neither.
    """

    strategy: str
    index: int  # of the strategy in the suite: its colour, dash and marker
    runs: tuple[RecordedRun, ...]
    metrics: tuple[Measure, ...] = ()  # of the scenario
    target: float | None = None

    @property
    def finite(self) -> tuple[RecordedRun, ...]:
        """The runs that ended with a model, stalled ones included."""
        return tuple(run for run in self.runs if run.status.finite)

    def having(self, status: Status) -> tuple[RecordedRun, ...]:
        """Return the runs of a status."""
        return tuple(run for run in self.runs if run.status is status)

    @property
    def diverged(self) -> int:
        """How many seeds diverged."""
        return len(self.having(Status.DIVERGED))

    @property
    def stalled(self) -> int:
        """How many seeds stalled."""
        return len(self.having(Status.STALLED))

    @property
    def seeds(self) -> str:
        """The number of runs, and what is special of some: '3', or '3 (1 diverged)'."""
        counts = {
            "diverged": self.diverged,
            "stalled": self.stalled,
            "unfinished": sum(run.status.unfinished for run in self.runs),
            "unreadable": len(self.having(Status.UNREADABLE)),
        }
        exceptions = ", ".join(f"{n} {what}" for what, n in counts.items() if n)
        return f"{len(self.runs)} ({exceptions})" if exceptions else str(len(self.runs))

    @cached_property
    def final(self) -> dict[str, Spread]:
        """Final values by metric."""
        return {
            metric.name: Spread.of([run.final(metric.name) for run in self.finite]) for metric in self.metrics
        }

    def reach(self, clock: str) -> Reach:
        """Return when the ended runs met the scenario's target."""
        ended = [run for run in self.runs if run.status.terminated]
        return Reach.of_times([time_to_target(run, clock, self.target) for run in ended])

    @cached_property
    def staleness(self) -> tuple[float, float]:
        """The mean, over updates and then over seeds, and the greatest; NaN without an update."""
        met = [run.files.staleness for run in self.runs if run.status.terminated]
        met = [counts for counts in met if counts.sum()]
        if not met:
            return nan, nan
        means = [np.average(counts.index, weights=counts) for counts in met]
        return float(np.mean(means)), float(max(counts.index[-1] for counts in met))


@dataclass(frozen=True, eq=False)
class RecordedScenario:
    """Problem × timing × budget, with every strategy that ran on it."""

    label: str
    place: int  # among the suite's, from 1: its name in links and in the picker
    problem: str
    cells: tuple[Cell, ...]
    metric: Measure  # the one that has a target
    target: float | None
    columns: tuple[Measure, ...]  # of the ranking; the first one ranks
    shown: tuple[Measure, ...]  # those with curves
    pooled: Mapping[str, tuple[float, ...]]  # metric → one value per seed

    @cached_property
    def ranked(self) -> list[Cell]:
        """The strategies, best first; those with diverged runs follow those without."""
        ranks = self.columns[0]
        sign = -1 if ranks.higher else 1

        def rank(cell: Cell) -> tuple[bool, bool, float]:
            mean = cell.final[ranks.name].mean
            return bool(cell.diverged), isnan(mean), sign * mean

        return sorted(self.cells, key=rank)

    def measure(self, name: str) -> Measure:
        """Return a metric of its runs."""
        return self.metric if name == self.metric.name else self.runs[0].measure(name)

    @property
    def runs(self) -> list[RecordedRun]:
        """All runs of all cells."""
        return [run for cell in self.cells for run in cell.runs]

    @property
    def clocks(self) -> list[Clock]:
        """The clocks that figures have as axes; bytes where messages are coded, take time, or end a run."""
        runs = [run for run in self.runs if not run.files.curve.empty]
        bytes_matter = any(name.startswith(OF_BYTES) for run in runs for name in run.params)
        recorded = all(Clock.BYTES in run.files.curve for run in runs)
        return [clock for clock in Clock if clock is not Clock.BYTES or (bytes_matter and recorded)]

    @property
    def lacks_surrogate(self) -> bool:
        """Whether some run has no loss on the surrogate problem, which the suite asks for."""
        return any(
            name in SURROGATE and name not in run.files.curve
            for run in self.runs
            if run.status.finite and run.whole
            for name in (*run.show, run.metric)
        )


@dataclass(frozen=True, eq=False)
class RecordedSuite:
    """Everything recorded under one name."""

    name: str
    uri: str  # of the tracking store, without credentials
    experiment: str = ""  # MLflow's id of it
    description: str = ""
    runs: tuple[RecordedRun, ...] = ()
    pooled: tuple[Pooled, ...] = ()
    older: tuple[
        RecordedRun, ...
    ] = ()  # replaced by later runs: of other hyper-parameters, or an earlier version
    studies: tuple[RecordedStudy, ...] = ()  # of its tuning campaign
    campaign: str = ""  # the suite whose campaign found its values, where it ran as a tuned variant of that
    highlight: tuple[str, ...] = ()  # strategies that the suite picks out
    damaged: tuple[str, ...] = ()  # runs and trials that are left out, and what is wrong with their records

    @cached_property
    def strategies(self) -> list[str]:
        """The strategies in the order of the alphabet: an index here is a colour everywhere."""
        return sorted({run.strategy for run in self.runs}, key=natural)

    @cached_property
    def seeds(self) -> list[int]:
        """All seeds."""
        return sorted({run.seed for run in self.runs})

    @property
    def missing(self) -> int:
        """Number of missing runs whose seed other strategies or scenarios have."""
        cells = {(run.scenario, run.strategy) for run in self.runs}
        return len(cells) * len(self.seeds) - len(self.runs)

    @property
    def unread(self) -> tuple[RecordedRun, ...]:
        """Runs that ended and left files that cannot be read."""
        return tuple(run for run in self.runs if run.files.unread and not run.status.unfinished)

    @property
    def shown(self) -> int:
        """How many runs ended and left files that can be read."""
        return sum(run.whole for run in self.runs)

    @property
    def outdated(self) -> str:
        """One sentence on the runs of an earlier version; empty if there are none."""
        left_out = sum(run.outdated for run in self.older)
        if any(run.outdated for run in self.runs):
            return "Recorded by an earlier version of asyncfl: asyncfl run computes all of it anew."
        if left_out:
            return f"Left out: {many(left_out, 'run')} of an earlier version of asyncfl."
        return ""

    def address(self, run: str, experiment: str = "") -> str:
        """Return where MLflow shows a run of this or another experiment; empty without a server."""
        if not self.uri.startswith(("http://", "https://")):
            return ""
        return f"{self.uri.rstrip('/')}/#/experiments/{experiment or self.experiment}/runs/{run}"

    def scenarios(self, index: Mapping[str, int] | None = None) -> list[RecordedScenario]:
        """Return the runs by scenario and strategy; strategies have the given indices, if any."""
        index = index or {strategy: at for at, strategy in enumerate(self.strategies)}
        labels = sorted({run.scenario for run in self.runs}, key=natural)
        return [self._scenario(label, place, index) for place, label in enumerate(labels, 1)]

    def _scenario(self, label: str, place: int, index: Mapping[str, int]) -> RecordedScenario:
        runs = [run for run in self.runs if run.scenario == label]
        first = runs[0]
        seeds = sorted(runs, key=lambda run: run.seed)
        recorded = {name for run in runs for name in run.files.curve.columns}
        own = first.measure(first.metric)
        wanted = [first.measure(name) for name in first.show]
        shown = tuple(metric for metric in wanted if metric.name in recorded) or (own,)
        worst = first.measure(own.worst_client.name)
        columns = tuple(dict.fromkeys((*shown, own, *([worst] if worst.name in recorded else []))))
        if columns[0].higher is None:
            columns = tuple(dict.fromkeys((own, *columns)))  # a metric without a direction cannot rank
        by_strategy = {name: tuple(run for run in seeds if run.strategy == name) for name in self.strategies}
        cells = tuple(
            Cell(name, index[name], of_name, (*columns, *shown), first.target)
            for name, of_name in by_strategy.items()
            if of_name
        )
        pooled = [baseline.metrics for baseline in self.pooled if baseline.problem == first.problem]
        names = {name for metrics in pooled for name in metrics}
        values = {name: tuple(metrics[name] for metrics in pooled if name in metrics) for name in names}
        return RecordedScenario(label, place, first.problem, cells, own, first.target, columns, shown, values)


def latest(runs: Iterable[RecordedRun]) -> tuple[tuple[RecordedRun, ...], tuple[RecordedRun, ...]]:
    """Return runs to report, and older ones that they replace.

    A suite that was edited leaves runs of the same scenario, strategy and seed, but with other
    hyper-parameters. They are not additional seeds: runs that the runner marks as superseded are left out,
    and of each scenario and strategy all runs of the description started last are taken. Runs of an earlier
    version are reported only where there are no others.
    """
    everything = sorted(runs, key=lambda run: (run.started or datetime.min.replace(tzinfo=UTC), run.id))
    renewed = not all(run.outdated for run in everything)
    older: list[RecordedRun] = []
    by_age: list[RecordedRun] = []
    for run in everything:
        (older if run.superseded or (renewed and run.outdated) else by_age).append(run)
    newest = {(run.scenario, run.strategy): run for run in by_age}
    kept: dict[tuple[str, str, int], RecordedRun] = {}
    for run in by_age:
        if not alike(run, newest[run.scenario, run.strategy]):
            older.append(run)
            continue
        place = (run.scenario, run.strategy, run.seed)
        if place in kept:
            older.append(kept[place])
        kept[place] = run
    return tuple(kept.values()), tuple(older)


def alike(run: RecordedRun, other: RecordedRun) -> bool:
    """Return whether runs differ in seeds alone; of two versions of the code one may record more."""
    ours, theirs = run.params.keys() - {SEED}, other.params.keys() - {SEED}
    names = ours | theirs if run.commit == other.commit else ours & theirs
    return all(run.params.get(name) == other.params.get(name) for name in names)
