"""The commit of a run: changed sources are told, stored numbers are no sources."""

import os
import subprocess
from pathlib import Path

import pytest

from benchmarks.mlflow_store.provenance import commit

RESULTS = Path("benchmarks/claims/results/paper.csv")


def git(folder: Path, *words: str) -> str:
    settings = ("-c", "user.name=A", "-c", "user.email=a@example.org")
    done = subprocess.run(
        ["git", "-C", folder, *settings, *words], check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


def test_changed_sources_are_told_and_stored_numbers_are_not(tmp_path: Path) -> None:
    (tmp_path / RESULTS).parent.mkdir(parents=True)
    (tmp_path / RESULTS).write_text("1\n")
    (tmp_path / "module.py").write_text("1\n")
    git(tmp_path, "init")
    assert commit(tmp_path) == ""
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-m", "first")
    head = git(tmp_path, "rev-parse", "HEAD")
    assert commit(tmp_path) == head
    (tmp_path / RESULTS).write_text("2\n")  # by the first look of `claims run`
    assert commit(tmp_path) == commit(tmp_path / "benchmarks") == head
    (tmp_path / "module.py").write_text("2\n")
    assert commit(tmp_path) == commit(tmp_path / "benchmarks") == f"{head}+"


def test_a_trusted_checkout_of_another_user_has_a_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A job of CI in a container is another user than the one that checked out."""
    git(tmp_path, "init")
    git(tmp_path, "commit", "--allow-empty", "-m", "first")
    head = git(tmp_path, "rev-parse", "HEAD")
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
    monkeypatch.setattr(os, "getuid", lambda: tmp_path.stat().st_uid + 1)
    assert commit(tmp_path) == ""
    monkeypatch.setenv("CI", "true")
    assert commit(tmp_path) == head
