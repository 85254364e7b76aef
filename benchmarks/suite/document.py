"""Documents, nested mappings and lists, and the dotted keys that reach into them.

In a list, a key's step is a position, or the name of the part that stands there: `strategies.fedfix.period`.
"""

from collections.abc import Sequence
from typing import Any

from fl_core.text import unknown

Steps = tuple[str, ...]


def is_path(name: str) -> bool:
    """Whether a suite is given by its file's path rather than by its name."""
    return "/" in name or name.endswith((".yaml", ".yml"))


def split(key: str) -> Steps:
    """The steps of a dotted key."""
    return tuple(key.split("."))


def dotted(steps: Sequence[str | int], document: Any) -> str:
    """The key as a person writes it: entries of a list by their names, on the way to what is inside."""
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
    """`fedbuff` is short for `{name: fedbuff}`."""
    return {"name": value} if isinstance(value, str) else value


def put(document: dict[str, Any], steps: Sequence[str], value: Any) -> None:
    """Set one key in place, making mappings on the way; ValueError where the way is blocked."""
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
    """Where in a list the entry called `step` stands; ValueError if there is none, or more than one."""
    if step.isdigit() and int(step) < len(items):
        return int(step)
    names = [part_name(item) for item in items]
    if names.count(step) == 1:
        return names.index(step)
    known = list(dict.fromkeys(name for name in names if name is not None))
    if step in known:
        raise ValueError(f"'{step}' is a duplicate: use its position, 0 to {len(items) - 1}")
    raise ValueError(unknown("entry", step, known))


def part_name(item: Any) -> str | None:
    """The name of a part as a file writes it, or None for anything else."""
    item = as_part(item)
    name = item.get("name") if isinstance(item, dict) else None
    return name if isinstance(name, str) else None
