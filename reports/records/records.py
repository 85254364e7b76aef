"""Records of a suite in MLflow as plain data and as tables: scenarios, the centralised baseline, runs.

`suite_reader.load` returns a `RecordedSuite`; sections of the page use its scenarios, and `asyncfl.results`
its tables.

Fixed: columns of the three tables at the end, which are public, and which runs count as replaced.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from math import isnan, nan
from typing import Any
from urllib.parse import quote

import numpy as np
import pandas as pd

from benchmarks.colours import slots
from benchmarks.mlflow_store import views
from benchmarks.mlflow_store.database import UI_HOST, UI_PORT
from benchmarks.mlflow_store.run_result import TOTALS, Columns, RunResult
from fl_core.metrics import SURROGATE
from fl_core.recorded_names import (
    NETWORK,
    OF_BUDGET,
    OF_STRATEGY,
    SEED,
    TO_TARGET,
    VARIANT,
    Clock,
    Name,
    untuned,
)
from fl_core.text import natural
from reports.numbers import Measure, measure_of
from reports.records.seed_summaries import Cell
from reports.records.studies import RecordedStudy

# Prefixes of the names of parameters that make bytes worth a figure
BYTES_PREFIXES = (
    NETWORK,
    f"{OF_STRATEGY}uplink.",
    f"{OF_STRATEGY}downlink.",
    f"{OF_BUDGET}{Clock.BYTES}",
)


@dataclass(frozen=True, eq=False)
class RecordedScenario:
    """Problem × timing × budget, with the runs of every strategy."""

    label: str
    place: int  # number in the suite, from 1, for links and for the picker of scenarios
    problem: str
    cells: tuple[Cell, ...]
    metric: Measure  # the problem's metric, which has the target
    target: float | None
    columns: tuple[Measure, ...]  # of the ranking; the first one ranks
    shown: tuple[Measure, ...]  # metrics with figures of curves
    pooled: Mapping[str, tuple[float, ...]]  # metric → one value per seed

    @cached_property
    def ranked(self) -> list[Cell]:
        """Cells of the strategies, best first; strategies with diverged runs follow."""
        ranks = self.columns[0]
        sign = -1 if ranks.higher else 1

        def rank(cell: Cell) -> tuple[bool, bool, float]:
            mean = cell.final[ranks.name].mean
            return bool(cell.diverged), isnan(mean), sign * mean

        return sorted(self.cells, key=rank)

    @property
    def conditions(self) -> tuple[str, ...]:
        """Parts of the scenario's label: problem, partition, timing, and further distinctions."""
        return self.runs[0].conditions

    def with_index(self, index: Mapping[str, int]) -> RecordedScenario:
        """Return the scenario with other indices of the strategies."""
        return replace(self, cells=tuple(replace(cell, index=index[cell.strategy]) for cell in self.cells))

    def measure(self, name: str) -> Measure:
        """Return a metric of the scenario's runs."""
        return self.metric if name == self.metric.name else measure_of(self.runs[0], name)

    @cached_property
    def runs(self) -> list[RunResult]:
        """All runs of all cells."""
        return [run for cell in self.cells for run in cell.runs]

    @cached_property
    def clocks(self) -> list[Clock]:
        """Clocks for axes of figures.

        Bytes only if messages are coded, take time, or end a run; energy only if the power of clients is
        given.
        """
        runs = [run for run in self.runs if run.files.curve]
        names = set().union(*(run.params for run in runs))
        bytes_matter = any(name.startswith(BYTES_PREFIXES) for name in names)
        optional = {Clock.BYTES: bytes_matter, Clock.ENERGY: bool(runs)}
        return [
            clock
            for clock in Clock
            if optional.get(clock, True)
            and (clock not in optional or all(clock in run.files.curve for run in runs))
        ]

    def axis_title(self, clock: Clock) -> str:
        """Return the clock as an axis title, with the unit of virtual time if known from a trace."""
        unit = self.runs[0].time_unit if clock is Clock.TIME else ""
        return f"{clock.heading}{f' ({unit})' if unit else ''}"

    def evaluation_step(self, clock: str) -> float:
        """Return the median distance between evaluations on a clock; NaN without two evaluations."""
        curves = [run.files.curve[clock] for run in self.runs if clock in run.files.curve]
        steps = np.concatenate([np.diff(curve) for curve in curves]) if curves else np.zeros(0)
        return float(np.median(steps[steps > 0])) if (steps > 0).any() else nan

    @property
    def lacks_surrogate(self) -> bool:
        """True if any run lacks a loss on the surrogate problem requested by the suite."""
        return any(
            name in SURROGATE and name not in run.files.curve
            for run in self.runs
            if run.status.finite and run.whole
            for name in (*run.show, run.metric)
        )


