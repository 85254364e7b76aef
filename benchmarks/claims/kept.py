"""The numbers behind verdicts, as small files of the repository: one row a claim, sample and seed.

`benchmarks/claims/results/<paper>-<scale>.csv`; what is computed without runs has `computed` in place of a
scale. With them, verdicts can be made again, and compared, without repeating the runs. The first lines say
from which commits and versions the rows come:

    # 1: 0123abc, python 3.11.7 torch 2.13.0
    claim,sample,seed,value,runs,when,origin
    F-weights-FP/mnist,a,0,0.2893,1f6a…,2026-11-21T10:54:33+00:00,1
"""

from __future__ import annotations

import csv
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.claims.files import FOLDER

RESULTS = FOLDER / "results"
COMPUTED = "computed"  # stands where a scale would
COLUMNS = ("claim", "sample", "seed", "value", "runs", "when", "origin")


@dataclass(frozen=True, slots=True)
class Number:
    """One number of a claim, and where it comes from."""

    claim: str
    sample: str  # of what is computed: its place in the answer
    seed: int | None  # None for what is computed
    value: float  # NaN where the run diverged, ∞ where a target was never reached
    runs: str  # keys of the runs that it was read off
    when: str  # the last of them ended, UTC
    origin: str  # commit and versions


def path(paper: str, scale: str, folder: Path = RESULTS) -> Path:
    """The file of a paper's numbers at a scale."""
    return folder / f"{paper}-{scale}.csv"


def read(file: Path) -> list[Number]:
    """All numbers of a file; none if it is not there."""
    if not file.is_file():
        return []
    with file.open(newline="", encoding="utf-8") as lines:
        origins, rows = {}, []
        for text in lines:
            if text.startswith("# "):
                name, _, origin = text.removeprefix("# ").strip().partition(": ")
                origins[name] = origin
            else:
                rows.append(text)
        return [_number(row, origins) for row in csv.DictReader(rows)]


def _number(row: dict[str, Any], origins: dict[str, str]) -> Number:
    seed = int(row["seed"]) if row["seed"] else None
    return Number(**{**row, "seed": seed, "value": float(row["value"]), "origin": origins[row["origin"]]})


def values(numbers: Iterable[Number]) -> dict[str, dict[str, dict[int, float]]]:
    """Claim → sample → seed → number; what has no seed stands under −1."""
    found: dict[str, dict[str, dict[int, float]]] = {}
    for one in numbers:
        seed = -1 if one.seed is None else one.seed
        found.setdefault(one.claim, {}).setdefault(one.sample, {})[seed] = one.value
    return found


def merge(file: Path, order: Sequence[str], fresh: Iterable[Number]) -> None:
    """Store numbers in the place of older ones of the same claims; those of unknown claims are dropped."""
    fresh = list(fresh)
    renewed = {one.claim for one in fresh}
    kept = [one for one in read(file) if one.claim not in renewed]
    place = {claim: at for at, claim in enumerate(order)}
    numbers = sorted((one for one in (*kept, *fresh) if one.claim in place), key=lambda one: place[one.claim])
    file.parent.mkdir(parents=True, exist_ok=True)
    partial = file.with_name(f".{file.name}.{os.getpid()}")
    origins = {origin: str(at) for at, origin in enumerate(dict.fromkeys(one.origin for one in numbers), 1)}
    with partial.open("w", newline="", encoding="utf-8") as lines:
        lines.writelines(f"# {name}: {origin}\n" for origin, name in origins.items())
        writer = csv.writer(lines, lineterminator="\n")
        writer.writerow(COLUMNS)
        for one in numbers:
            seed = "" if one.seed is None else one.seed
            row = (one.claim, one.sample, seed, one.value, one.runs, one.when, origins[one.origin])
            writer.writerow(row)
    partial.replace(file)
