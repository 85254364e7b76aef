"""Cost of deciding open claims: the seeds that they lack, their runs, and how long these take."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from asyncfl.claims import kept
from asyncfl.claims.claim import Claim
from asyncfl.claims.files import Paper
from asyncfl.claims.kept import RESULTS, Number
from asyncfl.claims.plan import ClaimPlan
from asyncfl.claims.seconds import Time
from asyncfl.claims.verdicts.looks import SEEDS
from asyncfl.claims.verdicts.readings import readings
from benchmarks.suite.suite import PlannedRun

OPEN = {"not run", "undecided", "leans for", "leans against", "compatible"}


@dataclass(frozen=True, slots=True)
class Open:
    """A claim that is not decided, and what would decide it."""

    claim: Claim
    seeds: tuple[int, ...]  # missing up to the look that would decide it
    next_look: tuple[int, ...]  # those of them that its next look needs
    runs: Mapping[str, Time]  # key of each of its runs under one seed → what it takes

    def times(self, seeds: Iterable[int]) -> dict[tuple[str, int], Time]:
        """Return what its runs under these seeds take; claims share runs, of one key and seed."""
        return {(key, seed): time for seed in seeds for key, time in self.runs.items()}

    @property
    def seconds(self) -> float:
        """Of one core, for all runs; claims share runs."""
        return sum(time.core for time in self.times(self.seeds).values())


def still_open(
    paper: Paper,
    scale: str,
    claims: Iterable[Claim],
    time: Callable[[PlannedRun], Time],
    folder: Path = RESULTS,
) -> list[Open]:
    """The claims that more seeds may decide, the quickest first; claims may share runs."""
    verdicts = {reading.claim.id: reading.verdict for reading in readings(paper, scale, folder)}
    plan = ClaimPlan(paper, scale, (), (0,))  # all seeds take as long
    have = seeds_of(current(paper, scale, kept.read(kept.path(paper.name, scale, folder)), {0: plan}))
    undecided, times = [], dict[str, Time]()
    for claim in claims:
        verdict, there = verdicts[claim.id], have.get(claim.id, set())
        looks = claim.looks or SEEDS
        later = [look for look in looks if not set(range(look)) <= there]
        if claim.unjudged or (verdict.word not in OPEN and there) or not later:
            continue
        enough = next((look for look in later if look >= (verdict.more or 0)), later[-1])
        missing, soon = (tuple(sorted(set(range(look)) - there)) for look in (enough, later[0]))
        runs = {run.key: run for by_seed in plan.picked(claim).values() for run in by_seed[0]}
        times |= {key: time(run) for key, run in runs.items() if key not in times}
        undecided.append(Open(claim, missing, soon, {key: times[key] for key in runs}))
    return sorted(undecided, key=lambda waiting: waiting.seconds)


def current(
    paper: Paper, scale: str, stored: Sequence[Number], plans: dict[int, ClaimPlan] | None = None
) -> list[Number]:
    """The stored numbers of the runs that entries select now; none for an entry that was changed.

    A change concerns all seeds of an entry, so that the first of them is compared; `plans` are those of a
    single seed that are expanded already.
    """
    by_claim: dict[str, list[Number]] = {}
    for number in stored:
        if number.seed is not None:
            by_claim.setdefault(number.claim, []).append(number)
    plans = {} if plans is None else plans
    up_to_date = []
    for id_, numbers in by_claim.items():
        claim = paper.claims.get(id_)
        if claim is None or scale not in paper.scales(claim):
            continue
        seed = min(number.seed for number in numbers if number.seed is not None)
        picked = plans.setdefault(seed, ClaimPlan(paper, scale, (), (seed,))).picked(claim)
        keys = {name: [run.key for run in by_seed[seed]] for name, by_seed in picked.items()}
        if all(number.runs.split() == keys.get(number.sample) for number in numbers if number.seed == seed):
            up_to_date += numbers
    return up_to_date


def seeds_of(numbers: Iterable[Number]) -> dict[str, set[int]]:
    """The seeds for which all samples of a claim have a number, by claim."""
    by_claim: dict[str, dict[str, set[int]]] = {}
    for number in numbers:
        if number.seed is not None:
            by_claim.setdefault(number.claim, {}).setdefault(number.sample, set()).add(number.seed)
    return {claim: set.intersection(*seeds.values()) for claim, seeds in by_claim.items()}


def merged(paper: Paper, scale: str, file: Path, fresh: Sequence[Number]) -> list[Number]:
    """New numbers, with the stored ones of other seeds of the same claims that are still valid."""
    renewed = {(number.claim, number.seed) for number in fresh}
    claims = {number.claim for number in fresh}
    stored = [number for number in kept.read(file) if number.claim in claims]
    older = [number for number in stored if (number.claim, number.seed) not in renewed]
    return sorted([*current(paper, scale, older), *fresh], key=lambda number: number.seed or 0)
