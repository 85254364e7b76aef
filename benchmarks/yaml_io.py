"""Files of YAML as plain data: the core schema of YAML 1.2, within bounds, with the line of every key.

All YAML files of the package and of users are read here: suites, claims, tuned values, errata. The result has
texts, numbers, true, false and null, lists, and mappings with texts as keys, and nothing else: no dates, no
octal numbers by a leading zero, no Python objects. Unlike in YAML 1.1, `yes` is a text and `1e-3` a number.
An alias is replaced by a copy, which counts towards the limits.

Fixed: which value a text gives (keys of runs and digests of claims follow from it), and the limits, for
safety.
"""

from __future__ import annotations

import copy
import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from benchmarks.errors import UserError
from fl_core import file_reading

MAX_BYTES = 8_000_000  # of a file
MAX_NODES = 1_000_000  # values and keys of a file, aliases counted each time
MAX_DEPTH = 40  # of nested lists and mappings
TOO_DEEP = f"lists and mappings stand more than {MAX_DEPTH} inside of each other"

NULL = re.compile(r"(~|null|Null|NULL)?")
TRUTH = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
INTEGER = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")
FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
NO_NUMBER = re.compile(r"([-+]?)\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
NO_TEXT = re.compile("[\x00\ud800-\udfff]")  # neither file names nor UTF-8 can hold these
PLAIN, TEXT, SEQUENCE, MAPPING = "plain", *(f"tag:yaml.org,2002:{kind}" for kind in ("str", "seq", "map"))

Steps = tuple[str | int, ...]  # keys and positions on the way to a value


class YAMLParseError(ValueError):
    """Invalid YAML; holds every error with a line."""

    def __init__(self, *wrong: tuple[int | None, str]) -> None:
        super().__init__("; ".join(sentence for _, sentence in wrong))
        self.wrong = wrong


class Document(dict[str, Any]):
    """The mapping in a file; remembers the lines of the file's keys after changes."""

    def __init__(self, content: Mapping[str, Any], lines: Mapping[Steps, int]) -> None:
        super().__init__(content)
        self.lines = lines

    def __deepcopy__(self, memo: dict[int, Any]) -> Document:
        return Document(copy.deepcopy(dict(self), memo), self.lines)


def place(path: Path | str, document: Mapping[str, Any], steps: Sequence[str | int] = ()) -> str:
    """Return `file:line` of a key or of the parent; only the file for a missing key at the top."""
    lines = document.lines if isinstance(document, Document) else {}
    line_numbers = (
        lines[tuple(steps[:depth])] for depth in range(len(steps), 0, -1) if tuple(steps[:depth]) in lines
    )
    line = next(line_numbers, None)
    return f"{path}:{line}" if line else str(path)


def fault(path: Path | str, document: Mapping[str, Any], steps: Sequence[str | int], sentence: str) -> str:
    """Return a line about a key of a document: `file:line: key: sentence`."""
    return f"{place(path, document, steps)}: {'.'.join(map(str, steps))}: {sentence}"


def is_in_file(document: Mapping[str, Any], steps: Sequence[str | int]) -> bool:
    """Return whether a key is in the document's file."""
    return isinstance(document, Document) and tuple(steps) in document.lines


def read(path: Path) -> Document:
    """Return the mapping in a YAML file; UserError with every invalid line."""
    return mapping(path, content_of(path))


def content_of(path: Path) -> bytes:
    """Return the content of a user's file; UserError if unreadable, or too large for YAML."""
    try:
        return file_reading.content(path, MAX_BYTES)
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}") from None


def mapping(path: Path, text: bytes) -> Document:
    """Return the mapping in the text of a YAML file; UserError with every invalid line."""
    try:
        content, lines = parse(text)
    except YAMLParseError as error:
        raise UserError(
            *(f"{path}{f':{line}' if line else ''}: {sentence}" for line, sentence in error.wrong)
        ) from None
    if not isinstance(content, dict):
        raise UserError(f"{path}: must be a mapping of keys to values, such as 'name: {path.stem}'")
    return Document(content, lines)


def value(text: str) -> Any:
    """Return a single value, as on the command line; may raise YAMLParseError."""
    return parse(text)[0]


def parse(text: str | bytes) -> tuple[Any, dict[Steps, int]]:
    """Return the content of a text, and the line of each key and list item; may raise YAMLParseError."""
    builder = _Builder()
    try:
        node = yaml.compose(text, Loader=_Loader)
    except yaml.MarkedYAMLError as error:
        raise YAMLParseError(_syntax(error)) from None
    except RecursionError:
        raise YAMLParseError((None, TOO_DEEP)) from None
    except (
        yaml.YAMLError,
        ValueError,
        OverflowError,
    ) as error:  # ValueError: "\UFFFFFFFF"
        raise YAMLParseError((None, f"not valid YAML: {' '.join(str(error).split())}")) from None
    content = None if node is None else builder.content(node, ())
    if builder.wrong:
        raise YAMLParseError(*dict.fromkeys(builder.wrong))
    return content, builder.lines


def line_of(text: bytes, steps: Sequence[str | int]) -> str:
    """Return `:12`, the line of a key in a text of YAML or JSON; empty if unknown."""
    try:
        content, lines = parse(text)
    except YAMLParseError:
        return ""
    return place("", Document(content if isinstance(content, dict) else {}, lines), steps)


def in_a_line(data: Mapping[str, Any]) -> str:
    """Return a mapping of plain data as a single line of YAML, to paste into a file."""
    form: dict[str, Any] = {"sort_keys": False, "allow_unicode": True, "width": math.inf}
    line = yaml.dump(dict(data), Dumper=_Dumper, default_flow_style=True, **form)
    return line.strip()


