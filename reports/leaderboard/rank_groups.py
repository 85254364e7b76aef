"""Rank groups: sets of entries that differ by no more than luck of tuning and of seeds.

`PopulationScores` (`scores`) computes the threshold and the groups of each population with them.

The number of an entry in a study is the mean, over seeds, of the logarithm of the time to target; a run that
misses the target counts at the end of its budget, which can only hide a difference. In a scenario

    y[entry, study] = mean of the entry + effect of the study + residual,

where the effect is common to all entries, since the seeds of a study are. The residual holds the luck of
tuning and of seeds; its standard deviation is pooled over entries. Where a population has several scenarios,
what an entry gains in one of them and not in the others is a source of chance, too.

Two entries are *separated* if their means differ by more than the threshold. The threshold is the largest
range of the means that 95 % of boards of equal entries stay below; such boards are drawn from the board's own
residuals. So at most one board of equals in twenty separates any two.

A rank group is a largest set of entries of which no two are separated. Groups overlap, as in a compact
letter display: two entries share a group if and only if they are not separated. Groups are numbered from the
soonest.

Fixed: threshold and groups, to the digit, and the draws behind them: the board publishes both.

Source:
    Piepho, "An algorithm for a letter-based representation of all-pairwise comparisons", 2004.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import exp, log, sqrt
from typing import NamedTuple

import numpy as np

from fl_core.streams import stream
from reports.statistical_inference import LEVEL

Array = np.ndarray
BOARDS = 2000  # simulated boards of equal entries
NEIGHBOURS = 1.5  # true ratio of times between neighbours, for which the power is stated


@dataclass(frozen=True, eq=False)
class PopulationBoard:
    """The numbers of a population: log times [entries, scenarios, studies].

    Args:
        logs: Means over seeds of log time to target, a missed target at the end of the budget.
    """

    logs: Array

    @property
    def means(self) -> Array:
        """Mean log time of each entry [entries]."""
        return np.asarray(self.logs.mean(axis=(1, 2)))

    @cached_property
    def residuals(self) -> Array:
        """Residuals within scenarios [entries, scenarios, studies], scaled to the variance of a study."""
        entries, _, studies = self.logs.shape
        by_entry, by_study = self.logs.mean(2, keepdims=True), self.logs.mean(0, keepdims=True)
        rest = self.logs - by_entry - by_study + self.logs.mean((0, 2), keepdims=True)
        return np.asarray(rest * sqrt(entries * studies / ((entries - 1) * (studies - 1))))

    @cached_property
    def interactions(self) -> Array:
        """Gains of entries in single scenarios [entries, scenarios], scaled to the variance of a scenario."""
        entries, scenarios, _ = self.logs.shape
        if scenarios == 1:
            return np.zeros((entries, 1))
        effects = self.logs.mean(2)
        rest = effects - effects.mean(1, keepdims=True) - effects.mean(0, keepdims=True) + effects.mean()
        return np.asarray(rest * sqrt(entries * scenarios / ((entries - 1) * (scenarios - 1))))

    @cached_property
    def _variances(self) -> tuple[float, float]:
        """Variances of the mean of an entry, from residuals and from interactions."""
        _, scenarios, studies = self.logs.shape
        within = float(np.mean(self.residuals**2)) / (scenarios * studies)
        return within, float(np.mean(self.interactions**2)) / scenarios

    @property
    def error(self) -> float:
        """Standard error of the mean of an entry."""
        return sqrt(max(self._variances))

    @cached_property
    def threshold(self) -> float:
        """Smallest difference of mean log times that separates two entries."""
        if self.error == 0:
            return 0.0  # any difference separates
        return float(np.quantile(self.ranges("threshold"), LEVEL, method="higher")) * self.error

    def ranges(self, purpose: str) -> Array:
        """Return the range of the means on simulated boards of equals, in standard errors of each [boards].

        Args:
            purpose: Name of the random stream.
        """
        means, errors = self.equals(purpose)
        ranges = np.ptp(means, axis=1)
        without_noise = np.where(ranges > 0, np.inf, 0.0)
        return np.asarray(np.divide(ranges, errors, out=without_noise, where=errors > 0))

    def equals(self, purpose: str) -> tuple[Array, Array]:
        """Return means of equal entries on simulated boards [boards, entries], and standard errors [boards].

        An entry of such a board has the residuals of an entry drawn with replacement, with random signs, so
        that boards keep entries that vary much beside those that vary little; or, where they vary more,
        what the entry gains in single scenarios.
        """
        within, between = self._variances
        source = self.interactions if between > within else self.residuals.reshape(len(self.logs), -1)
        entries, count = source.shape
        rng = stream(0, f"rank groups, {purpose}")
        drawn = source[rng.integers(entries, size=(BOARDS, entries))]
        drawn = drawn * rng.choice((-1.0, 1.0), drawn.shape)
        drawn -= drawn.mean(axis=1, keepdims=True)  # effects of studies, which a board takes out
        errors = np.sqrt(drawn.var(axis=2, ddof=1).mean(axis=1) / count * entries / (entries - 1))
        return drawn.mean(axis=2), errors

    @cached_property
    def resolution(self) -> float:
        """Smallest ratio of times that separates two entries."""
        return exp(self.threshold)

    @cached_property
    def false_statements(self) -> float:
        """Share of newly drawn boards of equal entries with any separated pair, which is always an error."""
        return float(np.mean(self.ranges("check") * self.error > self.threshold)) if self.error else 0.0

    @cached_property
    def power(self) -> float:
        """Share of separated neighbours on boards with each entry `NEIGHBOURS` times as slow as the last."""
        noise, _ = self.equals("power")
        return float(np.mean(np.diff(noise, axis=1) + log(NEIGHBOURS) > self.threshold))


class GroupRange(NamedTuple):
    """The consecutive rank groups of an entry, first to last; 1 is the group of the fastest entry."""

    first: int
    last: int

    def __str__(self) -> str:
        return str(self.first) if self.first == self.last else f"{self.first}–{self.last}"


def rank_groups(means: Sequence[float] | Array, threshold: float) -> list[GroupRange]:
    """Return the rank groups of each entry.

    Args:
        means: Mean log times [entries].
        threshold: Difference above which two entries are separated.
    """
    logs = np.asarray(means, float)
    starts = np.unique(logs)
    ends = np.array([starts[starts - start <= threshold][-1] for start in starts])
    largest = np.r_[True, ends[1:] > ends[:-1]]  # others are part of the group before
    starts, ends = starts[largest], ends[largest]
    first, last = np.searchsorted(ends, logs) + 1, np.searchsorted(starts, logs, side="right")
    return [GroupRange(int(low), int(high)) for low, high in zip(first, last, strict=True)]