@dataclass(frozen=True, eq=False)
class RecordedSuite:
    """All records under the name of a suite."""

    name: str
    uri: str  # of the tracking store, without credentials
    experiment: str = ""  # MLflow's id of the experiment with the runs
    description: str = ""
    runs: tuple[RunResult, ...] = ()
    pooled: tuple[RunResult, ...] = ()  # centralised baselines
    older: tuple[RunResult, ...] = ()  # replaced by later runs, for example with other hyper-parameters
    studies: tuple[RecordedStudy, ...] = ()  # of the suite's tuning campaign
    campaign: str = ""  # for a tuned variant: the suite whose campaign found the values
    highlight: tuple[str, ...] = ()  # strategies drawn in ink
    damaged: tuple[str, ...] = ()  # ids of runs and trials left out, with the fault of each record

    @cached_property
    def strategies(self) -> list[str]:
        """Strategies in alphabetical order; the index of a strategy is a colour everywhere."""
        return sorted({run.strategy for run in self.runs}, key=natural)

    @cached_property
    def seeds(self) -> list[int]:
        """All seeds."""
        return sorted({run.seed for run in self.runs})

    @property
    def missing(self) -> int:
        """Number of runs missing from the grid of scenarios, strategies and seeds."""
        cells = {(run.scenario, run.strategy) for run in self.runs}
        return len(cells) * len(self.seeds) - len(self.runs)

    @property
    def unread(self) -> tuple[RunResult, ...]:
        """Ended runs with unreadable files."""
        return tuple(run for run in self.runs if run.files.unread and not run.status.unfinished)

    @property
    def shown(self) -> int:
        """Number of ended runs with readable files."""
        return sum(run.whole for run in self.runs)

    @cached_property
    def unequal_budgets(self) -> str:
        """Sentence on a scenario with different budgets of strategies; empty without any."""
        budgets: dict[str, dict[str, str]] = {}  # by scenario and strategy, whose runs differ in seeds alone
        for run in {(run.scenario, run.strategy): run for run in self.runs}.values():
            limits = [
                f"{name.removeprefix(OF_BUDGET)} {value}"
                for name, value in run.params.items()
                if name.startswith(OF_BUDGET)
            ]
            budgets.setdefault(run.scenario, {})[run.strategy] = ", ".join(limits)
        for scenario, limited in budgets.items():
            if len(set(limited.values())) > 1:
                text = "; ".join(f"{strategy}: {limits}" for strategy, limits in limited.items())
                return f"{scenario}: strategies with different budgets, which do not compare: {text}."
        return ""

    @property
    def untuned(self) -> str:
        """Caveat for a scenario with a single rate for all strategies; empty with tuned values."""
        if self.name.endswith(VARIANT):
            return ""
        rate = f"{OF_STRATEGY}local_lr"
        return untuned(
            (run.scenario, run.strategy, run.params[rate]) for run in self.runs if rate in run.params
        )

    @cached_property
    def unequal_data(self) -> str:
        """Sentence on a scenario with different data for strategies under a seed; empty without any."""
        met: dict[tuple[str, int], set[frozenset[tuple[str, str]]]] = {}
        for run in self.runs:
            if run.data:
                met.setdefault((run.scenario, run.seed), set()).add(frozenset(run.data.items()))
        different = [place for place, data in met.items() if len(data) > 1]
        if not different:
            return ""
        scenario, seed = min(different)
        return (
            f"{scenario}, seed {seed}: strategies met different data, as digests show: what draws data at "
            "random must draw the same in every process."
        )

    @property
    def on_server(self) -> bool:
        """True if an MLflow server keeps the records."""
        return self.uri.startswith(("http://", "https://"))

    def address(self, run: str, experiment: str = "") -> str:
        """Return the address of a run on a server, or in asyncfl ui; by default in the suite's experiment."""
        server = self.uri.rstrip("/") if self.on_server else f"http://{UI_HOST}:{UI_PORT}"
        return f"{server}/#/experiments/{quote(experiment or self.experiment)}/runs/{quote(run)}"

    def runs_address(self, experiment: str) -> str:
        """Return the address of all runs of an experiment."""
        server = self.uri.rstrip("/") if self.on_server else f"http://{UI_HOST}:{UI_PORT}"
        return f"{server}/{views.page(quote(experiment), mode='TABLE')}"

    def scenarios(self, index: Mapping[str, int] | None = None) -> list[RecordedScenario]:
        """Return the runs by scenario and strategy; strategies have the given indices, if any."""
        index = index or slots(self.strategies)
        by_label: dict[str, list[RunResult]] = {}
        for run in self.runs:
            by_label.setdefault(run.scenario, []).append(run)
        labels = sorted(by_label, key=natural)
        return [self._scenario(by_label[label], place, index) for place, label in enumerate(labels, 1)]

    def _scenario(self, runs: Sequence[RunResult], place: int, index: Mapping[str, int]) -> RecordedScenario:
        """Return a scenario from its runs: cells, metrics of tables and figures, and the baseline."""
        first = runs[0]
        by_strategy: dict[str, list[RunResult]] = {name: [] for name in self.strategies}
        for run in sorted(runs, key=lambda run: run.seed):
            by_strategy[run.strategy].append(run)
        with_curves = set().union(*(run.files.curve for run in runs))
        recorded = with_curves | (TOTALS & set().union(*(run.metrics for run in runs)))
        ranking_metric = measure_of(first, first.metric)
        requested = [measure_of(first, name) for name in first.show]
        requested = [metric for metric in requested if metric.name in recorded] or [ranking_metric]
        shown = tuple(metric for metric in requested if metric.name in with_curves) or (ranking_metric,)
        worst = measure_of(first, ranking_metric.worst_client.name)
        columns = tuple(
            dict.fromkeys((*requested, ranking_metric, *([worst] if worst.name in recorded else [])))
        )
        if columns[0].higher is None:
            # A metric without a direction cannot rank.
            columns = tuple(dict.fromkeys((ranking_metric, *columns)))
        cells = tuple(
            Cell(name, index[name], tuple(of_name), (*columns, *shown), first.target)
            for name, of_name in by_strategy.items()
            if of_name
        )
        pooled = [baseline.metrics for baseline in self.pooled if baseline.problem == first.problem]
        names = {name for metrics in pooled for name in metrics}
        values = {name: tuple(metrics[name] for metrics in pooled if name in metrics) for name in names}
        return RecordedScenario(
            first.scenario,
            place,
            first.problem,
            cells,
            ranking_metric,
            first.target,
            columns,
            shown,
            values,
        )


