"""The verdicts on stored numbers, and their summary for a paper; nothing here imports torch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from benchmarks.claims import kept
from benchmarks.claims.claim import SCALES, Claim, Refutation, Report
from benchmarks.claims.files import Paper
from benchmarks.claims.kept import COMPUTED, RESULTS
from reports.claims.rules import Verdict, Word
from reports.claims.verdicts import verdicts

# Results of claims in a reader's terms: the words of verdicts behind each.
COLUMNS: dict[str, set[Word]] = {
    "holds": {"confirmed"},
    "fails": {"refuted"},
    "no difference": {"equal", "no effect"},
    "undecided": {"undecided"},
    "not tested": {"not run"},
}


def judged(paper: Paper, scale: str, folder: Path = RESULTS) -> dict[str, Verdict]:
    """The verdicts of a paper's claims at a scale, or of those that are computed, from the stored numbers."""
    claims = {id_: claim for id_, claim in paper.claims.items() if scale in scales(paper, claim)}
    numbers = kept.values(kept.read(kept.path(paper.name, scale, folder)))
    return verdicts(claims, numbers)


def scales(paper: Paper, claim: Claim) -> tuple[str, ...]:
    """Where a claim has a verdict: its scales, or `computed`."""
    return (COMPUTED,) if claim.computed else paper.scales(claim)


@dataclass(frozen=True, slots=True)
class Judged:
    """The claims of a paper at one scale with their verdicts, by id."""

    paper: Paper
    scale: str
    verdicts: Mapping[str, Verdict]

    @property
    def counts(self) -> Counter[Word]:
        """How many have each verdict."""
        return Counter(one.word for one in self.verdicts.values())

    @property
    def ran(self) -> bool:
        """Whether any of them has run."""
        return self.counts["not run"] < len(self.verdicts)

    def refutation(self, id_: str) -> Refutation:
        """The meaning of a refutation here."""
        return self.paper.refutation(self.paper.claims[id_], self.scale)


@dataclass(frozen=True, slots=True)
class Standing:
    """How the published claims of a paper stand: each at the largest scale where it had its first look."""

    paper: Paper
    where: Mapping[str, str]  # id → scale, or `computed`; only claims that count for or against the paper
    verdicts: Mapping[str, Verdict]

    @property
    def counts(self) -> dict[str, int]:
        """How many hold, fail, …"""
        words = Counter(one.word for one in self.verdicts.values())
        return {column: sum(words[word] for word in means) for column, means in COLUMNS.items()}

    @property
    def tested(self) -> Counter[str]:
        """How many were tested, by scale."""
        return Counter(self.where[id_] for id_, one in self.verdicts.items() if one.word != "not run")


def all_of(papers: Iterable[Paper], folder: Path = RESULTS) -> list[Judged]:
    """All verdicts: paper by paper, what is computed first."""
    found = []
    for paper in papers:
        there = dict.fromkeys(scale for claim in paper.claims.values() for scale in scales(paper, claim))
        order = sorted(there, key=(COMPUTED, *SCALES).index)
        found += [Judged(paper, scale, judged(paper, scale, folder)) for scale in order]
    return found


def standings(found: Iterable[Judged]) -> list[Standing]:
    """How each paper stands: no readings of ours, no variants, nothing outside the paper's conditions."""
    where: dict[str, dict[str, Judged]] = {}
    papers: dict[str, Paper] = {}
    for one in found:
        papers[one.paper.name] = one.paper
        best = where.setdefault(one.paper.name, {})
        for id_, verdict in one.verdicts.items():
            published = counts(one.paper.claims[id_]) and one.refutation(id_) == "contradicts"
            if published and (id_ not in best or verdict.word != "not run"):
                best[id_] = one
    return [
        Standing(
            papers[name],
            {id_: one.scale for id_, one in best.items()},
            {id_: one.verdicts[id_] for id_, one in best.items()},
        )
        for name, best in where.items()
    ]


def counts(claim: Claim) -> bool:
    """Whether a claim has any verdict."""
    return not isinstance(claim, Report) and not claim.unjudged
