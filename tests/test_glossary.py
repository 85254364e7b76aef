"""The glossary names what exists, and each word once."""

import pkgutil
import re
from pathlib import Path

import pytest

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


@pytest.mark.parametrize(("word", "name", "file"), ENTRIES)
def test_what_a_word_names_is_there(word: str, name: str, file: str) -> None:
    owner, _, field = name.rpartition(".")
    module = file.replace("/", ".")
    if not owner:
        assert pkgutil.resolve_name(f"{module}:{name}")
        return
    holder = pkgutil.resolve_name(f"{module}:{owner}")
    fields = {*getattr(holder, "model_fields", {}), *getattr(holder, "__annotations__", {})}
    assert hasattr(holder, field) or field in fields
