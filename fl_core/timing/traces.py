"""Files of recorded job lengths: rows of `client,length,…`, a client's jobs in order.

A first row without a number is a header, and skipped. Clients are numbers from 0 on; if one of them is a
text, such as a phone's serial number, all are numbered in order of first appearance.
"""

import csv
import functools
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from pathlib import Path

from fl_core import keys, reading
from fl_core.parts import exact
from fl_core.streams import stream
from fl_core.text import many


def digest(path: Path) -> str:
    """Return the digest of a trace file's content.

    Raises:
        ValueError: The file cannot be read as a trace.
    """
    identity = keys.digest(_content(path))
    _jobs(path, identity)
    return identity


def clients(path: Path) -> int:
    """Return the number of clients in a trace file.

    Raises:
        ValueError: The file cannot be read as a trace.
    """
    return len(_jobs(path, digest(path)))


def read(path: Path, digest: str, n: int, seed: int | None = None) -> tuple[tuple[Fraction, ...], ...]:
    """Return the lengths of the jobs of n clients, in order.

    Further clients of the file are left out. Draws are nested: under one seed, the clients of a smaller n are
    among those of a larger one.

    Args:
        path: The trace file.
        digest: The digest of its content.
        n: The number of clients.
        seed: Draws n of the file's clients; None takes clients 0 … n − 1.

    Raises:
        ValueError: The file has another digest, fewer clients than n or, without a seed, lacks one of them.
    """
    jobs = _jobs(path, digest)
    if len(jobs) < n:
        raise ValueError(f"trace file {path}: has jobs of {many(len(jobs), 'client')}, and {n} are wanted")
    if seed is not None:
        drawn = stream(seed, "trace").permutation(sorted(jobs))[:n]
        return tuple(tuple(jobs[client]) for client in drawn.tolist())
    for client in range(n):
        if client not in jobs:
            raise ValueError(
                f"trace file {path}: no job of client {client}; it has {many(len(jobs), 'client')}, numbered "
                f"from {min(jobs)} to {max(jobs)}, and 'clients: random' draws {n} of them"
            )
    return tuple(tuple(jobs[client]) for client in range(n))


def _content(path: Path) -> bytes:
    try:
        return reading.content(path)
    except OSError as error:
        raise ValueError(f"trace file {path}: {error.strerror}") from None


@functools.lru_cache(maxsize=4)
def _jobs(path: Path, digest: str) -> Mapping[int, Sequence[Fraction]]:
    content = _content(path)
    if keys.digest(content) != digest:
        raise ValueError(f"trace file {path}: the content is not the one described, of digest {digest}")
    jobs: dict[str, list[Fraction]] = defaultdict(list)
    for number, row in _rows(path, content.decode("utf-8-sig", "replace")):
        cells = [cell.strip() for cell in row]
        if not any(cells) or (number == 1 and not any(map(_is_number, cells))):
            continue
        try:
            lengths = [exact(cell) for cell in cells[1:]]
        except ValueError:
            lengths = []
        if not cells[0] or cells[0].startswith("-") or min(lengths, default=0) <= 0:
            raise ValueError(
                f"trace file {path}, line {number}: a row is a client and lengths of its jobs,"
                f" such as '3,0.5,1.25', not '{','.join(row)}'"
            )
        jobs[cells[0]] += lengths
    return _numbered(jobs)


def _rows(path: Path, text: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the number and the cells of each row."""
    rows = csv.reader(text.splitlines())
    try:
        yield from enumerate(rows, 1)
    except csv.Error as error:
        raise ValueError(f"trace file {path}, line {rows.line_num}: {error}") from None


def _numbered(jobs: Mapping[str, Sequence[Fraction]]) -> Mapping[int, Sequence[Fraction]]:
    """Return jobs by the clients' numbers or, unless all are numbers, by order of appearance."""
    if not all(client.isdecimal() for client in jobs):
        return dict(enumerate(jobs.values()))
    numbered: dict[int, list[Fraction]] = defaultdict(list)
    for client, lengths in jobs.items():  # 7 and 07 are one client
        numbered[int(client)] += lengths
    return numbered


def _is_number(cell: str) -> bool:
    try:
        exact(cell)
    except ValueError:
        return False
    return True
