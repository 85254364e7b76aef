"""Scores of a board: times to target, intervals and rank groups in each population of clients.

Pages of the leaderboard, `asyncfl evidence` and `asyncfl advise` call `board_scores`. All numbers come from
`BoardTables`; rank groups are computed in `rank_groups`.

Fixed: scores, intervals and groups, to the digit: published pages, evidence and advice show them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import exp, inf, log, nan

import numpy as np
import pandas as pd

from fl_core.streams import stream
from fl_core.time_to_target import time_to_target
from reports.leaderboard.board_tables import BoardTables, numbers
from reports.leaderboard.rank_groups import GroupRange, PopulationBoard, rank_groups
from reports.statistical_inference import LEVEL, spearman

REFERENCE = "FedAvg"  # the entry whose median time is the unit of speed-ups
COPY = " (copy)"  # suffix of the label of a copy: the same entry, tuned in independent studies
RESAMPLES = 2000
OF_BEST = 0.98  # of the best median at the end: a second target
DISTANCES = (0.9, 0.95, 1.05)  # of other targets, as multiples of that from first model to target
TRIALS = (6, 12, 24)  # numbers of trials of a study in the table of tuning costs
FEW = 5  # evaluations: a time to target within so few is known roughly only
LAST = 1e9  # stands for the log of ∞ in rank correlations
ROUNDING = 5e-5  # of the values of a stored curve


@dataclass(frozen=True)
class ScenarioGoal:
    """Budget and target of a scenario, with its description for pages."""

    budget: float  # virtual time
    target: float  # of the metric
    marks: int = 1  # successive evaluations whose mean has to meet the target
    metric: str = "Metric"  # title of the metric
    workload: str = ""  # name of the problem
    linear: bool = True  # whether the model is linear
    clients: str = ""  # number and data of the clients, in words
    power: str = ""  # power of the clients, in words; empty: energy is not counted
    tuned_in: str = ""  # for a held-out scenario: the scenario from which parameters are taken


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
        """Times to target of each whole entry [scenarios, studies, seeds], ∞ for never."""
        return self._blocks(self._finals["time"])

    @cached_property
    def _finals(self) -> pd.DataFrame:
        finals = self.tables.finals[self.tables.finals["scale"].isin(self.scales)]
        return finals.sort_values(["scale", "study", "seed"])

    @cached_property
    def _whole(self) -> list[str]:
        """Labels of entries and copies with as many runs as the reference in every scenario."""
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
        """True with two or more ranked entries and studies, as needed for an estimate of luck."""
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
        """Return the speed-up of an entry over the reference, the geometric mean over scenarios.

        0 if the entry's median run misses the target, NaN if the reference's does.
        """
        return _sooner(self.medians[REFERENCE], self.medians[name])

    def interval(self, name: str) -> tuple[float, float]:
        """Return the 95 % percentile interval of `sooner`; ∞ for resamples in which the reference misses.

        Studies are resampled with replacement for each of the two by itself, seeds for both together.
        """
        rng = stream(0, "populations")
        reference, entry = self.times[REFERENCE], self.times[name]
        _, studies, seeds = entry.shape
        # [scenario, resample, study, seed] broadcasts over scenarios
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
        # Order statistics in place of quantiles: infinite values cannot be interpolated
        ordered = np.sort(np.nan_to_num(draws, nan=inf))
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
        """Return the speed-up of each entry over the reference to the second target."""
        medians = _medians(self.times_to(self.best_targets))
        return {name: _sooner(medians[REFERENCE], medians[name]) for name in self.entries}

    def agreement(self, distance: float) -> float:
        """Return the rank correlation with the order at another target.

        Args:
            distance: Multiple of the distance from the first model to the board's target.
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
        """Return the expected time to target of an entry on the tuning half with fewer trials.

        The median over studies and scenarios of the best mean time among a study's first trials; ∞ if the
        best trial misses the target under a seed.

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
        """Return the time to target, on the tuning half, of a setting chosen in other scenarios.

        In each study, the setting is the trial that meets the target in most other scenarios, and soonest on
        average. The value is the median over studies and scenarios; NaN without trials in all scenarios.

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
        """Return the fraction of an entry's final runs with a met target."""
        return float(np.isfinite(self.times[name]).mean())

    @cached_property
    def board(self) -> PopulationBoard:
        """Log times of the ranked entries, without duplicates.

        Entries with identical runs would lower the threshold without any information on luck.
        """
        return PopulationBoard(self._distinct)

    @cached_property
    def _distinct(self) -> np.ndarray:
        logs = [self._logs(name) for name in self.ranked]
        return np.unique(logs, axis=0) if logs else np.empty((0, 0, 0))

    @property
    def ranked(self) -> list[str]:
        """Labels of the entries with a median run that meets the target in every scenario."""
        return [name for name in self.entries if np.isfinite(self.medians[name]).all()]

    def _logs(self, name: str) -> np.ndarray:
        """Return the mean log time over seeds [scenarios, studies]; a missed target counts as the budget."""
        ends = np.array([self.goals[scale].budget for scale in self.scales])[:, None, None]
        return np.asarray(np.log(np.minimum(self.times[name], ends)).mean(axis=2))

    @cached_property
    def identical(self) -> list[list[str]]:
        """Groups of two or more entries with equal final runs, to the last digit, in every scenario."""
        curves = self._finals.groupby("strategy")["values"].agg("\n".join)
        by_curves: dict[str, list[str]] = {}
        for name in self.order():
            by_curves.setdefault(curves[name], []).append(name)
        return [names for names in by_curves.values() if len(names) > 1]

    @cached_property
    def spacing(self) -> dict[str, float]:
        """Virtual time between two evaluations in each scenario, median over final runs."""
        gaps = self._finals["times"].map(lambda cell: float(np.median(np.diff(numbers(cell)))))
        return {
            str(scale): float(of_scale.median()) for scale, of_scale in gaps.groupby(self._finals["scale"])
        }

    @property
    def early(self) -> list[str]:
        """Entries with a median run that meets a target within `FEW` evaluations, soonest first."""
        spacing = np.array([self.spacing[scale] for scale in self.scales])
        return [name for name in self.order() if (self.medians[name] < (FEW + 0.5) * spacing).any()]

    @cached_property
    def copies(self) -> dict[str, float]:
        """Ratio of times between entry and copy, 1 or more, by label."""
        ratios = {}
        for name in self.times:
            original = name.removesuffix(COPY)
            if name.endswith(COPY) and original in self.times:
                difference = abs(float(self._logs(original).mean() - self._logs(name).mean()))
                ratios[original] = exp(difference)
        return ratios

    @property
    def resolution(self) -> float:
        """Smallest ratio of times that separates two entries: by inference, and above that of any copies."""
        return max(self.board.resolution, *self.copies.values(), 1.0)

    @cached_property
    def groups(self) -> dict[str, GroupRange]:
        """Rank groups of each ranked entry; entries that are not separated share a group."""
        if len(self._distinct) < 2:
            return dict.fromkeys(self.ranked, GroupRange(1, 1))
        groups = rank_groups([self._means[name] for name in self.ranked], log(self.resolution))
        return dict(zip(self.ranked, groups, strict=True))

    @cached_property
    def _means(self) -> dict[str, float]:
        return {name: float(self._logs(name).mean()) for name in self.entries}

    @property
    def leaders(self) -> list[str]:
        """Ranked entries of the first rank group, soonest first."""
        return [name for name in self.order() if not self.never(name) and self.groups[name].first == 1]

    def never(self, name: str) -> bool:
        """Return whether the median run of an entry never meets the target."""
        return name not in self.ranked

    def order(self) -> list[str]:
        """Return the entries, soonest first; entries that are not ranked come last."""
        return sorted(self.entries, key=lambda name: (self.never(name), self._means[name], name))


