"""Outcomes of a paper's main results: a word for the share of holding readings, and counts by scope.

Pages, the plot of main results and `asyncfl claims` call `outcomes`.

    holds         all decided readings hold, and none leans against
    mostly holds  at least 80 %
    mixed         less, and more than 20 %; a dividing condition is named
    mostly fails  at most 20 %
    fails         none holds, and none leans for
    undecided     readings have run, none is decided
    not run       none has run

The scope of a reading is its workload: the paper's, a stand-in, or a toy, which is a quadratic or the test of
a theorem. A result with a printed table that does not pass its check (`printed_tables`) is mixed at best.

A comparison that is equal within its margin, or without any effect, is decided and does not hold. A reading
that leans (all seeds on one side, but no test decides) is not counted, but turns *holds* into *mostly holds*
and *fails* into *mostly fails*. A reading compatible with a printed number, but imprecise, counts for neither
side. Three sorts of readings are shown and not counted: statements of ours; entries outside the paper's
conditions; and twins, which repeat the comparison of another entry on shared runs.

Fixed: these rules, by which published words and counts are found.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from benchmarks.claims.files import MainResult, Paper
from benchmarks.claims.kinds import Theorem
from reports.claims.pooled_effects import PooledEffect, pooled
from reports.claims.printed_tables import tables
from reports.claims.readings import Reading
from reports.claims.verdicts import DECIDED, OPEN

MainWord = Literal["holds", "mostly holds", "mixed", "mostly fails", "fails", "undecided", "not run"]
Scope = Literal["paper's workload", "stand-ins", "toy"]
SCOPES: tuple[Scope, ...] = ("paper's workload", "stand-ins", "toy")  # the best first
MOSTLY = 0.8  # smallest share of holding readings for *mostly holds*
MAX_VALUES = 6  # of a dividing condition
GENERAL_CONDITIONS = ("arrangement", "workload", "scale")  # of every reading, whatever its case


@dataclass(frozen=True, slots=True)
class Divide:
    """The condition best separating holding readings from all others."""

    name: str  # arrangement, workload, scale, or one of the entries' case
    counts: Mapping[str, tuple[int, int]]  # value → holding and decided readings
    few: bool = False  # whether readings are too few for an adjusted R² above 0


@dataclass(frozen=True)
class Outcome:
    """A main result with all readings."""

    paper: Paper
    result: MainResult
    readings: tuple[Reading, ...]

    @cached_property
    def deciding(self) -> list[Reading]:
        """Readings admitted to the outcome, whatever the verdict."""
        return [reading for reading in self.readings if decides(reading)]

    @property
    def decided(self) -> list[Reading]:
        """Deciding readings with a verdict of confirmed, refuted, equal or no effect."""
        return [reading for reading in self.deciding if reading.word in DECIDED]

    @property
    def share(self) -> float | None:
        """Fraction of decided readings holding; None without decided readings."""
        holding, decided = tally(self.deciding)
        return holding / decided if decided else None

    @property
    def word(self) -> MainWord:
        """Outcome of the main result, as a word."""
        if self.share is None:
            return "undecided" if any(reading.ran for reading in self.readings) else "not run"
        words = {reading.word for reading in self.deciding}
        word = word_of(*tally(self.deciding))
        if word in {"holds", "mostly holds"} and not all(table.own.passes for table in tables(self.deciding)):
            return "mixed"
        if word == "holds" and "leans against" in words:
            return "mostly holds"
        return "mostly fails" if word == "fails" and "leans for" in words else word

    @property
    def scopes(self) -> dict[Scope, tuple[int, int]]:
        """Counts of holding and decided readings by scope, the closest to the paper first."""
        counts = {
            name: tally(reading for reading in self.decided if scope(reading) == name) for name in SCOPES
        }
        return {name: (holding, decided) for name, (holding, decided) in counts.items() if decided}

    @cached_property
    def pooled(self) -> tuple[PooledEffect, ...]:
        """Effects pooled over clusters, by leading method; empty if no effect has an interval."""
        return pooled(reading for reading in self.deciding if reading.ran and reading.word != "reported")

    @property
    def divide(self) -> Divide | None:
        """Condition best dividing the readings, by adjusted R²; None if no condition divides.

        If no adjusted R² is above 0, for want of readings, the entries' own condition of largest R² is taken.
        """
        cases = [(_conditions(reading), reading.word == "confirmed") for reading in self.decided]
        best, largest = None, (0.0, 0.0)
        for name in cases[0][0] if cases else ():
            if not all(name in conditions for conditions, _ in cases):
                continue
            counts: dict[str, tuple[int, int]] = {}
            for conditions, held in cases:
                confirmed, n = counts.get(conditions[name], (0, 0))
                counts[conditions[name]] = confirmed + held, n + 1
            if not 1 < len(counts) <= MAX_VALUES:
                continue
            adjusted, raw = _explained(list(counts.values()))
            if name in GENERAL_CONDITIONS and not adjusted:
                continue
            if (adjusted, raw) > largest:
                best, largest = Divide(name, counts, few=not adjusted), (adjusted, raw)
        return best

    def undecided(self, condition: str) -> dict[str, int]:
        """Return the number of open readings by value of a condition, for values without decided readings."""
        decided = {_conditions(reading).get(condition) for reading in self.decided}
        values = (_conditions(reading).get(condition) for reading in self.deciding if reading.word in OPEN)
        return Counter(value for value in values if value is not None and value not in decided)


def _explained(counts: Sequence[tuple[int, int]]) -> tuple[float, float]:
    """Return R² of holding, explained by a condition: adjusted and at least 0, and unadjusted."""
    total, n = sum(n for _, n in counts), len(counts)
    share = sum(held for held, _ in counts) / total
    if not 0 < share < 1:
        return 0.0, 0.0
    between = sum(size * (held / size - share) ** 2 for held, size in counts)
    raw = between / (total * share * (1 - share))
    adjusted = 1 - (1 - raw) * (total - 1) / (total - n) if total > n else 0.0
    return max(0.0, adjusted), raw


def tally(readings: Iterable[Reading]) -> tuple[int, int]:
    """Return the number of holding readings, and of all decided readings."""
    words = [reading.word for reading in readings if reading.word in DECIDED]
    return words.count("confirmed"), len(words)


def word_of(holding: int, decided: int) -> MainWord:
    """Return the word for a number of holding readings among `decided`, one or more."""
    if holding in {0, decided}:
        return "holds" if holding else "fails"
    share = holding / decided
    return "mostly holds" if share >= MOSTLY else "mostly fails" if 1 - share >= MOSTLY else "mixed"


def decides(reading: Reading) -> bool:
    """Return whether a reading counts: a statement of the paper, within the paper's conditions, no twin."""
    claim = reading.claim
    return claim.stated_by == "paper" and not claim.outside_conditions and not claim.twin


