"""Settings: changes to a suite's document before validation, from `--set` and from scales.

`suite.build` applies them. A file has its scales so:

    scale: small                  # the default of `--scale`
    scales:
      paper: {}                   # the file as it stands
      small: {seeds: 2, budget.updates: 3000, grid.problem.clients: [20]}

A scale has the same keys as `--set`, which is applied after it. Runs of one suite at two scales are recorded
as two suites, "ace-small" and "ace-paper".

Fixed: which settings win: a scale over the file, `--set` over both.
"""

import copy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import yaml_io
from benchmarks.errors import UserError
from benchmarks.suite.document import Steps, put, split
from benchmarks.suite.fields import SuiteFile
from benchmarks.suite.shipped import recorded, reserved
from benchmarks.suite.validation_errors import model_at
from fl_core.text import unknown

FIXED_KEYS = ("name", "scale", "scales")  # keys that no scale changes


@dataclass(frozen=True, slots=True)
class Setting:
    """A value to set at a key of the document."""

    steps: Steps  # of the key
    value: Any
    source: str  # text before the key in a complaint, such as "--set "


def assignment(text: str) -> Setting:
    """Return the setting of a text like `problem.partition.alpha=0.3`; the value is read as YAML."""
    key, equals, value = text.partition("=")
    if not equals or not all(key.strip().split(".")):
        raise UserError(f"--set {text}: must be KEY=VALUE, such as problem.clients=50")
    if key.strip() == "scale":
        raise UserError(f"--set {text}: --set cannot choose a scale. Use --scale {value.strip()}")
    try:
        return Setting(split(key.strip()), yaml_io.value(value), "--set ")
    except yaml_io.YAMLParseError as error:
        raise UserError(f"--set {text}: {error}") from None


def take_scale(
    path: Path, document: dict[str, Any], requested: str | None
) -> tuple[str | None, list[Setting]]:
    """Take the scales out of a document; return name and settings of the selected scale.

    (None, []) for a suite without scales; UserError with all that is wrong with them.
    """
    usual, scales = document.pop("scale", None), document.pop("scales", None)
    if wrong := _scales_faults(usual, scales):
        location = yaml_io.place(path, document, ("scale" if scales is None else "scales",))
        raise UserError(*(f"{location}: {line}" for line in wrong))
    if not scales:
        if requested is not None:
            raise UserError(f"--scale {requested}: {path} has no scales")
        return None, []
    chosen = usual if requested is None else requested
    if chosen not in scales:
        file = yaml_io.place(path, document, ("scale",))
        location = f"{file}: scale" if requested is None else f"--scale {requested}"
        raise UserError(f"{location}: {unknown('scale', chosen, scales)}")
    return chosen, [
        Setting(
            split(key), value, f"{yaml_io.place(path, document, ('scales', chosen, key))}: scales.{chosen}."
        )
        for key, value in scales[chosen].items()
    ]


def _scales_faults(usual: Any, scales: Any) -> list[str]:
    """Return the faults of the keys `scale` and `scales`."""
    if scales is None:
        return ["scale: the suite has no scales. Add scales, or leave this out"] if usual is not None else []
    if not isinstance(scales, dict) or not scales:
        return ["scales: must be a mapping of names to dotted keys and their values"]
    if not isinstance(usual, str):
        names = ", ".join(map(str, scales))
        return [f"scale: is missing: name the default scale, or choose one with --scale. Available: {names}"]
    return [line for name, keys in scales.items() for line in _scale_faults(name, keys)]


def _scale_faults(name: Any, keys: Any) -> list[str]:
    """Return the faults of a scale."""
    if not isinstance(keys, dict) or not all(isinstance(key, str) and all(split(key)) for key in keys):
        return [
            f"scales.{name}: must be a mapping of dotted keys to values, such as {{budget.updates: 3000}}"
        ]
    if reason := reserved(recorded("", str(name))):
        return [f"scales.{name}: {reason}: choose another"]
    return [
        f"scales.{name}.{key}: a scale cannot change {', '.join(FIXED_KEYS)}"
        for key in keys
        if split(key)[0] in FIXED_KEYS
    ]


def override(document: dict[str, Any], steps: Steps, value: Any) -> None:
    """Set a key in place; ValueError where a value without keys is in the way.

    A key spanned by the grid is removed from the grid. A key inside such a key is set in all grid values that
    have it: if the grid spans a Dirichlet and an i.i.d. partition, `alpha` is set in the Dirichlet one alone.
    """
    grid = document.get("grid")
    if not isinstance(grid, dict):
        put(document, steps, value)
        return
    if steps[0] == "grid" and len(steps) > 1:
        grid[".".join(steps[1:])] = value
        return
    outer = (".".join(steps[:depth]) for depth in range(len(steps) - 1, 0, -1))
    spanned = next((axis for axis in outer if isinstance(grid.get(axis), list)), None)  # the closest one
    if spanned is not None:
        grid[spanned] = _changed(document, spanned, steps[len(split(spanned)) :], value)
    else:
        grid.pop(".".join(steps), None)
        put(document, steps, value)


def _changed(document: dict[str, Any], axis: str, rest: Steps, value: Any) -> list[Any]:
    """Return the grid's values of `axis`, with a key inside set wherever a value has such a key."""
    values = document["grid"][axis]
    accepting = [
        alternative for alternative in values if _accepts(document, axis, alternative, rest[0])
    ] or values  # if none, an error names the key
    changed: list[Any] = []
    for alternative in values:
        holder = {"value": copy.deepcopy(alternative)}
        if alternative in accepting:
            put(holder, ("value", *rest), value)
        if holder["value"] not in changed:
            changed.append(holder["value"])
    return changed


def _accepts(document: dict[str, Any], axis: str, candidate: Any, key: str) -> bool:
    """Return whether `candidate`, a value of the grid's key `axis`, has a field `key`."""
    trial = copy.deepcopy({**document, "grid": None})
    put(trial, split(axis), candidate)
    return key == "name" or key in model_at(SuiteFile, split(axis), trial).model_fields
