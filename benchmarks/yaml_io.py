"""Files of YAML as plain data: the core schema of YAML 1.2, within bounds, with the line of every key.

There are texts, numbers, true, false and null, lists, and mappings whose keys are texts. Nothing else is
constructed: no dates, no octal numbers by a leading zero, no Python objects. Unlike in YAML 1.1, `yes` is a
text and `1e-3` a number. An alias stands for a copy, which counts again.
"""

from __future__ import annotations

import copy
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from benchmarks.errors import UserError
from fl_core import reading

MOST_BYTES = 8_000_000  # of a file
MOST_NODES = 1_000_000  # values and keys, those behind aliases counted each time
DEEPEST = 40  # lists and mappings inside of each other

NULL = re.compile(r"(~|null|Null|NULL)?")
TRUTH = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
INTEGER = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")
FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
NO_NUMBER = re.compile(r"([-+]?)\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
NO_TEXT = re.compile("[\x00\ud800-\udfff]")  # neither file names nor UTF-8 can hold these
TAGS = {"!": str, "tag:yaml.org,2002:str": str, "tag:yaml.org,2002:map": dict, "tag:yaml.org,2002:seq": list}

Steps = tuple[str | int, ...]  # keys and positions on the way to a value


class YAMLParseError(ValueError):
    """Invalid YAML; holds every error with its line."""

    def __init__(self, *wrong: tuple[int | None, str]) -> None:
        super().__init__("; ".join(sentence for _, sentence in wrong))
        self.wrong = wrong


class Document(dict[str, Any]):
    """The mapping that a file holds; it remembers the lines of the file's keys, whatever is changed in it."""

    def __init__(self, content: Mapping[str, Any], lines: Mapping[Steps, int]) -> None:
        super().__init__(content)
        self.lines = lines

    def __deepcopy__(self, memo: dict[int, Any]) -> Document:
        return Document(copy.deepcopy(dict(self), memo), self.lines)


def place(path: Path | str, document: Mapping[str, Any], steps: Sequence[str | int] = ()) -> str:
    """`file:line` of a key or, if missing, of its parent; the file alone for a missing key at the top."""
    lines = document.lines if isinstance(document, Document) else {}
    known = (
        lines[tuple(steps[:depth])] for depth in range(len(steps), 0, -1) if tuple(steps[:depth]) in lines
    )
    line = next(known, None)
    return f"{path}:{line}" if line else str(path)


def read(path: Path) -> Document:
    """The mapping in a file of YAML; UserError with every line that is wrong in it."""
    return mapping(path, content_of(path))


def content_of(path: Path) -> bytes:
    """Return what a file of the user's holds; UserError if it cannot be read, or is too large for YAML."""
    try:
        return reading.content(path, MOST_BYTES)
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}") from None


def mapping(path: Path, text: bytes) -> Document:
    """Return the mapping in the text of a file of YAML; UserError with every line that is wrong in it."""
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
    """One value, as on the command line; YAMLParseError if it is none."""
    return parse(text)[0]


def parse(text: str | bytes) -> tuple[Any, dict[Steps, int]]:
    """Return a text's content, and the line of each key and list item; YAMLParseError for invalid YAML."""
    builder = _Builder(text)
    try:
        content = builder.document()
    except yaml.MarkedYAMLError as error:
        raise YAMLParseError(*builder.wrong, _syntax(error)) from None
    except yaml.YAMLError as error:
        raise YAMLParseError((None, f"not valid YAML: {' '.join(str(error).split())}")) from None
    if builder.wrong:
        raise YAMLParseError(*builder.wrong)
    return content, builder.lines


def line_of(text: bytes, steps: Sequence[str | int]) -> str:
    """`:12`, where a key stands in a text of YAML or JSON; empty where that is unknown."""
    try:
        content, lines = parse(text)
    except YAMLParseError:
        return ""
    return place("", Document(content if isinstance(content, dict) else {}, lines), steps)


def dump(content: Any) -> str:
    """Plain data as YAML that `parse` reads as the same; keys stay in order."""
    return yaml.dump(content, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=120)


def _syntax(error: yaml.MarkedYAMLError) -> tuple[int | None, str]:
    mark = error.problem_mark or error.context_mark
    if mark is None:
        return None, f"not valid YAML: {error.problem}"
    return mark.line + 1, f"column {mark.column + 1}: not valid YAML: {error.problem}"


