"""Scores of a board: times to target, intervals and rank groups in each population of clients."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import exp, inf, log, nan

import numpy as np
import pandas as pd

from fl_core.streams import stream
from fl_core.time_to_target import time_to_target
from reports.inference import LEVEL, spearman
from reports.leaderboard.board_tables import BoardTables, numbers
from reports.leaderboard.rank_groups import GroupRange, PopulationBoard, rank_groups

REFERENCE = "FedAvg"  # whose median time is the unit
COPY = " (copy)"  # ends the label of a copy of an entry, tuned by studies of its own
RESAMPLES = 2000
OF_BEST = 0.98  # of the best median at the end: a second target
DISTANCES = (0.9, 0.95, 1.05)  # from the first model to the target, at which the order is looked at again
TRIALS = (6, 12, 24)  # of a study; beside them all trials of all studies
FEW = 5  # evaluations, in which a time to target is known roughly
LAST = 1e9  # in place of the log of an endless time, where ranks alone count
ROUNDING = 5e-5  # of the values of a stored curve


@dataclass(frozen=True)
class ScenarioGoal:
    """Where the runs of a scenario end, and what they are to reach."""

    budget: float  # virtual time
    target: float  # of the metric
    marks: int = 1  # successive evaluations whose mean has to meet it
    metric: str = "Metric"  # its title
    workload: str = ""  # name of the problem
    linear: bool = True  # whether its model is
    clients: str = ""  # their number and their data
    power: str = ""  # of clients, in words; none: energy is not counted
    tuned_in: str = ""  # of a held-out scenario: the scenario whose parameters its runs have


@dataclass(frozen=True, eq=False)
class PopulationScores:
    """The scores of all entries for a population of clients.

    Args:
        tables: The rows of the board.
        scales: The scenarios of the population that count; see `Coverage`.
        goals: Scale → its budget and target.
    """

    tables: BoardTables
    scales: Sequence[str]
    goals: Mapping[str, ScenarioGoal]

    @cached_property
    def times(self) -> dict[str, np.ndarray]:
        """Times to target of each entry [scenarios, studies, seeds], ∞ for never; of whole entries alone."""
        return self._blocks(self._finals["time"])

    @cached_property
    def _finals(self) -> pd.DataFrame:
        finals = self.tables.finals[self.tables.finals["scale"].isin(self.scales)]
        return finals.sort_values(["scale", "study", "seed"])

    @cached_property
    def _whole(self) -> list[str]:
        """Labels of the entries and copies that have all runs of the reference in every scenario."""
        by_scale = [whole_entries(self.tables, scale) for scale in self.scales]
        return sorted(set.intersection(*by_scale)) if by_scale else []

    def _blocks(self, column: pd.Series) -> dict[str, np.ndarray]:
        """Return a column of the final runs as numbers of each whole entry [scenarios, studies, seeds]."""
        finals = self._finals
        studies = finals.loc[finals["strategy"] == REFERENCE, "study"].nunique()
        shape = (len(self.scales), studies, -1)
        by_entry = column.groupby(finals["strategy"])
        return {name: by_entry.get_group(name).to_numpy(float).reshape(shape) for name in self._whole}

    @property
    def comparable(self) -> bool:
        """Return whether two entries have two studies at least, so that luck can be estimated."""
        return REFERENCE in self._whole and self.times[REFERENCE].shape[1] > 1 and len(self._distinct) > 1

    @property
    def entries(self) -> list[str]:
        """Labels of the whole entries, without copies."""
        return [name for name in self.times if not name.endswith(COPY)]

    @cached_property
    def medians(self) -> dict[str, np.ndarray]:
        """Median time of each entry, copies included, in each scenario [scenarios]."""
        return _medians(self.times)

    def sooner(self, name: str) -> float:
        """Return how many times as fast as the reference an entry is, the geometric mean over scenarios.

        0 where its median run never meets the target, NaN where the reference's does not.
        """
        return _sooner(self.medians[REFERENCE], self.medians[name])

    def interval(self, name: str) -> tuple[float, float]:
        """Return the 95 % interval of `sooner` over studies and seeds; ∞ where the reference never is."""
        rng = stream(0, "populations")
        reference, entry = self.times[REFERENCE], self.times[name]
        _, studies, seeds = entry.shape
        sampled_seeds = rng.integers(seeds, size=(1, RESAMPLES, studies, seeds))
        first, second = (
            np.median(
                np.take_along_axis(
                    times[:, rng.integers(studies, size=(RESAMPLES, studies))], sampled_seeds, axis=3
                ),
                axis=(2, 3),
            )
            for times in (reference, entry)
        )
        draws = [_sooner(first[:, at], second[:, at]) for at in range(RESAMPLES)]
        ordered = np.sort(
            np.nan_to_num(draws, nan=inf)
        )  # of values that may be infinite, none is interpolated
        out = round((1 - LEVEL) / 2 * RESAMPLES)
        return float(ordered[out]), float(ordered[-1 - out])

    def final_runs(self, name: str) -> pd.DataFrame:
        """Return the final runs of an entry in the scenarios of the population."""
        return self._finals[self._finals["strategy"] == name]

    def times_to(self, targets: Mapping[str, float]) -> dict[str, np.ndarray]:
        """Return the times to other targets, read off the learning curves [scenarios, studies, seeds].

        Args:
            targets: Scale → target of the metric, of which more is better.
        """

        def time(row: pd.Series) -> float:
            times, values = numbers(row["times"]), numbers(row["values"])
            marks = self.goals[row["scale"]].marks
            return time_to_target(times, values, targets[row["scale"]] - ROUNDING, True, marks)

        return self._blocks(self._finals.apply(time, axis=1))

    @cached_property
    def best_targets(self) -> dict[str, float]:
        """Return the second target of each scenario: `OF_BEST` of the best entry's median at the end."""
        ends = _medians(self._blocks(self._finals["values"].map(_last)))
        best = np.max([ends[name] for name in self.entries], axis=0)
        return {scale: OF_BEST * float(value) for scale, value in zip(self.scales, best, strict=True)}

    @cached_property
    def sooner_at_best(self) -> dict[str, float]:
        """Return how many times as fast as the reference each entry meets the second target."""
        medians = _medians(self.times_to(self.best_targets))
        return {name: _sooner(medians[REFERENCE], medians[name]) for name in self.entries}

    def agreement(self, distance: float) -> float:
        """Return the rank correlation with the order at another target.

        Args:
            distance: From the first model to the target, as a multiple of that to the board's target.
        """
        first = {
            scale: float(np.median([numbers(cell)[0] for cell in rows["values"]]))
            for scale, rows in self._finals.groupby("scale")
        }
        targets = {
            scale: first[scale] + distance * (self.goals[scale].target - first[scale])
            for scale in self.scales
        }
        return correlation(self.medians, _medians(self.times_to(targets)))

    def tuned_with(self, name: str, trials: int | None) -> float:
        """Return the time to target that an entry is expected to have on the tuning half with fewer trials.

        It is the median over studies and scenarios of the mean time of the best among a study's first trials;
        ∞ where that misses the target under a seed.

        Args:
            name: Label of the entry.
            trials: Number of trials; None: all of all studies.
        """
        rows = self.tables.trials
        rows = rows[rows["scale"].isin(self.scales) & (rows["strategy"] == name)]
        parts = ["scale"] if trials is None else ["scale", "study"]
        if trials is not None:
            rows = rows[rows["trial"] < trials]
        means = rows.groupby(["scale", "study", "trial"])["time"].mean()
        return float(means.groupby(parts).min().median()) if len(means) else nan

    def transferred(self, name: str, other_scales: Sequence[str]) -> float:
        """Return the time to target of the setting that was best elsewhere, on the tuning half.

        In each study, it is the trial that meets the target in most of the other scenarios, and soonest on
        average. The value is the median over studies and scenarios; NaN without trials in all of them.

        Args:
            name: Label of the entry.
            other_scales: Scenarios of other populations.
        """
        rows = self.tables.trials[self.tables.trials["strategy"] == name]
        times = rows.groupby(["scale", "study", "trial"])["time"].mean().unstack("scale")
        times = times.reindex(columns=[*self.scales, *other_scales]).dropna()
        elsewhere = times[[*other_scales]]
        order = pd.DataFrame(
            {
                "missed": np.isinf(elsewhere).sum(axis=1),
                "log": np.log(elsewhere.replace(inf, nan)).mean(axis=1),
            }
        )
        best = order.sort_values(["missed", "log"], kind="stable").groupby("study").head(1).index
        return float(np.median(times.loc[best, [*self.scales]])) if len(best) else nan

    def met(self, name: str) -> float:
        """Return the share of final runs that meet the target."""
        return float(np.isfinite(self.times[name]).mean())

    @cached_property
    def board(self) -> PopulationBoard:
        """The numbers of the entries whose median run meets the target, each once.

        An entry with the runs of another one says nothing of luck: it would only move the threshold.
        """
        return PopulationBoard(self._distinct)

    @cached_property
    def _distinct(self) -> np.ndarray:
        logs = [self._logs(name) for name in self.ranked]
        return np.unique(logs, axis=0) if logs else np.empty((0, 0, 0))

    @property
    def ranked(self) -> list[str]:
        """Labels of the entries whose median run meets the target in every scenario."""
        return [name for name in self.entries if np.isfinite(self.medians[name]).all()]

    def _logs(self, name: str) -> np.ndarray:
        ends = np.array([self.goals[scale].budget for scale in self.scales])[:, None, None]
        return np.asarray(np.log(np.minimum(self.times[name], ends)).mean(axis=2))

    @cached_property
    def identical(self) -> list[list[str]]:
        """Entries with the same final runs, to the last digit, in every scenario; lists of two or more."""
        curves = self._finals.groupby("strategy")["values"].agg("\n".join)
        by_curves: dict[str, list[str]] = {}
        for name in self.order():
            by_curves.setdefault(curves[name], []).append(name)
        return [names for names in by_curves.values() if len(names) > 1]

    @cached_property
    def spacing(self) -> dict[str, float]:
        """Virtual time between two evaluations in each scenario, the median over its final runs."""
        gaps = self._finals["times"].map(lambda cell: float(np.median(np.diff(numbers(cell)))))
        return {
            str(scale): float(of_scale.median()) for scale, of_scale in gaps.groupby(self._finals["scale"])
        }

    @property
    def early(self) -> list[str]:
        """Entries whose median run meets a target within `FEW` evaluations, soonest first."""
        spacing = np.array([self.spacing[scale] for scale in self.scales])
        return [name for name in self.order() if (self.medians[name] < (FEW + 0.5) * spacing).any()]

    @cached_property
    def copies(self) -> dict[str, float]:
        """Ratio between the times of an entry and of its copy, above 1, by label."""
        ratios = {}
        for name in self.times:
            original = name.removesuffix(COPY)
            if name.endswith(COPY) and original in self.times:
                difference = abs(float(self._logs(original).mean() - self._logs(name).mean()))
                ratios[original] = exp(difference)
        return ratios

    @property
    def resolution(self) -> float:
        """The ratio of times above which two entries are separated: by inference, and by the copies."""
        return max(self.board.resolution, *self.copies.values(), 1.0)

    @cached_property
    def groups(self) -> dict[str, GroupRange]:
        """Rank groups of each ranked entry; two entries share one if they are not told apart."""
        if len(self._distinct) < 2:
            return dict.fromkeys(self.ranked, GroupRange(1, 1))
        groups = rank_groups([self._means[name] for name in self.ranked], log(self.resolution))
        return dict(zip(self.ranked, groups, strict=True))

    @cached_property
    def _means(self) -> dict[str, float]:
        return {name: float(self._logs(name).mean()) for name in self.entries}

    @property
    def leaders(self) -> list[str]:
        """Return the entries of the first rank group that meet the target, soonest first."""
        return [name for name in self.order() if not self.never(name) and self.groups[name].first == 1]

    def never(self, name: str) -> bool:
        """Return whether the median run of an entry never meets the target."""
        return name not in self.ranked

    def order(self) -> list[str]:
        """Return the entries, soonest first; those that never meet the target last."""
        return sorted(self.entries, key=lambda name: (self.never(name), self._means[name], name))


