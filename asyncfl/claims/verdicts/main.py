"""What became of a paper's main results: a word from all readings of each, by one rule.

    reproduced                every decided reading holds, and one has the paper's arrangement and workload
    reproduced on stand-ins   every decided reading holds, none of them with both
    depends on the reading    some hold and some do not
    not reproduced            none holds, but in corners that the main result names
    undecided                 readings have run, none is decided
    not run                   none has run

A comparison that is equal within its margin, or without any effect, is decided and does not hold. A reading
that leans, with all of its seeds on one side where no test decides, gives no word, but takes a uniform one
away: where decided readings hold and one leans against, or none holds and one leans for, the word is *depends
on the reading*. What is compatible with a printed number, and imprecise, counts on neither side.
"""

import fnmatch
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from asyncfl.claims.files import MainResult, Paper
from asyncfl.claims.verdicts.readings import Reading
from asyncfl.claims.verdicts.rules import Word

MainWord = Literal[
    "reproduced",
    "reproduced on stand-ins",
    "depends on the reading",
    "not reproduced",
    "undecided",
    "not run",
]
DECIDED = frozenset({"confirmed", "refuted", "equal", "no effect"})
VALUES = 5  # of a condition, at most, to be shown


@dataclass(frozen=True, slots=True)
class Divide:
    """The condition that all readings have, and that best separates those that hold from the others."""

    name: str  # arrangement, workload, scale, or one of the entries' case
    counts: Mapping[str, tuple[int, int]]  # value → holding and decided readings


@dataclass(frozen=True, slots=True)
class Outcome:
    """A main result, with all of its readings."""

    paper: Paper
    result: MainResult
    readings: tuple[Reading, ...]

    @property
    def decided(self) -> list[Reading]:
        """The readings with a decision."""
        return [reading for reading in self.readings if reading.word in DECIDED]

    @property
    def holding(self) -> list[Reading]:
        """The readings that hold."""
        return [reading for reading in self.readings if reading.word == "confirmed"]

    def leaning(self, word: Word) -> bool:
        """Whether a reading outside of the named corners leans so."""
        ids = {reading.claim.id for reading in self.readings if reading.word == word}
        return bool(ids - set(_match(ids, self._named)))

    @property
    def _named(self) -> list[str]:
        return [pattern for patterns in self.result.corners.values() for pattern in patterns]

    @property
    def corners(self) -> list[str]:
        """The named corners in which readings hold."""
        ids = [reading.claim.id for reading in self.holding]
        return [name for name, patterns in self.result.corners.items() if any(_match(ids, patterns))]

    @property
    def word(self) -> MainWord:
        """What became of it."""
        decided, holding = self.decided, self.holding
        if not decided:
            return "undecided" if any(reading.ran for reading in self.readings) else "not run"
        if len(holding) == len(decided) and not self.leaning("leans against"):
            of_the_paper = any(reading.arrangement == reading.workload == "paper" for reading in decided)
            return "reproduced" if of_the_paper else "reproduced on stand-ins"
        ids = [reading.claim.id for reading in holding]
        if len(list(_match(ids, self._named))) < len(ids) or self.leaning("leans for"):
            return "depends on the reading"
        return "not reproduced" if len(holding) < len(decided) else "depends on the reading"

    @property
    def divide(self) -> Divide | None:
        """What it depends on; None where it does not, or no condition is better than the majority."""
        decided, holds = self.decided, len(self.holding)
        best, least = None, float(min(holds, len(decided) - holds))
        each = [(_conditions(reading), reading.word == "confirmed") for reading in decided]
        for name in each[0][0] if each else ():
            if not all(name in conditions for conditions, _ in each):
                continue
            counts: dict[str, tuple[int, int]] = {}
            for conditions, held in each:
                kept, n = counts.get(conditions[name], (0, 0))
                counts[conditions[name]] = kept + held, n + 1
            if len(counts) > VALUES:
                continue
            wrong = sum(min(kept, n - kept) for kept, n in counts.values())
            if (
                cost := wrong + (len(counts) - 1) / 2
            ) < least:  # a value more has to tell half a reading more
                least, best = cost, Divide(name, counts)
        return best


def outcomes(readings: Sequence[Reading]) -> list[Outcome]:
    """What became of each paper's main results."""
    papers = {reading.paper.name: reading.paper for reading in readings}
    by_id: dict[tuple[str, str], list[Reading]] = {}
    for reading in readings:
        by_id.setdefault((reading.paper.name, reading.claim.id), []).append(reading)
    return [
        Outcome(
            paper,
            result,
            tuple(
                reading
                for id_ in dict.fromkeys(_match(paper.claims, result.readings))
                for reading in by_id.get((paper.name, id_), ())
            ),
        )
        for paper in papers.values()
        for result in paper.main.values()
    ]


def _match(ids: Iterable[str], patterns: Iterable[str]) -> Iterable[str]:
    given = list(patterns)
    return (id_ for id_ in ids if any(fnmatch.fnmatchcase(id_, pattern) for pattern in given))


def _conditions(reading: Reading) -> dict[str, str]:
    words = reading.paper.words
    return {
        "arrangement": reading.arrangement,
        "workload": reading.workload,
        "scale": reading.scale,
        **{
            words.get(name, name): words.get(str(value), str(value))
            for name, value in reading.claim.case.items()
        },
    }
