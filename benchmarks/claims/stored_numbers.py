"""Numbers behind verdicts, as small files of the repository: a row for each claim, sample and seed.

`asyncfl claims run` writes them, and all verdicts and pages are made from them without repeating the runs:
they are results, and are never edited by hand. A file is `results/<paper>-<scale>.csv`; the file of the same
name in `results/origins/` explains each number in the column `origin`: commit, versions and, in recent ones,
the digest of the data.

    claim,sample,seed,value,runs,when,origin
    F-weights-FP/mnist,a,0,0.2893,1f6a…,2026-11-21T10:54:33+00:00,1

    origin,made_with
    1,"0123abc, python 3.11.7 torch 2.13.0, data 89ab…"

Fixed: columns, ids and values. New numbers come from `asyncfl claims run` alone.
"""

import csv
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import astuple, dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from filelock import FileLock

from benchmarks.claims.files import FOLDER
from benchmarks.errors import UserError
from benchmarks.mlflow_store.provenance import has_commit
from fl_core import file_reading
from fl_core.recording.atomic import whole

T = TypeVar("T")

RESULTS = FOLDER / "results"
COLUMNS = ("claim", "sample", "seed", "value", "runs", "when", "origin")
ORIGINS = "origins"  # folder beside the numbers
ORIGIN_COLUMNS = ("origin", "made_with")
TRACED_SINCE = "2026-11-27T00:00:00+00:00"  # numbers of runs that ended later must be traceable
# Commits of earlier numbers that are missing in the repository.
LOST_COMMITS = frozenset(
    {
        "c747dbf48e4602b8a7242d2d9f464d3cb04c20d1",
        "9b7665f336738d3c5c119d4e6fc8dc1fccc9c673",
        "92014c9d02f8973583eba011b755d5a18593408d",
        "2d316d9ea826f6dde8e77c926c520bbed6dbae31",
    }
)


@dataclass(frozen=True, slots=True)
class Number:
    """A number of a claim, with the origin."""

    claim: str
    sample: str
    seed: int
    value: float  # NaN where the run diverged, ∞ where a target was never reached
    runs: str  # keys of the runs from which it was computed
    when: str  # end of the last of these runs, UTC
    origin: str  # commit, versions and, in recent numbers, digest of the data


def path(paper: str, scale: str, folder: Path = RESULTS) -> Path:
    """Return the file with the numbers of a paper at a scale."""
    return folder / f"{paper}-{scale}.csv"


def read(file: Path) -> list[Number]:
    """Return all numbers of a file; none without the file. UserError, with the line, if damaged."""
    if not file.exists():
        return []
    origins = _origins(file)

    def number(cells: list[str]) -> Number:
        claim, sample, seed, value, runs, date, origin = cells
        return Number(claim, sample, int(seed), float(value), runs, date, origins[origin])

    return table(file, COLUMNS, number)


def table(file: Path, columns: Sequence[str], row: Callable[[list[str]], T]) -> list[T]:
    """Return the result of `row` for the cells of each row; none without the file.

    Raises:
        UserError: The file has other columns or an invalid row; the message names the line.
    """
    if not file.exists():
        return []
    lines = _lines(file)
    if tuple(lines[:1]) != (",".join(columns),):
        raise UserError(f"{file}:1: is damaged: the columns must be {', '.join(columns)}. Restore the file")
    rows, entries = csv.reader(lines[1:], strict=True), []
    try:
        for cells in rows:
            if len(cells) != len(columns):
                raise ValueError
            entries.append(row(cells))
    except (ValueError, KeyError, csv.Error):
        line = 1 + rows.line_num
        raise UserError(
            f"{file}:{line}: is damaged: the row must have {', '.join(columns)}. Restore the file"
        ) from None
    return entries


def _origins(file: Path) -> dict[str, str]:
    """Return commit and versions by the number used in the rows of a file."""
    return dict(table(_origins_of(file), ORIGIN_COLUMNS, lambda cells: (cells[0], cells[1])))


def _origins_of(file: Path) -> Path:
    return file.parent / ORIGINS / file.name


def _lines(file: Path) -> list[str]:
    try:
        return file_reading.text(file).splitlines()
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise UserError(f"{file}: cannot be read: {reason}") from None


def values(numbers: Iterable[Number]) -> dict[str, dict[str, dict[int, float]]]:
    """Return numbers by claim, sample and seed."""
    by_claim: dict[str, dict[str, dict[int, float]]] = {}
    for number in numbers:
        by_claim.setdefault(number.claim, {}).setdefault(number.sample, {})[number.seed] = number.value
    return by_claim


def commits(origin: str) -> list[str]:
    """Return the commits named by an origin, with `+` for changed files; none for `no commit`."""
    named = origin.partition(",")[0]
    return [] if named == "no commit" else named.split()


@cache
def traceable(origin: str) -> bool:
    """Return whether an origin's commits are from the repository, without uncommitted changes."""
    named = commits(origin)
    return bool(named) and not any(name.endswith("+") or name in LOST_COMMITS for name in named)


def untraceable(numbers: Iterable[Number], folder: Path = FOLDER) -> list[str]:
    """Return the inadmissible origins: changed trees, and commits not in the repository."""
    origins = dict.fromkeys(number.origin for number in numbers)
    return [
        origin
        for origin in origins
        if not traceable(origin) or not all(has_commit(name, folder) for name in commits(origin))
    ]


@contextmanager
def changing() -> Iterator[None]:
    """Keep other processes from changing stored numbers, because each adds to the numbers read before."""
    from fl_core.problems.data.files import cache_dir

    folder = cache_dir()  # not beside the numbers, which are in a repository
    folder.mkdir(parents=True, exist_ok=True)
    with FileLock(folder / "claims.lock"):
        yield


def merge(file: Path, order: Sequence[str], fresh: Iterable[Number]) -> None:
    """Store numbers in place of older numbers of equal claims; numbers of unknown claims are dropped.

    Call it within `changing`, so that no other process changes the file.
    """
    fresh = list(fresh)
    renewed = {number.claim for number in fresh}
    old = [number for number in read(file) if number.claim not in renewed]
    place = {claim: at for at, claim in enumerate(order)}
    current = (number for number in (*old, *fresh) if number.claim in place)
    numbers = sorted(current, key=lambda number: place[number.claim])
    origins = {origin: name for name, origin in _origins(file).items()}
    for (
        number
    ) in numbers:  # origins are only added, so that the numbers stay readable if the second write fails
        origins.setdefault(number.origin, str(len(origins) + 1))
    write(_origins_of(file), ORIGIN_COLUMNS, ((name, origin) for origin, name in origins.items()))
    rows = ((*astuple(number)[:-1], origins[number.origin]) for number in numbers)
    write(file, COLUMNS, rows)


def write(file: Path, columns: Sequence[str], rows: Iterable[Iterable[Any]]) -> None:
    """Write a table whole or not at all; raises OSError."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with whole(file) as partial, partial.open("w", newline="", encoding="utf-8") as lines:
        writer = csv.writer(lines, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(rows)
