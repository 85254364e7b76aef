"""Documents (nested mappings and lists of a YAML file), and dotted keys to values.

In a list, a key's step is a position, or the name of the part that stands there: `strategies.fedfix.period`.

Fixed: the form of dotted keys, which suites, claims and command lines contain.
"""

from collections.abc import Sequence
from typing import Any

from fl_core.text import unknown

Steps = tuple[str, ...]


def is_path(name: str) -> bool:
    """Return whether the name of a suite is the path of a file."""
    return "/" in name or name.endswith((".yaml", ".yml"))


def split(key: str) -> Steps:
    """Return the steps of a dotted key."""
    return tuple(key.split("."))


def dotted(steps: Sequence[str | int], document: Any) -> str:
    """Return a key in dotted form, with the names of list entries on the way."""
    words: list[str] = []
    node = document
    for depth, step in enumerate(steps, start=1):
        word: str | None = None
        if isinstance(node, list) and isinstance(step, int):
            names = [part_name(item) for item in node]
            if depth < len(steps) and names.count(names[step]) == 1:
                word = names[step]
            node = node[step]
        else:
            node = node.get(step) if isinstance(node, dict) else None
        words.append(word or str(step))
    return ".".join(words)


def as_part(value: Any) -> Any:
    """Return a part in the long form: `fedbuff` is short for `{name: fedbuff}`."""
    return {"name": value} if isinstance(value, str) else value


def put(document: dict[str, Any], steps: Sequence[str], value: Any) -> None:
    """Set a key in place and add missing mappings; ValueError where a value without keys is in the way."""
    node: Any = document
    for depth, step in enumerate(steps[:-1], start=1):
        place: Any = position(node, step) if isinstance(node, list) else step
        inside = as_part(node[place] if isinstance(node, list) else node.get(place))
        node[place] = {} if inside is None else inside
        node = node[place]
        if not isinstance(node, dict | list):
            raise ValueError(f"{'.'.join(steps[:depth])} is {node!r}, which has no keys")
    last = steps[-1]
    node[position(node, last) if isinstance(node, list) else last] = value


def position(items: Sequence[Any], step: str) -> int:
    """Return the index of the entry called `step`; ValueError if missing or ambiguous."""
    if step.isdigit() and int(step) < len(items):
        return int(step)
    names = [part_name(item) for item in items]
    if names.count(step) == 1:
        return names.index(step)
    distinct = list(dict.fromkeys(name for name in names if name is not None))
    if step in distinct:
        raise ValueError(
            f"'{step}' is the name of several items: give the position of an item, 0 to {len(items) - 1}"
        )
    raise ValueError(unknown("entry", step, distinct))


def part_name(item: Any) -> str | None:
    """Return the name of a part as written in a file; None for other values."""
    item = as_part(item)
    name = item.get("name") if isinstance(item, dict) else None
    return name if isinstance(name, str) else None
