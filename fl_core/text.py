"""Counts and lists in words, the order of labels, and suggestions for misspelt words.

Free: no code parses these texts. Labels contain some (`counted`, `varying`), and so do published pages.
"""

import difflib
import itertools
import re
from collections.abc import Iterable, Sequence, Sized
from math import isnan
from typing import Any


def many(n: int, thing: str) -> str:
    """Return a count with a noun: 1 run, 84 runs, 1 strategy, 7 strategies."""
    if n == 1:
        return f"1 {thing}"
    return f"{n:,} {thing[:-1]}ies" if thing.endswith("y") else f"{n:,} {thing}s"


def miscounted(values: Sized, clients: int) -> str:
    """Return a message about a list of wrong length, as "2 given for 3 clients; give one for each"."""
    return f"{len(values)} given for {many(clients, 'client')}; give one for each"


def duration(seconds: float) -> str:
    """Return seconds in readable units: 4.2 s, 12 min, 3.5 h; a dash for NaN."""
    if isnan(seconds):
        return "–"
    if seconds < 0.1:
        return "< 0.1 s"
    if seconds < 100:
        return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"


def counted(values: Iterable[object]) -> str:
    """Return a list of values, repeated values counted: (10 × 0.5, 0.1)."""
    rows = [(len(list(same)), value) for value, same in itertools.groupby(values)]
    return f"({', '.join(f'{times} × {value}' if times > 1 else str(value) for times, value in rows)})"


def listed(parts: Sequence[str]) -> str:
    """Return parts of a sentence joined: A; A and B; A, B and C."""
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def varying(lists: Sequence[Sequence[str]]) -> list[tuple[str, ...]]:
    """Return each list without the entries that are common to all lists."""
    shared = set.intersection(*map(set, lists))
    return [tuple(entry for entry in entries if entry not in shared) for entries in lists]


def nearest(word: str, names: Iterable[str]) -> str:
    """Return `. Did you mean 'x'?` for a misspelt word, or a full stop."""
    near = difflib.get_close_matches(word, list(names), n=1, cutoff=0.5)
    return f". Did you mean '{near[0]}'?" if near else "."


def unknown(thing: str, name: object, valid_names: Iterable[str]) -> str:
    """Return a message about an unknown name, with a suggestion and all valid names."""
    names = list(valid_names)
    return f"unknown {thing} '{name}'{nearest(str(name), names)} Available: {', '.join(names) or 'none'}"


def natural(text: str) -> list[Any]:
    """Return a sort key with 'F8' before 'F80' and 'FedBuff 5' before 'FedBuff 10'."""
    parts = re.split(r"(\d+(?:\.\d+)?)", text.casefold())
    return [(0, float(part), "") if at % 2 else (1, 0.0, part) for at, part in enumerate(parts)]
