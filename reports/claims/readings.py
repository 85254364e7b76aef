"""Readings: claims at a scale with verdicts on stored numbers; the input of all pages of claims.

The module does not import torch, so that `asyncfl claims` starts fast.

Fixed: order and content of the readings, from which all published pages are made.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path

from benchmarks.claims import stored_numbers
from benchmarks.claims.claim import SCALES, Arrangement, Claim, Failure, Need, Workload
from benchmarks.claims.files import Paper
from benchmarks.claims.stored_numbers import RESULTS
from reports.claims.verdicts import Values, Verdict, Word, verdicts

THEOREM = "theorem"  # in the place of a scale, for claims without runs


@dataclass(frozen=True, slots=True)
class Reading:
    """A test of a main result: a claim of a paper at a single scale, with a verdict."""

    paper: Paper
    claim: Claim
    scale: str  # or `theorem`
    verdict: Verdict
    values: Values = field(default_factory=dict, repr=False)  # the stored numbers
    traced: bool = True  # whether all numbers come from a commit without uncommitted changes

    @property
    def word(self) -> Word:
        """Word of the verdict."""
        return self.verdict.word

    @property
    def ran(self) -> bool:
        """Whether the claim has a verdict."""
        return self.word != "not run"

    @property
    def arrangement(self) -> Arrangement:
        """Arrangement of the experiment: of the paper, of the paper's code, a reading, or ours."""
        return self.claim.arranged(self.scale)

    @property
    def workload(self) -> Workload:
        """Data and model: the paper's, or a stand-in."""
        return self.claim.works_on(self.scale)

    @property
    def failure(self) -> Failure:
        """Meaning of a failure."""
        return self.claim.failure(self.scale)

    @property
    def needs(self) -> Need | None:
        """Requirements of the runs beyond an evening on two cores; None if an evening suffices."""
        return self.paper.needs(self.claim, self.scale)


def readings(paper: Paper, scale: str, folder: Path = RESULTS) -> list[Reading]:
    """Return the claims of a paper at a scale, or all theorems, with verdicts."""
    claims = {id_: claim for id_, claim in paper.claims.items() if scale in scales(paper, claim)}
    stored = stored_numbers.read(stored_numbers.path(paper.name, scale, folder))
    values = stored_numbers.values(stored)
    untraced = {number.claim for number in stored if not stored_numbers.traceable(number.origin)}
    by_claim = verdicts(claims, values)
    return [
        Reading(paper, claim, scale, by_claim[id_], values.get(id_, {}), id_ not in untraced)
        for id_, claim in claims.items()
    ]


def scales(paper: Paper, claim: Claim) -> tuple[str, ...]:
    """Return the scales of a claim; `theorem` for a claim without runs."""
    return paper.scales(claim) if claim.needs_runs else (THEOREM,)


def all_of(papers: Iterable[Paper], folder: Path = RESULTS) -> list[Reading]:
    """Return all readings: paper by paper, theorems first."""
    return [
        reading
        for paper in papers
        for scale in (THEOREM, *SCALES)
        for reading in readings(paper, scale, folder)
    ]


def by_scale(readings: Iterable[Reading]) -> list[list[Reading]]:
    """Return readings grouped by paper and scale."""
    return [
        list(group) for _, group in groupby(readings, key=lambda reading: (reading.paper.name, reading.scale))
    ]