def dump(content: Any) -> str:
    """Return plain data as YAML for `parse`; keys stay in order."""
    return yaml.dump(content, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=120)


def _syntax(error: yaml.MarkedYAMLError) -> tuple[int | None, str]:
    """Return line and sentence of a syntax error."""
    mark = error.problem_mark or error.context_mark
    if mark is None:
        return None, f"not valid YAML: {error.problem}"
    composing = isinstance(error, yaml.composer.ComposerError)  # its context is half of the sentence
    problem = " ".join(filter(None, [error.context if composing else None, error.problem]))
    return mark.line + 1, f"column {mark.column + 1}: not valid YAML: {problem}"


class _Loader(yaml.BaseLoader):
    """PyYAML up to nodes; a scalar without quotes and tag is `PLAIN`."""


_Loader.add_implicit_resolver(PLAIN, re.compile(""), None)


class _Builder:
    """Plain data from PyYAML's nodes; recoverable mistakes are collected in `wrong`."""

    def __init__(self) -> None:
        self.lines: dict[Steps, int] = {}
        self.wrong: list[tuple[int | None, str]] = []
        self.nodes = 0

    def content(self, node: yaml.Node, steps: Steps) -> Any:
        """Return the value at `steps`; an alias is read again from the anchor's node."""
        self._count(node)
        if len(steps) > MAX_DEPTH:
            raise YAMLParseError((_line(node), TOO_DEEP))
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, steps)
        if isinstance(node, yaml.SequenceNode):
            self._check_tag(node, SEQUENCE)
            self.lines |= {(*steps, at): _line(item) for at, item in enumerate(node.value)}
            return [self.content(item, (*steps, at)) for at, item in enumerate(node.value)]
        text = self._text(node, "text")
        try:
            return scalar(text) if node.tag == PLAIN else text
        except ValueError as error:
            self.wrong.append((_line(node), str(error)))
            return None

    def _count(self, node: yaml.Node) -> None:
        self.nodes += 1
        if self.nodes > MAX_NODES:
            sentence = f"more than {MAX_NODES:,} values and keys, aliases counted each time"
            raise YAMLParseError((_line(node), sentence))

    def _text(self, node: yaml.Node, noun: str) -> str:
        """Return the text of a scalar unconverted: as a key, 0.1 stays '0.1'."""
        self._check_tag(node, PLAIN, TEXT)
        text: str = node.value
        if NO_TEXT.search(text):
            sentence = f"a {noun} must not hold a null character or half of a surrogate pair"
            self.wrong.append((_line(node), sentence))
        return text

    def _mapping(self, node: yaml.MappingNode, steps: Steps) -> dict[str, Any]:
        """Return the mapping of a node; keys merged by `<<` come first and may be replaced."""
        self._check_tag(node, MAPPING)
        merged: dict[str, Any] | None = None
        content_by_key: dict[str, Any] = {}
        for key_node, value_node in node.value:
            self._count(key_node)
            line = _line(key_node)
            if not isinstance(key_node, yaml.ScalarNode):
                raise YAMLParseError((line, "a key must be a text, not a list or a mapping"))
            key = self._text(key_node, "key")
            path = (*steps, key)
            merges = key == "<<" and key_node.tag == PLAIN
            if key in content_by_key or (merges and merged is not None):
                self.wrong.append((line, f"duplicate key '{key}'"))
            self.lines[path] = line
            content = self.content(value_node, path)
            if merges:
                merged = self._merged(content, line)
            else:
                content_by_key[key] = content
        return {**(merged or {}), **content_by_key}

    def _merged(self, content: Any, line: int) -> dict[str, Any]:
        """Return the keys merged by `<<`: of several mappings the first counts."""
        parts = content if isinstance(content, list) else [content]
        if not all(isinstance(part, dict) for part in parts):
            self.wrong.append((line, "<<: must be a mapping, or a list of mappings"))
            return {}
        return {key: value for part in reversed(parts) for key, value in part.items()}

    def _check_tag(self, node: yaml.Node, *allowed: str) -> None:
        if node.tag not in allowed:
            tag = node.tag.replace("tag:yaml.org,2002:", "!!")
            self.wrong.append((_line(node), f"the tag {tag} is not allowed: no tags are needed here"))


def scalar(text: str) -> str | float | int | bool | None:
    """Return the value of a plain scalar by the core schema; ValueError for a number beyond 64 bits."""
    if NULL.fullmatch(text):
        return None
    if text in TRUTH:
        return TRUTH[text]
    excerpt = text if len(text) <= 24 else f"{text[:20]}… ({len(text)} characters)"
    if INTEGER.fullmatch(text):
        number = int(text, 0 if text[:2] in {"0o", "0x"} else 10) if len(text) <= 64 else math.inf
        if not -(2**63) <= number < 2**63:
            raise ValueError(f"{excerpt} does not fit into an integer of 64 bits")
        return number
    if FLOAT.fullmatch(text):
        if math.isinf(float(text)):
            raise ValueError(f"{excerpt} is too large for a number of 64 bits")
        return float(text)
    if special := NO_NUMBER.fullmatch(text):
        return math.nan if special[3] else float(f"{special[1]}inf")
    return text


def _line(node: yaml.Node) -> int:
    return node.start_mark.line + 1


class _Dumper(yaml.SafeDumper):
    """Dumper with quotes around ambiguous texts."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    try:
        plain = scalar(text) == text
    except ValueError:
        plain = False
    style = '"' if not text.isprintable() else None if plain else "'"
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)
