"""The glossary names what exists, and each word once."""

import re
from importlib import import_module
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "reference" / "glossary.md").read_text()
ENTRIES = re.findall(r"^\| ([^|]+) \| \[`([\w.]+)`\]\(\.\./\.\./([\w/]+)\.py\) \|", PAGE, re.MULTILINE)


def test_entries_are_read() -> None:
    rows = [line for line in PAGE.splitlines() if line.startswith("| ") and not line.startswith("| word ")]
    assert len(rows) - 1 == len(ENTRIES) > 50  # a client is a number, no class
    words = [row.split(" | ")[0] for row in rows]
    assert len(set(words)) == len(words)
    assert "reference/glossary" in (ROOT / "CONTRIBUTING.md").read_text()
    assert "\nglossary\n" in (ROOT / "docs" / "reference" / "index.md").read_text()


def is_there(name: str, file: str) -> bool:
    """Whether a module has this name: a function, a class, or a class's attribute or field."""
    module = import_module(file.replace("/", "."))
    owner, _, attribute = name.rpartition(".")
    holder = getattr(module, owner or name, None)
    fields = {*getattr(holder, "model_fields", {}), *getattr(holder, "__annotations__", {})}
    return holder is not None and (not owner or hasattr(holder, attribute) or attribute in fields)


def test_what_the_words_name_is_there() -> None:
    assert [word for word, name, file in ENTRIES if not is_there(name, file)] == []
