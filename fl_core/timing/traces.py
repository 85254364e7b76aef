"""Files of recorded job lengths, rows of `client,length,…`, and code shared with other files of clients.

The law `trace` of durations reads lengths here; presence and columns use the numbering of clients by ids.
A first row without a number is a header, and skipped. Clients are numbers from 0 on; if one of them is a
text, such as a phone's serial number, all are numbered in order of first appearance.

Fixed: the forms of files that users have (docs/how-to/trace.md), and the numbering of clients.
"""

import functools
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import TypeVar

from fl_core import file_reading, keys, user_code
from fl_core.parts import exact
from fl_core.streams import stream
from fl_core.text import many

T = TypeVar("T")  # the content of a file for a client
TIME_UNITS = {  # word in the header of a trace → seconds
    "milliseconds": Fraction(1, 1000),
    "seconds": Fraction(1),
    "minutes": Fraction(60),
    "hours": Fraction(3600),
    "days": Fraction(86400),
}
DIGITS = 18  # of a client's number; what is longer is a name
MOST_BYTES = 200_000_000  # of a file, traces of presence included


def digest(path: Path) -> str:
    """Return the digest of a trace file's content.

    Raises:
        ValueError: The file cannot be read as a trace.
    """
    identity = keys.digest(content(path))
    _jobs(path, identity)
    return identity


def clients(path: Path) -> int:
    """Return the number of clients in a trace file.

    Raises:
        ValueError: The file cannot be read as a trace.
    """
    return len(_jobs(path, digest(path)))


def read(path: Path, digest: str, n: int, seed: int | None = None) -> tuple[tuple[Fraction, ...], ...]:
    """Return the lengths of the jobs of n clients, in order; see `of_clients`.

    Args:
        path: The trace file.
        digest: The digest of its content.
        n: The number of clients.
        seed: Draws n of the file's clients; None takes clients 0 … n − 1.

    Raises:
        ValueError: The file has another digest, fewer clients than n or, without a seed, lacks one of them.
    """
    return tuple(map(tuple, of_clients(path, _jobs(path, digest), n, seed)))


def of_clients(path: Path, recorded: Mapping[int, T], n: int, seed: int | None) -> list[T]:
    """Return the content of a file for n clients; further clients are left out.

    Draws are nested: under one seed, the clients of a smaller n are among those of a larger one. Files of
    the same clients give the same ones.

    Args:
        path: The trace file.
        recorded: What the file has, by the clients' numbers.
        n: The number of clients.
        seed: Draws n of the file's clients; None takes clients 0 … n − 1.

    Raises:
        ValueError: The file has fewer clients than n or, without a seed, lacks one of them.
    """
    if len(recorded) < n:
        raise ValueError(
            f"trace file {path}: has {many(len(recorded), 'client')}, but the problem has {n}: "
            "reduce problem.clients to the number of the file"
        )
    if seed is not None:
        drawn = stream(seed, "trace").permutation(sorted(recorded))[:n]
        return [recorded[client] for client in drawn.tolist()]
    for client in range(n):
        if client not in recorded:
            raise ValueError(
                f"trace file {path}: no client {client}; it has {many(len(recorded), 'client')}, "
                f"numbered from {min(recorded)} to {max(recorded)}. Number them from 0, or write "
                f"'clients: random' to draw {n} of them"
            )
    return [recorded[client] for client in range(n)]


def ids(path: Path, digest: str, n: int | None = None, seed: int | None = None) -> list[str]:
    """Return the ids of a file's clients by number, or only of the n clients taking part.

    Args:
        path: A trace of durations or of presence.
        digest: The digest of its content.
        n: The number of clients; None: all of the file.
        seed: Draws n of the file's clients; see `of_clients`.

    Raises:
        ValueError: The file has another digest, or does not fit n clients.
    """
    named = _ids(path, digest)
    all_ids = [named[client] for client in sorted(named)]
    return all_ids if n is None else of_clients(path, named, n, seed)


