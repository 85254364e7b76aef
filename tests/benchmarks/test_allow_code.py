"""Code that a file names is imported only for whom it belongs to; what ran is recorded."""

import hashlib
import json
import os
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest

from benchmarks.claims.files import papers
from benchmarks.claims.plan import mistakes
from benchmarks.commands.replay import replayed
from benchmarks.errors import UserError
from benchmarks.mlflow_store.run_result import RunResult
from benchmarks.mlflow_store.store import Store
from benchmarks.suite.suite import load
from fl_core.import_guard import ALLOWED, HOW
from fl_core.recorded_names import Tag

SUITE = """
name: mine
seeds: 1
problem: quadratic
budget: {updates: 5}
strategies: ["theirs_for_a_test:Mine"]
"""
MODULE = '''
from fl_core.strategies.asgd import ASGD

class Mine(ASGD):
    """A strategy of a user's own."""
    title = "Mine"
'''
CLAIMS = """
paper: toy
title: Toy
scenarios:
  s: {problem: quadratic, seeds: 1, budget: {updates: 5}, strategies: ["theirs_for_a_test:Mine"]}
claims:
  - {id: T/a, place: p, statement: s, kind: report, clock: time, rates: paper, arrangement: paper,
     workload: paper, scenario: s, metric: fp/loss}
"""


@pytest.fixture
def suite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A suite that names a class of a module that is not imported yet."""
    (tmp_path / "theirs_for_a_test.py").write_text(MODULE)
    (tmp_path / "mine.yaml").write_text(SUITE)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path / "mine.yaml"
    sys.modules.pop("theirs_for_a_test", None)


def test_one_s_own_file_may_name_code_and_what_ran_is_recorded(suite: Path) -> None:
    (run,) = load(str(suite)).runs()
    file = suite.with_name("theirs_for_a_test.py")
    digest = hashlib.sha256(file.read_bytes()).hexdigest()[:16]
    assert run.tags()[Tag.CODE] == {"theirs_for_a_test:Mine": f"{file} sha256:{digest}"}
    assert Tag.CODE not in load("quickstart").runs()[0].tags()


@pytest.mark.parametrize("how", ["writable", "foreign"])
def test_another_s_file_may_not(suite: Path, monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    if how == "writable":
        suite.chmod(0o666)
    else:
        monkeypatch.setattr(os, "getuid", lambda: suite.stat().st_uid + 1)
    with pytest.raises(UserError) as caught:
        load(str(suite))
    (line,) = caught.value.lines
    assert line.startswith(f"{suite}:6: strategies.0: 'theirs_for_a_test:Mine' is not imported, since ")
    assert line.endswith("allow it with --allow-code if you trust it")
    assert "theirs_for_a_test" not in sys.modules
    token = ALLOWED.set(True)
    try:
        assert len(load(str(suite)).runs()) == 1
    finally:
        ALLOWED.reset(token)


def test_a_claims_file_may_not(suite: Path) -> None:
    folder = suite.parent / "claims"
    folder.mkdir()
    (folder / "toy.yaml").write_text(CLAIMS)
    (line,) = mistakes(papers(folder).values())
    assert "'theirs_for_a_test:Mine' is not imported, since a claims file names it" in line
    assert "theirs_for_a_test" not in sys.modules


@pytest.mark.parametrize("where", ["here", "on a server"])
def test_a_record_of_mlflow_s_may_not(suite: Path, where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    description = suite.with_name("description.json")
    experiment = {
        "scenario": {"problem": "quadratic", "budget": {"updates": 5}},
        "strategy": "theirs_for_a_test:Mine",
    }
    description.write_text(json.dumps(experiment))
    description.chmod(0o666 if where == "here" else 0o644)
    monkeypatch.setattr(
        "benchmarks.mlflow_store.artifact_locations.fetched", lambda *_: nullcontext(suite.parent)
    )
    address = str(suite.parent) if where == "here" else "s3://bucket/run"
    entry, store = RunResult("r", "0", "FINISHED", 0, 0, address), Store(suite.parent / "store")
    why = f"everyone can write to {description}" if where == "here" else "MLflow's record names it"
    with pytest.raises(UserError) as caught:
        replayed(entry, store)
    assert caught.value.lines == (
        f"run r cannot be replayed: strategy: 'theirs_for_a_test:Mine' is not imported, since {why}: {HOW}",
    )
    assert "theirs_for_a_test" not in sys.modules
    token = ALLOWED.set(True)
    try:
        with pytest.raises(UserError, match=r"cannot be replayed: (?!.*not imported)"):  # it has no log
            replayed(entry, store)
        assert "theirs_for_a_test" in sys.modules
    finally:
        ALLOWED.reset(token)
