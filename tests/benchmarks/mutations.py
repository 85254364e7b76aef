"""Files and command lines with faults put in by Hypothesis: bytes changed anywhere, and values replaced."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

from hypothesis import strategies as st

# What YAML's and Python's constructors are known to stumble over, and texts that mean something elsewhere.
TOKENS = [
    *("2026-13-40", "0x", "0b", "0o9", "08", "9" * 5000, "1e999", "1e-999999999", ".nan", "-.inf", "1_0"),
    *("1:30", "~", "{}", "[]", "''", "*a", "&a [*a]", "<<: 1", "!!python/object:os.system x", "!!int x"),
    *("? ", "- ", ": ", "'1e999999999'", "'1/0'", "json:loads", "os:", ":", "../../x", '"\\uD800"', '"\\0"'),
    *('"\\UFFFFFFFF"', "%YAML 9", "\t", "\n", "#", "---", "...", "[" * 60, "[" * 100_000, "1" * 140_000),
    *("{a: " * 60, "𝛼", "\ufeff", "=cmd", "<b>", "true", "-1", "0", "1e3"),
]
VALUES: list[Any] = [
    *(None, True, False, 0, 1, -1, 2**40, 10**7, 0.5, -0.5, 1e300, 1e-300, float("nan"), float("inf")),
    *("", " ", "x", "1/0", "1e999999999", "1/3", "name", "fedbuff", "tuned", "*", "json:loads"),
    *("no_such:Thing", [], {}, [[]], [1, "x"], [None], {"name": None}, {"name": "x"}, {"name": "ace"}),
    *({"": 1}, {"a.b": [1]}, [1.5, "a", {}], "quadratic", "digits", "../x", "a\nb", "=cmd|x", 10**18),
    *(-(2**62), [0, 0], [1, 2, 3]),
]

values = st.one_of(
    st.sampled_from(VALUES),
    st.recursive(
        st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats() | st.text(max_size=8),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
        max_leaves=5,
    ),
)
faults = st.lists(st.tuples(st.integers(0, 2**20), st.sampled_from("=-+@"), values), min_size=1, max_size=3)
splices = st.lists(
    st.tuples(
        st.integers(0, 2**20),
        st.integers(0, 12),
        st.one_of(st.sampled_from(TOKENS).map(str.encode), st.binary(max_size=6)),
    ),
    min_size=1,
    max_size=4,
)


def spliced(text: bytes, edits: list[tuple[int, int, bytes]]) -> bytes:
    """A text in which, at some places, a few bytes give way to others."""
    for at, length, fresh in edits:
        place = at % (len(text) + 1)
        text = text[:place] + fresh + text[place + length :]
    return text


def changed(document: Any, edits: list[tuple[int, str, Any]]) -> Any:
    """A document in which values were replaced (=), left out (-), added (+) or exchanged (@)."""
    document = copy.deepcopy(document)
    for at, how, fresh in edits:
        places = list(_places(document))
        if not places:
            break
        holder, key = places[at % len(places)]
        if how == "=":
            holder[key] = copy.deepcopy(fresh)
        elif how == "-":
            del holder[key]
        elif how == "@":
            other, its = places[(at // 7) % len(places)]
            holder[key] = copy.deepcopy(other[its])
        elif isinstance(holder, list):
            holder.insert(key, copy.deepcopy(fresh))
        else:
            holder[fresh if isinstance(fresh, str) else f"{key}x"] = copy.deepcopy(fresh)
    return document


def _places(node: Any) -> Iterator[tuple[Any, Any]]:
    """Every value of a document, by what holds it and its key or position there."""
    inside = list(node) if isinstance(node, dict) else range(len(node)) if isinstance(node, list) else ()
    for key in inside:
        yield node, key
        yield from _places(node[key])
