"""Scores of a board: times to target, intervals and rank groups in each population of clients."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import exp, inf, log, nan

import numpy as np
import pandas as pd

from fl_core.streams import stream
from reports.inference import percentiles
from reports.leaderboard.board_tables import BoardTables
from reports.leaderboard.rank_groups import Board, rank_groups

REFERENCE = "FedAvg"  # whose median time is the unit
COPY = " (copy)"  # ends the label of a copy of an entry, tuned by studies of its own
RESAMPLES = 2000
NEVER = 0  # the rank group of entries whose median run never meets the target


@dataclass(frozen=True, eq=False)
class PopulationScores:
    """The scores of all entries for a population of clients.

    Args:
        tables: The rows of the board.
        scales: The scenarios of the population: a scale for each workload, and for i.i.d. data.
        budgets: Scale → the end of its runs, in virtual time.
    """

    tables: BoardTables
    scales: Sequence[str]
    budgets: Mapping[str, float]

    @cached_property
    def times(self) -> dict[str, np.ndarray]:
        """Times to target of each entry [scenarios, studies, seeds], ∞ for never; of whole entries alone."""
        own = self.tables.finals[self.tables.finals["scale"].isin(self.scales)]
        own = own.sort_values(["study", "seed"])
        reference = own[own["strategy"] == REFERENCE]
        shape = (len(self.scales), reference["study"].nunique(), -1)
        return {
            str(name): np.stack([part["time"].to_numpy(float) for _, part in rows.groupby("scale")]).reshape(
                shape
            )
            for name, rows in own.groupby("strategy")
            if [*rows.groupby("scale").size()] == [*reference.groupby("scale").size()]
        }

    @property
    def entries(self) -> list[str]:
        """Labels of the whole entries, without copies."""
        return [name for name in self.times if not name.endswith(COPY)]

    @cached_property
    def medians(self) -> dict[str, np.ndarray]:
        """Median time of each entry, copies included, in each scenario [scenarios]."""
        return {name: np.median(own, axis=(1, 2)) for name, own in self.times.items()}

    def sooner(self, name: str) -> float:
        """Return how many times as soon as the reference an entry is, the geometric mean over scenarios.

        0 where its median run never meets the target, NaN where the reference's does not.
        """
        return _sooner(self.medians[REFERENCE], self.medians[name])

    def interval(self, name: str) -> tuple[float, float]:
        """Return the 95 % interval of `sooner`, over studies and seeds."""
        rng = stream(0, "populations")
        reference, own = self.times[REFERENCE], self.times[name]
        _, studies, seeds = own.shape
        draws = []
        for _ in range(RESAMPLES):
            which = [rng.integers(studies, size=studies) for _ in range(2)]
            who = rng.integers(seeds, size=(studies, seeds))
            first, second = (
                np.median(np.take_along_axis(times[:, at], who[None], axis=2), axis=(1, 2))
                for times, at in zip((reference, own), which, strict=True)
            )
            draws.append(_sooner(first, second))
        low, high = percentiles(np.nan_to_num(np.array(draws), nan=inf))
        return float(low), float(high)

    def met(self, name: str) -> float:
        """Return the share of final runs that meet the target."""
        return float(np.isfinite(self.times[name]).mean())

    @cached_property
    def board(self) -> Board:
        """The numbers of the entries whose median run meets the target."""
        return Board(np.array([self._logs(name) for name in self._ranked]))

    @property
    def _ranked(self) -> list[str]:
        return [name for name in self.entries if np.isfinite(self.medians[name]).all()]

    def _logs(self, name: str) -> np.ndarray:
        ends = np.array([self.budgets[scale] for scale in self.scales])[:, None, None]
        return np.asarray(np.log(np.minimum(self.times[name], ends)).mean(axis=2))

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
    def groups(self) -> dict[str, int]:
        """Rank group of each entry, 1 for the soonest; NEVER where the median run never meets the target."""
        ranked = self._ranked
        groups = dict(zip(ranked, rank_groups(self.board.means, log(self.resolution)), strict=True))
        return {name: groups.get(name, NEVER) for name in self.entries}

    def order(self) -> list[str]:
        """Return the entries by rank group, and by time within a group; those that never meet it last."""
        means = dict(zip(self._ranked, self.board.means, strict=True))
        return sorted(self.entries, key=lambda name: (self.groups[name] or inf, means.get(name, inf), name))


def populations(tables: BoardTables) -> dict[str, list[str]]:
    """Return the scenarios of each population: the part of a scale's name after the workload, less `-iid`."""
    by_population: dict[str, list[str]] = {}
    for scale in tables.scales:
        by_population.setdefault(scale.split("-")[1], []).append(scale)
    return by_population


def correlation(first: PopulationScores, second: PopulationScores) -> float:
    """Return Spearman's rank correlation of the entries that two populations share; NaN below six."""
    names = [name for name in first.entries if name in second.entries]
    if len(names) < 6:
        return nan
    ranks = [pd.Series([own.order().index(name) for name in names]).rank() for own in (first, second)]
    return float(ranks[0].corr(ranks[1]))


def _sooner(reference: np.ndarray, own: np.ndarray) -> float:
    if not np.isfinite(reference).all():
        return nan
    return float(np.exp(np.mean(np.log(reference / own)))) if np.isfinite(own).all() else 0.0