@dataclass(frozen=True, eq=False)
class Coverage:
    """The scenarios of a board that count, and the runs that are missing.

    A scenario counts in its population if FedAvg has all studies there, and at least half as many entries are
    whole as in the population's fullest scenario: what has only begun would otherwise leave out the entries
    that are not there yet.
    """

    tables: BoardTables

    @cached_property
    def entries(self) -> dict[str, set[str]]:
        """Scenario → labels of its whole entries, without copies; of scenarios with a whole reference."""
        reference = self.tables.finals[self.tables.finals["strategy"] == REFERENCE]
        counts = reference.groupby("scale").size()
        full = [str(scale) for scale, count in counts.items() if count == counts.max()]
        return {
            scale: {name for name in whole_entries(self.tables, scale) if not name.endswith(COPY)}
            for scale in full
        }

    @cached_property
    def populations(self) -> dict[str, list[str]]:
        """Population → its scenarios that count."""
        by_population: dict[str, list[str]] = {}
        for scale in self.entries:
            by_population.setdefault(population(scale), []).append(scale)
        return {
            name: [
                scale
                for scale in scales
                if 2 * len(self.entries[scale]) >= max(len(self.entries[other]) for other in scales)
            ]
            for name, scales in by_population.items()
        }

    @property
    def begun(self) -> list[str]:
        """Scenarios with runs that do not count yet."""
        counted = {scale for scales in self.populations.values() for scale in scales}
        return [scale for scale in self.tables.scales if scale not in counted]

    def missing(self) -> dict[str, list[str]]:
        """Return the scenarios that count in which an entry is not whole, by label of the entry."""
        counted = [scale for scales in self.populations.values() for scale in scales]
        finals = self.tables.finals
        labels = {str(name) for name in finals["strategy"] if not str(name).endswith(COPY)}
        lacking = {
            name: [scale for scale in counted if name not in self.entries[scale]] for name in sorted(labels)
        }
        return {name: scales for name, scales in lacking.items() if scales}