def scope(reading: Reading) -> Scope:
    """Return the scope of a reading; quadratics and theorems without a printed number are toys."""
    claim = reading.claim
    if isinstance(claim, Theorem):
        toy = not isinstance(claim.printed, str)
    else:
        scenarios = (reading.paper.scenarios.get(sample.scenario or "") for sample in claim.samples.values())
        problems = [scenario.document.get("problem") for scenario in scenarios if scenario]
        toy = any(isinstance(problem, dict) and problem.get("name") == "quadratic" for problem in problems)
    return "toy" if toy else "paper's workload" if reading.workload == "paper" else "stand-ins"


def outcomes(readings: Sequence[Reading]) -> list[Outcome]:
    """Return an outcome for every main result of each paper."""
    papers = {reading.paper.name: reading.paper for reading in readings}
    by_id: dict[tuple[str, str], list[Reading]] = {}
    for reading in readings:
        by_id.setdefault((reading.paper.name, reading.claim.id), []).append(reading)
    return [
        Outcome(
            paper,
            result,
            tuple(reading for id_ in paper.readings(result) for reading in by_id.get((paper.name, id_), ())),
        )
        for paper in papers.values()
        for result in paper.main.values()
    ]


def _conditions(reading: Reading) -> dict[str, str]:
    """Return the conditions of a reading, first the entry's own."""
    words = reading.paper.words
    general = (reading.arrangement, reading.workload, reading.scale)
    case = {
        words.get(name, name): words.get(str(value), str(value)) for name, value in reading.claim.case.items()
    }
    return case | dict(zip(GENERAL_CONDITIONS, general, strict=True))
