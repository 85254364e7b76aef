"""What `asyncfl list` shows: read from sources as text, it has to be what the imported classes say."""

import importlib
import inspect
import re

import pytest

from benchmarks.catalogue import FAMILIES, entries
from benchmarks.part_descriptions import described
from fl_core.parts import Part


@pytest.mark.parametrize("kind", FAMILIES)
def test_the_sources_tell_what_the_classes_say(kind: str) -> None:
    module, _, name = FAMILIES[kind].partition(":")
    family: type[Part] = getattr(importlib.import_module(module), name)
    members = family.members()
    shown = entries(kind)
    lines = {name: (inspect.getdoc(member) or "").partition("\n")[0] for name, member in members.items()}
    for member in members.values():
        lines |= {name: line for name, (line, _) in vars(member).get("presets", {}).items()}
    assert [entry.name for entry in shown] == sorted(lines)
    for entry in shown:
        line = lines[entry.name]
        source = f" ({entry.paper})" if entry.paper else ""
        assert line.rstrip(".") == entry.what + source


@pytest.mark.parametrize("kind", FAMILIES)
def test_users_do_not_read_what_is_for_developers(kind: str) -> None:
    """A description has the docstring of a module with a single part: it names nothing fixed or free."""
    texts = {entry.name: described(kind, entry.name).text for entry in entries(kind)}
    assert [name for name, text in texts.items() if re.search(r"^(Fixed|Free): ", text, re.MULTILINE)] == []