def number(path: Path, digest: str, client: str) -> int:
    """Return the number of a client of a file by id.

    Raises:
        ValueError: The file has another digest, or no such client.
    """
    numbers = _numbers(path, digest)
    if client not in numbers:
        raise ValueError(f"trace file {path}: no row for client '{client}'")
    return numbers[client]


@functools.lru_cache(maxsize=4)
def _numbers(path: Path, digest: str) -> Mapping[str, int]:
    """Return the number of each client by id."""
    return {client: number for number, client in _ids(path, digest).items()}


@functools.lru_cache(maxsize=4)
def _ids(path: Path, digest: str) -> Mapping[int, str]:
    """Return the normal id of each client by number; ValueError for two spellings of one id."""
    spelt = {client: [client] for _, (client, *_) in rows(path, content(path, digest, MOST_BYTES))}
    named: dict[str, int] = {}
    for number, (spelling, *_) in numbered(spelt).items():
        if named.setdefault(normal_id(spelling), number) != number:
            raise ValueError(
                f"trace file {path}: client '{normal_id(spelling)}' is repeated, also as '{spelling}': write "
                "each client's id in one way"
            )
    return {number: client for client, number in named.items()}


def normal_id(client: str) -> str:
    """Return a client's id in normal form: 7 and 07 are equal."""
    return str(int(client)) if client.isdecimal() and len(client) <= DIGITS else client


def content(path: Path, digest: str = "", limit: int = file_reading.MOST_BYTES) -> bytes:
    """Return the content of a trace file; raise ValueError if unreadable, or not of the digest given."""
    return user_code.content("trace file", path, digest, limit)


@functools.lru_cache(maxsize=4)
def time_unit(path: Path, digest: str) -> str:
    """Return the unit of lengths in the header of a trace file, for example seconds; empty if unnamed."""
    line = content(path, digest).lstrip().partition(b"\n")[0]
    names = [cell.lower() for _, cells in file_reading.rows(line) for cell in cells[1:2]]
    return names[0] if names and names[0] in TIME_UNITS else ""


def rows(path: Path, data: bytes) -> Iterator[tuple[int, list[str]]]:
    """Yield line number and cells of each row except empty rows and headers."""
    try:
        for line, cells in file_reading.rows(data):
            if line == 1 and not cells[0]:
                raise ValueError(
                    "line 1: the first column has no name. Write a table without its index, in pandas with "
                    "index=False"
                )
            if line > 1 or any(map(_is_number, cells)):
                yield line, cells
    except ValueError as error:
        raise ValueError(f"trace file {path}, {error}") from None


@functools.lru_cache(maxsize=4)
def _jobs(path: Path, digest: str) -> Mapping[int, Sequence[Fraction]]:
    """Return the lengths of each client's jobs in order, by number."""
    jobs: dict[str, list[Fraction]] = defaultdict(list)
    for line, (client, *cells) in rows(path, content(path, digest)):
        try:
            lengths = [exact(cell) for cell in cells]
        except ValueError:
            lengths = []
        if not client or client.startswith("-") or min(lengths, default=0) <= 0:
            raise ValueError(
                f"trace file {path}, line {line}: must be a client and the lengths of its jobs, "
                f"such as '3,0.5,1.25', not '{','.join([client, *cells])}'"
            )
        jobs[client] += lengths
    return numbered(jobs)


def numbered(recorded: Mapping[str, Sequence[T]]) -> Mapping[int, Sequence[T]]:
    """Return the content of a file by client number: as written, or by order of appearance if not numbers."""
    if not all(client.isdecimal() and len(client) <= DIGITS for client in recorded):
        return dict(enumerate(recorded.values()))
    by_number: dict[int, list[T]] = defaultdict(list)
    for client, items in recorded.items():  # 7 and 07 are one client
        by_number[int(client)] += items
    return by_number


def _is_number(cell: str) -> bool:
    try:
        exact(cell)
    except ValueError:
        return False
    return True
