"""Scores of version 1.0 with intervals, and entries shown to be behind the first."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
import pandas as pd

from benchmarks.errors import UserError
from fl_core.streams import stream
from reports.inference import ERROR, percentiles
from reports.leaderboard.choice import one_setting, tuned
from reports.leaderboard.costs import Array, Costs
from reports.leaderboard.marks import incomplete
from reports.leaderboard.rules import SCENARIO
from reports.leaderboard.tables import ONE_SETTING, TUNED, Tables

RESAMPLES = 2000
BOLD = 0.8  # probability of being first from which a strategy is said to lead
AGREES = 0.8  # correlation between orders from which on they are said to agree
THIRD = 1 / 3  # of every budget: the shorter horizon
BOUNDS = {"≥": "at least ", "≤": "at most ", "~": "about ", "": ""}  # of a speed-up, in words


@dataclass(frozen=True, eq=False)
class Standing:
    """All entries under a single ruleset, in all scenarios of the costs.

    A score is the mean over scenarios and seeds of log(T_ref / T), T_ref of the tuned reference in the same
    scenario and seed: no other entry has a part in it.
    """

    costs: Costs
    ruleset: str
    reference: str

    def within(self, scenarios: Array) -> Self:
        """Return the standing in some scenarios alone, a mask [S]; whole workloads, or of tuned points."""
        return replace(self, costs=self.costs.within(scenarios))

    @property
    def order(self) -> list[int]:
        """Places of the entries in `costs.strategies`, the best score first."""
        return np.argsort(-self.scores, kind="stable").tolist()

    @cached_property
    def by_scenario(self) -> Array:
        """Scores [A, S], means over seeds."""
        return (self._reference - self.costs.finals[self.ruleset]).mean(-1)

    @cached_property
    def scores(self) -> Array:
        """Scores [A], logarithms of speed-ups."""
        return self.by_scenario.mean(1)

    @property
    def _reference(self) -> Array:
        """The costs of the tuned reference [S, seeds]."""
        return self.costs.finals[TUNED][self.costs.strategies.index(self.reference)]

    @cached_property
    def bounds(self) -> list[str]:
        """Sign of a bound for each speed-up (see `bound`)."""
        missed = (self.costs.reached[self.ruleset] == 0).any((1, 2))
        own = self.costs.strategies.index(self.reference)
        late = (self.costs.reached[TUNED][own] == 0).any()
        exact = own if self.ruleset == TUNED else None  # the reference over itself
        return ["" if at == exact else bound(some, late) for at, some in enumerate(missed)]

    @cached_property
    def over_seeds(self) -> Array:
        """Scores under resampled seeds [draws, A], with fixed scenarios."""
        return self._draws(seeds=True, scenarios=False)

    @cached_property
    def over_scenarios(self) -> Array:
        """Scores in resampled scenarios [draws, A], with fixed seeds."""
        return self._draws(seeds=False, scenarios=True)

    @cached_property
    def over_both(self) -> Array:
        """Scores under resampled seeds and scenarios [draws, A]."""
        return self._draws(seeds=True, scenarios=True)

    @cached_property
    def first(self) -> Array:
        """Probability of being first [A], over seeds and scenarios; level entries share a draw."""
        leads = self.over_both >= self.over_both.max(1, keepdims=True)
        return (leads / leads.sum(1, keepdims=True)).mean(0)

    @cached_property
    def behind(self) -> Array:
        """Whether an entry is shown to be behind the entry with the best score [A].

        It is if it is ahead or level in too few draws over seeds and scenarios, at 5 % over all entries
        (Bonferroni). This is the error for a leader named beforehand: one that is chosen by the same runs
        among equal entries is more often shown to be ahead of some of them.
        """
        leader = self.over_both[:, [self.scores.argmax()]]
        ahead = (self.over_both >= leader).mean(0)
        return ahead <= ERROR / max(1, len(self.scores) - 1)

    def _draws(self, *, seeds: bool, scenarios: bool) -> Array:
        rng = stream(0, "leaderboard")
        return np.array([self._draw(*counts) for counts in self._resampled(rng, seeds, scenarios)])

    def _resampled(
        self, rng: np.random.Generator, seeds: bool, scenarios: bool
    ) -> Iterator[tuple[Any, Any, Any]]:
        """Yield places of final and design seeds, shared by all entries, and how often scenarios count."""
        n, many = self._reference.shape[1], self.costs.design.shape[-1]
        count = len(self.costs.scenarios)
        for _ in range(RESAMPLES):
            yield (
                rng.integers(n, size=n) if seeds else np.arange(n),
                rng.integers(many, size=many) if seeds else np.arange(many),
                rng.multinomial(count, np.full(count, 1 / count)) if scenarios else np.ones(count),
            )

    def _draw(self, finals: Array, design: Array, times: Array) -> Array:
        tuned = self._expected(TUNED, finals, design, times)
        own = tuned if self.ruleset == TUNED else self._expected(self.ruleset, finals, design, times)
        return (tuned[self.costs.strategies.index(self.reference)] - own) @ times / times.sum()

    def _expected(self, ruleset: str, finals: Array, design: Array, times: Array) -> Array:
        """Return costs [A, S] with the points chosen in a resample.

        Where the choice is another, its final runs were not made: their cost is taken to differ by as much as
        the means of the design do.
        """
        costs, known = self.costs, self._designed[ruleset]
        if ruleset == TUNED:
            points = tuned(costs, design)
        else:
            points = one_setting(costs, times)
        chosen = self._chosen[ruleset]
        points = np.where(points < 0, chosen, points)
        move = _at(known, points) - _at(known, chosen)
        return costs.finals[ruleset][..., finals].mean(-1) + move

    @cached_property
    def _chosen(self) -> dict[str, Array]:
        return {TUNED: tuned(self.costs), ONE_SETTING: one_setting(self.costs)}

    @cached_property
    def _designed(self) -> dict[str, Array]:
        """Mean costs of points [A, S, P] on the seeds shared by the candidates of a ruleset."""
        return {TUNED: self.costs.design.mean(-1), ONE_SETTING: self.costs.design[..., 0]}


def bound(missed: bool, reference_missed: bool) -> str:
    """Return '≥' for a speed-up where only the reference missed the target, '≤' only the entry, '~' both."""
    if missed and reference_missed:
        return "~"
    return "≥" if reference_missed else "≤" if missed else ""


def _at(table: Array, points: Array) -> Array:
    """Return the entries of a table [A, S, P] at the given points [A, S]."""
    return np.take_along_axis(table, points[..., None], -1)[..., 0]


def standing_table(standing: Standing, tables: Tables) -> pd.DataFrame:
    """Return a row for each entry, the best first: speed-up, both intervals, P(first), cost, censoring.

    Speed-ups and the factors of cost are geometric means over scenarios and seeds, as multiples of the tuned
    reference's; of updates and bytes, less is better. A run without the hard target counts at its end.
    """
    costs = standing.costs
    columns = {"strategy": costs.strategies, "speedup": np.exp(standing.scores)}
    for name, draws in (("seeds", standing.over_seeds), ("scenarios", standing.over_scenarios)):
        low, high = percentiles(draws)
        columns |= {f"{name}_low": np.exp(low), f"{name}_high": np.exp(high)}
    reached = costs.reached[standing.ruleset]
    table = pd.DataFrame(
        {
            **columns,
            "first": standing.first,
            "behind": standing.behind,
            "missed": (reached == 0).sum((1, 2)),  # runs without the hard target: scored at the budget
            "runs": reached[0].size,
            "bound": standing.bounds,
        }
    ).set_index("strategy")
    return table.join(_beside(standing, tables)).sort_values("speedup", ascending=False, kind="stable")


def _beside(standing: Standing, tables: Tables) -> pd.DataFrame:
    """Return further columns of the standing: easy target, updates, bytes, accuracy, worst client."""
    finals = tables.finals
    finals = finals.assign(time_easy=np.minimum(finals["time_easy"], tables.rules.budgets(finals)))
    own = finals[finals["ruleset"] == standing.ruleset].set_index([*SCENARIO, "seed"])
    is_reference = (finals["ruleset"] == TUNED) & (finals["strategy"] == standing.reference)
    reference = finals[is_reference].set_index([*SCENARIO, "seed"])
    columns = {}
    for name, measure, sign in (("easy", "time_easy", -1), ("updates", "updates", 1), ("bytes", "bytes", 1)):
        ratio = np.log(own[measure]) - np.log(reference[measure].reindex(own.index))
        columns[name] = np.exp(sign * _mean(ratio, own["strategy"]))
    columns |= {name: _mean(own[name], own["strategy"]) for name in ("accuracy", "worst_client")}
    return pd.DataFrame(columns)


def _mean(values: pd.Series, strategies: pd.Series) -> pd.Series:
    return values.groupby(strategies.to_numpy()).mean()


def standing(tables: Tables, ruleset: str = TUNED, horizon: float = 1.0) -> Standing:
    """Return the standing of the entries without missing runs, at a share of every budget.

    Raises:
        UserError: The reference is not among them.
    """
    whole = tables.of(*(name for name in tables.entries if not incomplete(tables, name)))
    reference = tables.rules.reference
    if reference not in whole.entries:
        raise UserError(f"there are no whole runs of {reference}, over whose times scores are stated")
    return Standing(Costs.of(whole, horizon), ruleset, tables.rules.reference)
