"""AGENTS.md: its commands run in a copy of the repository, with the files that it adds."""

import re
import shutil
from pathlib import Path

import pages
import pytest

ROOT = Path(__file__).parents[1]
AGENTS = ROOT / "AGENTS.md"
PARTS = ("asyncfl", "benchmarks", "fl_core", "reports", "tuning", "docs", "examples", "tests")
FILES = ("pyproject.toml", "CONTRIBUTING.md", "README.md", "tox.ini", "CHANGELOG.md")


def test_paths_that_are_named_exist() -> None:
    text = AGENTS.read_text(encoding="utf-8")
    added = {block.file for block in pages.blocks(AGENTS)}
    links = re.findall(r"\]\(([\w./-]+)\)", text)
    folders = re.findall(rf"`((?:{'|'.join(PARTS)})/[\w./-]*)`", text)
    named = {path.rstrip("/") for path in (*links, *folders)} - added
    assert len(named) > 15 and [path for path in sorted(named) if not (ROOT / path).exists()] == []


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_every_command_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copy = tmp_path / "clone"
    for part in PARTS:
        shutil.copytree(ROOT / part, copy / part, ignore=shutil.ignore_patterns("__pycache__"))
    for file in FILES:
        shutil.copy(ROOT / file, copy / file)
    monkeypatch.setattr(pages, "ROOT", copy)  # the first on the path of Python
    done = pages.run_in(copy, AGENTS)
    assert done.returncode == 0, done.stdout
    assert (copy / "fl_core" / "problems" / "wine.py").is_file()