@dataclass(frozen=True, eq=False)
class Coverage:
    """Scenarios of an unfinished board that count, and missing runs.

    A scenario counts in its population if FedAvg has all studies, and at least half as many entries are whole
    as in the population's fullest scenario. Entries need all runs in every scenario that counts, so a
    scenario that has just begun would leave out nearly all entries.
    """

    tables: BoardTables

    @cached_property
    def entries(self) -> dict[str, set[str]]:
        """Scenario with a whole reference → labels of whole entries, without copies."""
        reference = self.tables.finals[self.tables.finals["strategy"] == REFERENCE]
        counts = reference.groupby("scale").size()
        full = [str(scale) for scale, count in counts.items() if count == counts.max()]
        return {
            scale: {name for name in whole_entries(self.tables, scale) if not name.endswith(COPY)}
            for scale in full
        }

    @cached_property
    def populations(self) -> dict[str, list[str]]:
        """Population → scenarios that count."""
        by_population: dict[str, list[str]] = {}
        for scale in self.entries:
            by_population.setdefault(population(scale), []).append(scale)
        return {
            name: [
                scale
                for scale in scales
                if 2 * len(self.entries[scale]) >= max(len(self.entries[each]) for each in scales)
            ]
            for name, scales in by_population.items()
        }

    @property
    def uncounted_scenarios(self) -> list[str]:
        """Scenarios with some runs, but not yet counted."""
        counted = {scale for scales in self.populations.values() for scale in scales}
        return [scale for scale in self.tables.scales if scale not in counted]

    def missing(self) -> dict[str, list[str]]:
        """Return the counted scenarios without all runs of an entry, by label of the entry."""
        counted = [scale for scales in self.populations.values() for scale in scales]
        finals = self.tables.finals
        labels = {str(name) for name in finals["strategy"] if not str(name).endswith(COPY)}
        lacking = {
            name: [scale for scale in counted if name not in self.entries[scale]] for name in sorted(labels)
        }
        return {name: scales for name, scales in lacking.items() if scales}


