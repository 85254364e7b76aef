"""The numbers behind verdicts, as small files of the repository: one row per claim, sample and seed.

`asyncfl/claims/results/<paper>-<scale>.csv`; what is computed without runs has `computed` in place of a
scale. With them, verdicts can be made again, and compared, without repeating the runs. The first lines say
from which commits and versions the rows come:

    # 1: 0123abc, python 3.11.7 torch 2.13.0
    claim,sample,seed,value,runs,when,origin
    F-weights-FP/mnist,a,0,0.2893,1f6a…,2026-11-21T10:54:33+00:00,1
"""

import csv
from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

from asyncfl.claims.files import FOLDER
from benchmarks.errors import UserError
from fl_core import reading
from fl_core.recording.atomic import whole

RESULTS = FOLDER / "results"
COMPUTED = "computed"  # stands where a scale would
COLUMNS = ("claim", "sample", "seed", "value", "runs", "when", "origin")


@dataclass(frozen=True, slots=True)
class Number:
    """A number of a claim, and where it comes from."""

    claim: str
    sample: str  # of what is computed: its place in the answer
    seed: int | None  # None for what is computed
    value: float  # NaN where the run diverged, ∞ where a target was never reached
    runs: str  # keys of the runs that it was read off
    when: str  # end of the last of them, UTC
    origin: str  # commit and versions


def path(paper: str, scale: str, folder: Path = RESULTS) -> Path:
    """The file of a paper's numbers at a scale."""
    return folder / f"{paper}-{scale}.csv"


def read(file: Path) -> list[Number]:
    """All numbers of a file; none if it is not there. UserError, with the line, if it is damaged."""
    if not file.exists():
        return []
    try:
        lines = reading.text(file).splitlines()
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise UserError(f"{file}: cannot be read: {reason}") from None
    origins: dict[str, str] = {}
    for text in lines:
        if text.startswith("# "):
            name, _, origin = text.removeprefix("# ").partition(": ")
            origins[name] = origin
    head = next((at for at, text in enumerate(lines) if not text.startswith("# ")), len(lines))
    if tuple(lines[head : head + 1]) != (",".join(COLUMNS),):
        raise UserError(f"{file}:{head + 1}: is damaged: here stand the columns {', '.join(COLUMNS)}")
    rows, numbers = csv.reader(lines[head + 1 :], strict=True), []
    try:
        for claim, sample, seed, value, runs, when, origin in rows:
            at = int(seed) if seed else None
            numbers.append(Number(claim, sample, at, float(value), runs, when, origins[origin]))
    except (ValueError, KeyError, csv.Error):
        line = head + 1 + rows.line_num
        raise UserError(f"{file}:{line}: is damaged: no number of a claim, {', '.join(COLUMNS)}") from None
    return numbers


def values(numbers: Iterable[Number]) -> dict[str, dict[str, dict[int, float]]]:
    """Claim → sample → seed → number; what has no seed stands under −1."""
    by_claim: dict[str, dict[str, dict[int, float]]] = {}
    for number in numbers:
        seed = -1 if number.seed is None else number.seed
        by_claim.setdefault(number.claim, {}).setdefault(number.sample, {})[seed] = number.value
    return by_claim


def merge(file: Path, order: Sequence[str], fresh: Iterable[Number]) -> None:
    """Store numbers in the place of older ones of the same claims; those of unknown claims are dropped."""
    fresh = list(fresh)
    renewed = {number.claim for number in fresh}
    kept = [number for number in read(file) if number.claim not in renewed]
    place = {claim: at for at, claim in enumerate(order)}
    known = (number for number in (*kept, *fresh) if number.claim in place)
    numbers = sorted(known, key=lambda number: place[number.claim])
    distinct = dict.fromkeys(number.origin for number in numbers)
    origins = {origin: str(at) for at, origin in enumerate(distinct, 1)}
    rows = ((*astuple(number)[:-1], origins[number.origin]) for number in numbers)
    write(file, COLUMNS, rows, [f"# {name}: {origin}\n" for origin, name in origins.items()])


def write(
    file: Path, columns: Sequence[str], rows: Iterable[Iterable[Any]], head: Iterable[str] = ()
) -> None:
    """Write a table whole or not at all, below the lines of its head; raises OSError."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with whole(file) as partial, partial.open("w", newline="", encoding="utf-8") as lines:
        lines.writelines(head)
        writer = csv.writer(lines, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(rows)
