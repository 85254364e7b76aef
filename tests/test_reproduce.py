"""`docs/reproduce.py` names every published file that its tables do not make."""

from pathlib import Path

import pytest
import reproduce

PUBLISHED = {
    "README.md": "# A\n<!-- claims -->\n1 holds\n<!-- /claims -->\nend\n",
    "docs/claims.md": "first\nsecond\n",
    "docs/claims/ace.md": "ace\n",
    "docs/leaderboard.md": "board\n",
    "docs/leaderboard-bytes.svg": "<svg/>\n",
    "docs/claims-in-words.md": "by hand\n",
}
MADE = {path: text.encode() for path, text in PUBLISHED.items() if path != "docs/claims-in-words.md"}


@pytest.fixture(autouse=True)
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for path, text in PUBLISHED.items():
        (tmp_path / path).parent.mkdir(exist_ok=True, parents=True)
        (tmp_path / path).write_text(text)
    monkeypatch.setattr(reproduce, "ROOT", tmp_path)
    return tmp_path


def test_equal_files_have_no_difference() -> None:
    assert reproduce.differences(MADE) == []


@pytest.mark.parametrize("path", MADE)
def test_one_byte_is_a_difference_and_so_is_a_file_too_few(path: str, root: Path) -> None:
    (root / path).write_bytes(MADE[path][:-2] + b"x\n")
    assert [line.partition(":")[0] for line in reproduce.differences(MADE)] == [path]
    if path != "README.md":
        (root / path).unlink()
        assert [line.partition(":")[0] for line in reproduce.differences(MADE)] == [path]


def test_a_file_that_no_table_makes_is_a_difference(root: Path) -> None:
    (root / "docs" / "claims" / "left.md").write_text("no paper\n")
    assert [line.partition(":")[0] for line in reproduce.differences(MADE)] == ["docs/claims/left.md"]


def test_the_first_line_that_differs_is_named(root: Path) -> None:
    (root / "docs" / "claims.md").write_text("first\nthird\n")
    [line] = reproduce.differences(MADE)
    assert "line 2" in line


def test_files_are_replaced_on_demand(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The counts in README, whose other lines stay, and the pages; without `--write` nothing changes."""
    printed = {"claims": b"2 hold\n"}
    monkeypatch.setattr(reproduce, "_start", lambda *arguments: arguments)
    monkeypatch.setattr(reproduce, "_output", lambda arguments: printed.get(arguments[0], b""))
    monkeypatch.setattr(reproduce.croissant, "metadata", lambda: {"benchmarks/claims/croissant.json": b"{}"})
    made = MADE | {"docs/claims.md": b"new\n"}
    monkeypatch.setattr(
        reproduce, "_files", lambda folder: {path: made[path] for path in made if path != "README.md"}
    )
    before = (root / "README.md").read_text()
    assert reproduce.main([]) == 1 and (root / "README.md").read_text() == before
    assert reproduce.main(["--write"]) == 0
    assert (root / "README.md").read_text() == before.replace("1 holds", "2 hold")
    assert (root / "docs" / "claims.md").read_bytes() == b"new\n"
    assert (root / "benchmarks" / "claims" / "croissant.json").read_bytes() == b"{}"