def board_scores(tables: BoardTables, goals: Mapping[str, ScenarioGoal]) -> dict[str, PopulationScores]:
    """Return the scores of each population with comparable entries, without held-out scenarios."""
    by_population = Coverage(tables.of(tuned_scales(goals))).populations
    scores = {name: PopulationScores(tables, scales, goals) for name, scales in by_population.items()}
    return {name: population for name, population in scores.items() if population.comparable}


def held_out_scores(tables: BoardTables, goals: Mapping[str, ScenarioGoal]) -> dict[str, PopulationScores]:
    """Return the scores of each held-out scenario with comparable entries, by the scenario's name.

    A scenario is held out if its runs use parameters tuned in other scenarios.
    """
    scores = {
        scenario: PopulationScores(tables, [scenario], goals)
        for scenario, goal in goals.items()
        if goal.tuned_in
    }
    return {scenario: result for scenario, result in scores.items() if result.comparable}


def tuned_scales(goals: Mapping[str, ScenarioGoal]) -> list[str]:
    """Return the scenarios with tuned parameters, without held-out scenarios."""
    return [scenario for scenario, goal in goals.items() if not goal.tuned_in]


def population(scale: str) -> str:
    """Return the population of a scenario: `phones` for `digits-phones-iid`."""
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
    """Return all entries: first by number of populations, then by met targets, then by mean speed-up.

    The order of two entries does not depend on a third entry.
    """

    def key(name: str) -> tuple[int, int, float, str]:
        populations = [population for population in scores.values() if name in population.entries]
        ratios = [population.sooner(name) for population in populations]
        logs = [log(ratio) for ratio in ratios if ratio > 0]  # leaves out NaN, too
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
    """Return each entry's median over studies and seeds [scenarios]."""
    return {name: np.median(of_entry, axis=(1, 2)) for name, of_entry in times.items()}


def _last(values: str) -> float:
    """Return the last value of a stored curve; −∞ for a diverged run."""
    return float(np.nan_to_num(numbers(values)[-1], nan=-inf))


def _sooner(reference: np.ndarray, times: np.ndarray) -> float:
    """Return the geometric mean of speed-ups [scenarios]; 0 or NaN as for `PopulationScores.sooner`."""
    if not np.isfinite(reference).all():
        return nan
    return float(np.exp(np.mean(np.log(reference / times)))) if np.isfinite(times).all() else 0.0