def latest(runs: Iterable[RunResult]) -> tuple[tuple[RunResult, ...], tuple[RunResult, ...]]:
    """Return the runs to report, and the older runs replaced by newer runs.

    A suite that was edited leaves runs of the same scenario, strategy and seed, but with other
    hyper-parameters. They are not additional seeds: runs that the runner marks as superseded are left out,
    and of each scenario and strategy all runs of the description started last are taken.
    """
    everything = sorted(runs, key=lambda run: (run.start_time, run.run_id))
    older: list[RunResult] = []
    by_age: list[RunResult] = []
    for run in everything:
        (older if run.superseded else by_age).append(run)
    newest = {(run.scenario, run.strategy): run for run in by_age}
    current: dict[tuple[str, str, int], RunResult] = {}
    for run in by_age:
        if not differ_in_seed_only(run, newest[run.scenario, run.strategy]):
            older.append(run)
            continue
        place = (run.scenario, run.strategy, run.seed)
        if place in current:
            older.append(current[place])
        current[place] = run
    return tuple(current.values()), tuple(older)


def differ_in_seed_only(run: RunResult, candidate: RunResult) -> bool:
    """Return whether runs differ in seeds alone; between commits, only common parameters count."""
    if {**run.params, SEED: ""} == {**candidate.params, SEED: ""}:
        return True  # a short way for nearly all pairs of runs
    ours, theirs = run.params.keys() - {SEED}, candidate.params.keys() - {SEED}
    names = ours | theirs if run.commit == candidate.commit else ours & theirs
    return all(run.params.get(name) == candidate.params.get(name) for name in names)