def board_scores(tables: BoardTables, goals: Mapping[str, ScenarioGoal]) -> dict[str, PopulationScores]:
    """Return the scores of each population in which entries can be compared, without held-out scenarios."""
    by_population = Coverage(tables.of(tuned_scales(goals))).populations
    scores = {name: PopulationScores(tables, scales, goals) for name, scales in by_population.items()}
    return {name: population for name, population in scores.items() if population.comparable}


def held_out_scores(tables: BoardTables, goals: Mapping[str, ScenarioGoal]) -> dict[str, PopulationScores]:
    """Return the scores of each held-out scenario in which entries can be compared."""
    scores = {
        scale: PopulationScores(tables, [scale], goals) for scale, goal in goals.items() if goal.tuned_in
    }
    return {scale: result for scale, result in scores.items() if result.comparable}


def tuned_scales(goals: Mapping[str, ScenarioGoal]) -> list[str]:
    """Return the scenarios that are not held out."""
    return [scale for scale, goal in goals.items() if not goal.tuned_in]


def population(scale: str) -> str:
    """Return the population of a scenario: the part of its name after the workload, less `-iid`."""
    parts = scale.split("-")
    return parts[min(1, len(parts) - 1)]


def whole_entries(tables: BoardTables, scale: str) -> set[str]:
    """Return the labels of the entries and copies with as many studies and final runs as the reference."""
    finals = tables.finals[tables.finals["scale"] == scale]
    counts = finals.groupby("strategy")["study"].agg(["nunique", "size"])
    if REFERENCE not in counts.index:
        return set()
    return {str(name) for name in counts.index[(counts == counts.loc[REFERENCE]).all(axis=1)]}


