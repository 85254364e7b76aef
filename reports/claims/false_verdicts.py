"""False verdicts under the whole procedure, simulated with the centred residuals of the stored numbers.

`asyncfl claims simulate` stores the rates for docs/claims-rules.md. In a campaign every claim of a row
gets new seeds, drawn with replacement from its stored seeds, and its numbers are moved so that the effect is
nil: 0 for a comparison, an edge for a band, the printed number at the margin. Then every decision is false.
For comparisons with a margin, the effect is the margin in every second campaign: then *equal* and *behind*
are false. Claims with the same seeds share the draws.

Fixed: the draws, whose rates are stored and published.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import astuple, dataclass
from pathlib import Path

import numpy as np

from benchmarks.claims import stored_numbers
from benchmarks.claims.claim import SCALES, Claim
from benchmarks.claims.files import Paper
from benchmarks.claims.kinds import Better, Contrast, Rank, Ratio, Report, Same, Value
from benchmarks.claims.stored_numbers import RESULTS
from fl_core.streams import stream
from reports.claims.verdicts import collapses, paired, verdicts
from reports.statistical_inference import Array

FILE = "false-verdicts.csv"  # beside the numbers
Numbers = Mapping[str, Array]  # claim → its numbers [samples, seeds]


@dataclass(frozen=True, slots=True)
class SimulatedRow:
    """Claims of a row judged at a scale, with stored numbers."""

    paper: str
    scale: str
    name: str
    claims: Mapping[str, Claim]
    numbers: Numbers

    def wrong(self, campaign: int) -> bool:
        """Return whether a campaign without any true effect ends with a false verdict."""
        at_margin = campaign % 2 == 1
        rng = stream(campaign, f"false verdicts {self.paper} {self.scale} {self.name}")
        drawn: dict[int, Array] = {}
        values = {}
        for id_, claim in self.claims.items():
            table = self.numbers[id_]
            stored, largest_look = table.shape[1], claim.plan[-1]
            picked = drawn.setdefault(stored, rng.integers(stored, size=64))[:largest_look]
            law = centred(claim, table, at_margin)
            moved = law[:, picked]
            if isinstance(claim, Value) and claim.printed is not None:  # the printed mean of k runs is random
                theirs = law[:, rng.integers(stored, size=claim.runs)].mean()
                moved = moved - (theirs - float(claim.printed)) + claim.allowed
            values[id_] = {
                name: dict(enumerate(row.tolist())) for name, row in zip(claim.samples, moved, strict=True)
            }
        judged = verdicts(self.claims, values)
        return any(verdict.word in false(self.claims[id_], at_margin) for id_, verdict in judged.items())


def rows(paper: Paper, results: Path = RESULTS) -> Iterator[SimulatedRow]:
    """Yield the rows of a paper with judged claims, as far as effects can be moved."""
    for scale in SCALES:
        stored = stored_numbers.values(stored_numbers.read(stored_numbers.path(paper.name, scale, results)))
        numbers = {
            id_: table
            for id_, claim in paper.claims.items()
            if id_ in stored and (table := _table(claim, stored[id_])) is not None
        }
        for name in dict.fromkeys(paper.claims[id_].row for id_ in numbers):
            tables = {id_: table for id_, table in numbers.items() if paper.claims[id_].row == name}
            yield SimulatedRow(paper.name, scale, name, {id_: paper.claims[id_] for id_ in tables}, tables)


def _table(claim: Claim, by_sample: Mapping[str, Mapping[int, float]]) -> Array | None:
    """Return stored numbers [samples, seeds]; None if too few for a first look, not finite, or all alike."""
    if isinstance(claim, Report | Rank) or claim.unjudged or not claim.samples.keys() <= by_sample.keys():
        return None
    seeds, table = paired(claim, by_sample)
    if len(seeds) < claim.plan[0] or not np.isfinite(table).all() or not table.std(1).any():
        return None
    return table


def centred(claim: Claim, table: Array, at_margin: bool) -> Array:
    """Return numbers with the first sample moved to an effect of nil, or of the margin."""
    times = np.array([sample.times for sample in claim.samples.values()])
    signs = isinstance(claim, Better | Contrast | Ratio) and collapses(claim, table).any()
    middle = np.median if signs else np.mean
    if isinstance(claim, Better):
        effect = claim.sign * (table[0] - table[1])
        target = claim.allowed if isinstance(claim, Same) else (claim.margin or 0.0) * at_margin
        return table - np.array([[claim.sign * (middle(effect) - target)], [0.0]])
    edge = next((edge for edge in claim.holds or () if edge is not None), 0.0)
    if isinstance(claim, Contrast):
        logs = np.log(table) if claim.log else table
        target = edge + (claim.margin or 0.0) * at_margin
        logs = logs - np.eye(len(table))[:, :1] * (middle(times @ logs) - target) / times[0]
        return np.exp(logs) if claim.log else logs
    if isinstance(claim, Ratio):
        top = np.array([name.startswith("top") for name in claim.samples])
        if claim.of == "spread":
            low = np.abs(table[1] - np.median(table[1])).mean()
            high = np.abs(table[0] - np.median(table[0])).mean()
            return np.stack([table[0] * (edge * low / high if high else 1.0), table[1]])
        away = middle(times[top] @ table[top] - edge * (times[~top] @ table[~top]))
        return table - np.eye(len(table))[:, :1] * away / times[0]
    return table - table.mean() + edge


def false(claim: Claim, at_margin: bool) -> set[str]:
    """Return the words of false verdicts on centred numbers."""
    if isinstance(claim, Same) or not isinstance(claim, Better | Contrast):
        return {"confirmed", "refuted"}
    return {"refuted", "equal", "no effect"} if at_margin and claim.margin else {"confirmed", "refuted"}


COLUMNS = ("paper", "scale", "row", "claims", "campaigns", "false")


@dataclass(frozen=True, slots=True)
class Rate:
    """Number of campaigns of a row with any false verdict."""

    paper: str
    scale: str
    row: str
    claims: int
    campaigns: int
    false: int

    @property
    def share(self) -> float:
        """Fraction of campaigns with a false verdict."""
        return self.false / self.campaigns


def rate(row: SimulatedRow, campaigns: int) -> Rate:
    """Return the simulated rate of a row."""
    wrong = sum(row.wrong(campaign) for campaign in range(campaigns))
    return Rate(row.paper, row.scale, row.name, len(row.claims), campaigns, wrong)


def stored(results: Path = RESULTS) -> list[Rate]:
    """Return the stored rates; none without a file."""
    return stored_numbers.table(results / FILE, COLUMNS, _rate)


def _rate(cells: list[str]) -> Rate:
    paper, scale, row, *counts = cells
    return Rate(paper, scale, row, *map(int, counts))


def store(rates: Iterable[Rate], results: Path = RESULTS) -> Path:
    """Store rates in place of all earlier rates and return the path; raises OSError."""
    path = results / FILE
    stored_numbers.write(path, COLUMNS, map(astuple, rates))
    return path
