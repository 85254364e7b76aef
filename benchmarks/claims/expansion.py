"""Expansion of an entry of a claims file to many: over a product, rows, or the cells of a published table.

`claims/files.py` calls `members` for each entry.

    each: {alpha: [0.1, 0.3], beta: [5, 30]}       every combination; a mapping among them gives its keys
    each: [{case: a, k: 1}, {case: b, k: 2}]       every row
    table: {file: published/t.csv, rows: {model: LR}, cells: {column: {key: value}}}    every cell

`{alpha}` in a text is replaced; a text that is nothing but `{alpha}` becomes the value itself. A cell has the
columns of its row, its own column as `{cell}`, its text as `{printed}`, and the keys given for its column.
Its `case`, the conditions that outcomes may depend on, are the values that its id names, and what it writes.
What readers see, statement and note, has the file's words for a value: `words: {ca2fl: CA²FL}`.

Fixed: ids and keys of the entries made. Stored numbers are found by ids, and the register has digests of
keys.
"""

import csv
import itertools
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from benchmarks import yaml_io
from fl_core import file_reading

Values = Mapping[str, Any]

PROSE = ("statement", "note")


def members(
    entry: Mapping[str, Any], folder: Path, words: Mapping[str, str] | None = None
) -> Iterator[dict[str, Any]]:
    """Yield the entries expanded from an entry; ValueError for an unclear expansion.

    Paths of tables are relative to `folder`; `words` are those for values in prose.
    """
    written = {key: value for key, value in entry.items() if key not in {"each", "table"}}
    if "each" not in entry and "table" not in entry:
        yield written
        return
    rows = list(_cells(entry["table"], folder)) if "table" in entry else [{}]
    for row in rows:
        for values in _rows(entry.get("each", [{}])):
            placeholders = {**row, **values}
            named = re.findall(r"\{(\w+)\}", str(written.get("id", "")))
            filled_entry = filled(written, placeholders)
            case = {
                **filled_entry.get("case", {}),
                **{name: placeholders[name] for name in named if name in placeholders},
            }
            source = {"table": entry["table"]["file"]} if "table" in entry else {}
            yield {**filled_entry, **_prose(written, placeholders, words or {}), "case": case, **source}


def _prose(written: Values, placeholders: Values, words: Mapping[str, str]) -> dict[str, str]:
    """Return statement and note as sentences."""
    values_in_words = {name: words.get(str(value), value) for name, value in placeholders.items()}
    texts = {key: str(filled(written[key], values_in_words)) for key in PROSE if key in written}
    return {key: text[:1].upper() + text[1:] if text[:1].isascii() else text for key, text in texts.items()}


def filled(node: Any, values: Values) -> Any:
    """Return a document with all variables replaced."""
    if isinstance(node, dict):
        return {str(filled(key, values)): filled(value, values) for key, value in node.items()}
    if isinstance(node, list):
        return [filled(item, values) for item in node]
    if not isinstance(node, str):
        return node
    alone = re.fullmatch(r"\{(\w+)\}", node)
    if alone:
        return _value(alone[1], values)
    return re.sub(r"\{(\w+)\}", lambda match: str(_value(match[1], values)), node)


def _value(name: str, values: Values) -> Any:
    if name not in values:
        raise ValueError(f"{{{name}}} is an unknown placeholder. Available: {', '.join(values)}")
    return values[name]


def _rows(entry: Any) -> list[dict[str, Any]]:
    """Return the rows of `each`: all combinations of a mapping, or a list as written."""
    if isinstance(entry, list) and all(isinstance(row, dict) for row in entry):
        return entry
    if isinstance(entry, dict) and all(isinstance(values, list) for values in entry.values()):
        rows = [dict(zip(entry, values, strict=True)) for values in itertools.product(*entry.values())]
        return [{**row, **_inner(row)} for row in rows]
    raise ValueError("each: must be a mapping of names to lists, or a list of mappings")


def _inner(row: Values) -> dict[str, Any]:
    """Return the merged keys of all mappings among the values."""
    return {key: it for value in row.values() if isinstance(value, dict) for key, it in value.items()}


def _cells(table: Any, folder: Path) -> Iterator[dict[str, Any]]:
    """Yield the variables of every chosen cell of a published table."""
    if not isinstance(table, dict) or not {"file", "cells"} <= table.keys() <= {"file", "rows", "cells"}:
        raise ValueError("table: must have the keys file and cells, and may have rows")
    chosen, cells = table.get("rows", {}), table["cells"]
    if not isinstance(chosen, dict) or not isinstance(cells, dict):
        raise ValueError("table: rows and cells must be mappings with columns as keys")
    if not all(more is None or isinstance(more, dict) for more in cells.values()):
        raise ValueError("table.cells: the value of a column must be a mapping, or empty")
    for texts in _table(table["file"], folder):
        if missing := [name for name in (*chosen, *cells) if texts.get(name) is None]:
            raise ValueError(f"table: a row of {table['file']} has no value in column '{missing[0]}'")
        row = {name: yaml_io.value(text or "") for name, text in texts.items()}
        if all(row[name] == value for name, value in chosen.items()):
            for cell, more in cells.items():
                yield {**row, "cell": cell, "printed": texts[cell], **(more or {})}


def _table(name: Any, folder: Path) -> list[dict[str, str]]:
    """Return the rows of a file below `folder`; ValueError if elsewhere, missing, or no table."""
    if not isinstance(name, str) or not (folder / name).resolve().is_relative_to(folder.resolve()):
        raise ValueError(f"table.file: must be the name of a file below {folder}, not {name!r}")
    try:
        return list(csv.DictReader(file_reading.text(folder / name).splitlines(), restkey=""))
    except (OSError, ValueError, csv.Error) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise ValueError(f"table.file: {name} cannot be read: {reason}") from None
