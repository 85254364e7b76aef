"""What cannot be is said before anything is computed: in a line, exit code 2, and nothing is recorded."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from recorded import runs, write_suite

from benchmarks.engine import Local
from benchmarks.errors import users_mistake
from benchmarks.mlflow_store.store import Store
from benchmarks.runs.progress import Progress
from benchmarks.runs.session import Session
from benchmarks.suite.suite import load
from fl_core.problems.models.model import Model
from fl_core.problems.problem import InvalidProblemError, Problem

POOR = "{name: digits, clients: 60, partition: {name: class_dirichlet, alpha: 0.001}}"


def poor_suite(folder: Path) -> Path:
    """A suite whose data cannot be dealt out: it shows only when that is tried."""
    path = write_suite(folder)
    path.write_text(re.sub("problem: .*", f"problem: {POOR}", path.read_text()))
    return path


def test_a_partition_that_cannot_be_made(tmp_path: Path, store: Store) -> None:
    session = Session(load(str(poor_suite(tmp_path))), store)
    with pytest.raises(InvalidProblemError, match="alpha") as refused:
        session.run(Local(1), lambda _: Progress())
    assert users_mistake(refused.value) == (str(refused.value),)
    assert "\n" not in str(refused.value)
    assert not runs(store)


def test_a_check_builds_no_world(monkeypatch: pytest.MonkeyPatch) -> None:
    """No network, no Lightning: data are dealt out under the seed, and that is all."""

    def never(self: Model, shape: tuple[int, ...], classes: int) -> None:
        raise AssertionError("a network was built")

    problem = Problem.model_validate({"name": "digits", "clients": 12, "model": "cnn"})
    monkeypatch.setattr(type(problem.model), "build", never)  # type: ignore[attr-defined]
    problem.check(0)
    Problem.model_validate("quadratic").check(0)