class _Builder:
    """Makes plain data of PyYAML's events; mistakes after which reading goes on are collected in `wrong`."""

    def __init__(self, text: str | bytes) -> None:
        self.events = _events(text)
        self.lines: dict[Steps, int] = {}
        self.wrong: list[tuple[int | None, str]] = []
        self.anchors: dict[str, tuple[Any, int]] = {}  # what stands there, and how many nodes that is
        self.nodes = 0

    def document(self) -> Any:
        """The only document of the text; None if it is empty."""
        content, documents = None, 0
        for event in self.events:
            documents += isinstance(event, yaml.DocumentStartEvent)
            if documents > 1:
                raise YAMLParseError((_line(event), "another document begins here; a file holds one"))
            if isinstance(event, yaml.NodeEvent):
                content = self._node(event, ())
        return content

    def _node(self, event: yaml.NodeEvent, steps: Steps) -> Any:
        before = self.nodes
        self._count(1, event)
        if isinstance(event, yaml.AliasEvent):
            return self._alias(event)
        if len(steps) > DEEPEST:
            raise YAMLParseError(
                (_line(event), f"lists and mappings stand more than {DEEPEST} inside of each other")
            )
        if isinstance(event, yaml.ScalarEvent):
            content = self._scalar(event)
        elif isinstance(event, yaml.SequenceStartEvent):
            content = self._list(event, steps)
        else:
            content = self._mapping(event, steps)
        if event.anchor is not None:
            self.anchors[event.anchor] = content, self.nodes - before
        return content

    def _alias(self, event: yaml.AliasEvent) -> Any:
        if event.anchor not in self.anchors:
            raise YAMLParseError(
                (_line(event), f"*{event.anchor}: there is no &{event.anchor} that ends before it")
            )
        content, nodes = self.anchors[event.anchor]
        self._count(nodes, event)
        return copy.deepcopy(content)

    def _count(self, nodes: int, event: yaml.Event) -> None:
        self.nodes += nodes
        if self.nodes > MOST_NODES:
            raise YAMLParseError(
                (_line(event), f"more than {MOST_NODES:,} values and keys, aliases counted each time")
            )

    def _scalar(self, event: yaml.ScalarEvent) -> Any:
        self._check_tag(event, event.tag, str)
        text: str = event.value
        if NO_TEXT.search(text):
            self.wrong.append(
                (_line(event), "a text must not hold a null character or half of a surrogate pair")
            )
        if event.tag is not None or event.style is not None:
            return text
        try:
            return scalar(text)
        except ValueError as error:
            self.wrong.append((_line(event), str(error)))
            return None

    def _list(self, event: yaml.SequenceStartEvent, steps: Steps) -> list[Any]:
        self._check_tag(event, event.tag, list)
        items: list[Any] = []
        for inside in self._until(yaml.SequenceEndEvent):
            here = (*steps, len(items))
            self.lines[here] = _line(inside)
            items.append(self._node(inside, here))
        return items

    def _mapping(self, event: yaml.NodeEvent, steps: Steps) -> dict[str, Any]:
        self._check_tag(event, getattr(event, "tag", None), dict)
        merged: dict[str, Any] = {}
        own: dict[str, Any] = {}
        seen: set[str] = set()
        for inside in self._until(yaml.MappingEndEvent):
            key, line = self._key(inside), _line(inside)
            if key in seen:
                self.wrong.append((line, f"the key '{key}' stands there twice"))
            seen.add(key)
            here = (*steps, key)
            self.lines[here] = line
            content = self._node(next(self.events), here)
            if key == "<<" and getattr(inside, "style", None) is None:
                merged = self._merged(content, line)
            else:
                own[key] = content
        return {**merged, **own}

    def _key(self, event: yaml.NodeEvent) -> str:
        """The text of a key, whatever it looks like: 0.1 stays '0.1'."""
        self._count(1, event)
        if not isinstance(event, yaml.ScalarEvent):
            raise YAMLParseError((_line(event), "a key must be a text, not a list, a mapping or an alias"))
        self._check_tag(event, event.tag, str)
        if NO_TEXT.search(event.value):
            self.wrong.append(
                (_line(event), "a key must not hold a null character or half of a surrogate pair")
            )
        if event.anchor is not None:
            self.anchors[event.anchor] = event.value, 1
        key: str = event.value
        return key

    def _merged(self, content: Any, line: int) -> dict[str, Any]:
        """The keys that `<<` merges in: of several mappings the first counts."""
        parts = content if isinstance(content, list) else [content]
        if not all(isinstance(part, dict) for part in parts):
            self.wrong.append((line, "<<: must be a mapping, or a list of mappings"))
            return {}
        return {key: of for part in reversed(parts) for key, of in part.items()}

    def _check_tag(self, event: yaml.Event, tag: str | None, kind: type) -> None:
        if tag is not None and TAGS.get(tag) is not kind:
            shown = tag.replace("tag:yaml.org,2002:", "!!")
            self.wrong.append((_line(event), f"the tag {shown} is not allowed: no tags are needed here"))

    def _until(self, end: type[yaml.Event]) -> Iterator[yaml.NodeEvent]:
        while not isinstance(event := next(self.events), end):
            yield event


def scalar(text: str) -> str | float | int | bool | None:
    """A plain scalar by the core schema; ValueError for a number beyond 64 bits."""
    if NULL.fullmatch(text):
        return None
    if text in TRUTH:
        return TRUTH[text]
    if INTEGER.fullmatch(text):
        number = int(text, 0 if text[:2] in {"0o", "0x"} else 10) if len(text) <= 64 else math.inf
        if not -(2**63) <= number < 2**63:
            raise ValueError(f"{_short(text)} is no whole number of 64 bits")
        return number
    if FLOAT.fullmatch(text):
        if math.isinf(float(text)):
            raise ValueError(f"{_short(text)} is larger than any number of 64 bits")
        return float(text)
    if special := NO_NUMBER.fullmatch(text):
        return math.nan if special[3] else float(f"{special[1]}inf")
    return text


def _short(text: str) -> str:
    return text if len(text) <= 24 else f"{text[:20]}… ({len(text)} characters)"


def _line(event: yaml.Event) -> int:
    return event.start_mark.line + 1 if event.start_mark else 1


def _events(text: str | bytes) -> Iterator[Any]:
    try:
        yield from yaml.parse(text, Loader=yaml.SafeLoader)
    except (ValueError, OverflowError) as error:  # PyYAML, at "\UFFFFFFFF" and at the version in %YAML
        raise YAMLParseError((None, f"not valid YAML: {error}")) from None


class _Dumper(yaml.SafeDumper):
    """Quotes every text that would be read as something else."""

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
