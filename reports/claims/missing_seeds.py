"""Cost of deciding open claims, in missing seeds and runs.

`asyncfl claims run` starts with the claims that need the fewest runs, and stores numbers with `merged`.

Fixed: `current` and `merged`, by which stored numbers stay or go. Free: the order in which claims are run.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.claims import stored_numbers
from benchmarks.claims.claim import Claim
from benchmarks.claims.files import Paper
from benchmarks.claims.plan import ClaimPlan, plan_of_seed
from benchmarks.claims.stored_numbers import RESULTS, Number
from reports.claims.readings import readings
from reports.claims.verdicts import OPEN


@dataclass(frozen=True, slots=True)
class Open:
    """An open claim, with the seeds and runs needed for a decision."""

    claim: Claim
    seeds: tuple[int, ...]  # missing seeds up to the deciding look
    next_look: tuple[int, ...]  # missing seeds up to the next look
    runs: frozenset[str]  # keys of the claim's runs under one seed

    def under(self, seeds: Iterable[int]) -> set[tuple[str, int]]:
        """Return the runs under the given seeds as pairs of key and seed; claims share runs."""
        return {(key, seed) for seed in seeds for key in self.runs}

    @property
    def missing(self) -> int:
        """Number of runs missing up to the deciding look."""
        return len(self.runs) * len(self.seeds)


def still_open(plan: ClaimPlan, folder: Path = RESULTS) -> list[Open]:
    """Return claims of a plan that more seeds may decide, fewest missing runs first; runs may be shared."""
    paper, scale = plan.paper, plan.scale
    verdicts = {reading.claim.id: reading.verdict for reading in readings(paper, scale, folder)}
    stored = stored_numbers.read(stored_numbers.path(paper.name, scale, folder))
    values = stored_numbers.values(current(paper, scale, stored))
    have = {id_: set.intersection(*map(set, samples.values())) for id_, samples in values.items()}
    undecided = []
    for claim in plan.claims:
        verdict, stored_seeds = verdicts[claim.id], have.get(claim.id, set())
        later = [look for look in claim.plan if not set(range(look)) <= stored_seeds]
        if claim.unjudged or (verdict.word not in {"not run", *OPEN} and stored_seeds) or not later:
            continue
        enough = next((look for look in later if look >= (verdict.more or 0)), later[-1])
        missing, soon = (tuple(sorted(set(range(look)) - stored_seeds)) for look in (enough, later[0]))
        picked = plan_of_seed(paper, scale, 0).picked(claim)  # the keys under seed 0 stand for all seeds
        runs = frozenset(run.key for by_seed in picked.values() for run in by_seed[0])
        undecided.append(Open(claim, missing, soon, runs))
    return sorted(undecided, key=lambda waiting: waiting.missing)


def current(paper: Paper, scale: str, stored: Sequence[Number]) -> list[Number]:
    """Return stored numbers of the runs selected by current entries; none for a changed entry.

    A changed entry has other keys under every seed, so only the first seed is compared.
    """
    by_claim: dict[str, list[Number]] = {}
    for number in stored:
        by_claim.setdefault(number.claim, []).append(number)
    up_to_date = []
    for id_, numbers in by_claim.items():
        claim = paper.claims.get(id_)
        if claim is None or scale not in paper.scales(claim):
            continue
        seed = min(number.seed for number in numbers)
        picked = plan_of_seed(paper, scale, seed).picked(claim)
        keys = {name: [run.key for run in by_seed[seed]] for name, by_seed in picked.items()}
        if all(number.runs.split() == keys.get(number.sample) for number in numbers if number.seed == seed):
            up_to_date += numbers
    return up_to_date


def merged(paper: Paper, scale: str, file: Path, fresh: Sequence[Number]) -> list[Number]:
    """Return fresh numbers, merged with the claims' valid stored numbers of other seeds."""
    renewed = {(number.claim, number.seed) for number in fresh}
    claims = {number.claim for number in fresh}
    stored = [number for number in stored_numbers.read(file) if number.claim in claims]
    older = [number for number in stored if (number.claim, number.seed) not in renewed]
    return sorted([*current(paper, scale, older), *fresh], key=lambda number: number.seed)