FROM_CURVE = {*TO_TARGET, *(clock.metric for clock in Clock)}  # metrics that tables compute from the curve
LABELS = ("scenario", "strategy", "seed")


def run_table(suite: RecordedSuite) -> pd.DataFrame:
    """Return a table with a row per run: labels, outcome, and every metric at the end.

    `updates_to_target`, `time_to_target` and `bytes_to_target` are ∞ where the target was not reached, and
    absent without one.
    Hyper-parameters, and keys of the scenario, have a column each where they differ between runs.
    """
    if not suite.runs:
        return pd.DataFrame(columns=["suite", *LABELS])
    rows, differ = [_row(suite, run) for run in suite.runs], _differing([run.params for run in suite.runs])
    table = pd.DataFrame(rows).assign(**differ)
    table = table[[*dict.fromkeys([*rows[0], *differ, *table])]]
    return table.sort_values([*LABELS], kind="stable", ignore_index=True)


def curve_table(suite: RecordedSuite) -> pd.DataFrame:
    """Return a table with a row per evaluation: labels of the run, clocks, every evaluated metric."""
    curves = ((run, run.files.curve) for run in suite.runs)
    return _stacked(curves, [clock.value for clock in Clock])


def client_table(suite: RecordedSuite) -> pd.DataFrame:
    """Return a table with a row per client of each run: labels of the run, id, and all recorded columns."""
    clients = ((run, run.files.clients) for run in suite.runs)
    return _stacked(clients, [Name.CLIENT, Name.DEVICE])


def _stacked(tables: Iterable[tuple[RunResult, Columns]], names: Sequence[str]) -> pd.DataFrame:
    """Return the tables of all runs as a single table; the labels of the run and `names` come first."""
    first = [*LABELS, *names]
    parts = [
        pd.DataFrame({**columns, **{label: getattr(run, label) for label in LABELS}})
        for run, columns in tables
        if columns
    ]
    table = pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=first)
    first = [name for name in first if name in table]  # joules only where power is known, ids where given
    table = table[[*first, *(name for name in table if name not in first)]]
    return table.sort_values([*LABELS], kind="stable", ignore_index=True)


def _row(suite: RecordedSuite, run: RunResult) -> dict[str, object]:
    """Return a run's row of `run_table`, without parameters."""
    curve = run.files.curve
    computed = {*curve, *FROM_CURVE}
    clocks = TO_TARGET if run.target is not None else {}
    to_target = {
        name: run.time_to_target(clock, run.target)
        for name, clock in clocks.items()
        if clock in curve or not curve
    }
    return {
        "suite": suite.name,
        **{label: getattr(run, label) for label in LABELS},
        "problem": run.problem,
        "partition": run.partition,
        "timing": run.timing,
        "status": str(run.status),
        "reason": run.reason,
        **{name: values[-1].item() for name, values in curve.items()},
        **to_target,
        **{name: value for name, value in run.metrics.items() if name not in computed},
        "key": run.key,
    }


def _differing(params: Sequence[Mapping[str, str]]) -> dict[str, list[Any]]:
    """Return a value for each run of the parameters that differ, as numbers where all values are."""
    columns = {}
    for name in dict.fromkeys(chain.from_iterable(params)):
        texts = [of_run.get(name, nan) for of_run in params]
        if name != SEED and len(set(texts)) > 1:
            values = pd.Series(texts, dtype="object")
            numbers = pd.to_numeric(values, errors="coerce")
            columns[name] = (numbers if numbers.notna().equals(values.notna()) else values).tolist()
    return columns