def board_order(scores: Mapping[str, PopulationScores]) -> list[str]:
    """Return all entries: whole ones first, then those that meet most targets, then the soonest on average.

    The place of two entries does not depend on a third one.
    """

    def key(name: str) -> tuple[int, int, float, str]:
        populations = [population for population in scores.values() if name in population.entries]
        ratios = [population.sooner(name) for population in populations]
        logs = [log(ratio) for ratio in ratios if ratio > 0]  # not NaN
        never = sum(population.never(name) for population in populations)
        return len(scores) - len(populations), never, -float(np.mean(logs)) if logs else inf, name

    return sorted({name for population in scores.values() for name in population.entries}, key=key)


def correlation(first: Mapping[str, np.ndarray], second: Mapping[str, np.ndarray]) -> float:
    """Return Spearman's rank correlation of the entries with median times in both; NaN below six."""
    names = [name for name in first if name in second and not name.endswith(COPY)]
    if len(names) < 6:
        return nan
    with np.errstate(divide="ignore"):  # a target that the first model meets
        logs = [np.array([np.log(medians[name]).mean() for name in names]) for medians in (first, second)]
    return spearman(*(np.nan_to_num(means, posinf=LAST) for means in logs))


def _medians(times: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {name: np.median(of_entry, axis=(1, 2)) for name, of_entry in times.items()}


def _last(values: str) -> float:
    return float(np.nan_to_num(numbers(values)[-1], nan=-inf))  # of a run that diverged


def _sooner(reference: np.ndarray, times: np.ndarray) -> float:
    if not np.isfinite(reference).all():
        return nan
    return float(np.exp(np.mean(np.log(reference / times)))) if np.isfinite(times).all() else 0.0
