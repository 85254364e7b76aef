"""The mutation tester itself: its operators, its list of files, its session, what a change touches."""

import importlib
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("cosmic_ray")

from cosmic_ray.mutating import mutate_code
from cosmic_ray.operators.operator import Operator

from tests.mutants import changed, targets
from tests.mutants.forks import Job, results
from tests.mutants.imports import forget, imported, reached
from tests.mutants.mutant import Mutant, mutants
from tests.mutants.operators import LeaveOutFunction, LeaveOutStatement
from tests.mutants.relevance import body_lines
from tests.mutants.report import equivalent
from tests.mutants.session import Result, Session
from tests.mutants.trial import MutatedModule

FEDBUFF = "fl_core/strategies/buffered/fedbuff.py"


def changes(file: str) -> list[str]:
    """Every mutation of a file, as the report shows it."""
    return [mutant.change() for mutant in mutants(file) if mutant.source() is not None]


@pytest.mark.parametrize(
    "operator", [LeaveOutStatement(), LeaveOutFunction()], ids=lambda each: type(each).__name__
)
def test_operators_do_what_their_examples_say(operator: Operator) -> None:
    """Cosmic Ray's own convention for operators."""
    for example in operator.examples():
        mutated = mutate_code(example.pre_mutation_code, operator, example.occurrence)
        assert mutated == example.post_mutation_code


def test_every_pattern_matches_a_file() -> None:
    """A file that has moved must not leave the list in silence."""
    patterns = [pattern for group in targets.GROUPS.values() for pattern in group]
    for pattern in (*patterns, *targets.TESTS, *targets.TESTS_LEFT_OUT):
        assert targets.files((pattern,)), f"{pattern} in tests/mutants/targets.py matches nothing"


def test_faults_that_were_once_unseen_are_among_the_mutants() -> None:
    """AMSGrad's maximum left out, a root that is none, a rounding left out."""
    fadas, fedbuff, asyncfeded = (
        changes(f"fl_core/strategies/{name}.py")
        for name in ("buffered/fadas", "buffered/fedbuff", "every_arrival/asyncfeded")
    )
    assert any(change.endswith("→ memory.v_max = (memory.v)") for change in fadas)
    assert any("→ scale = (1 + update.staleness) * 0.5 if" in change for change in fedbuff)
    assert any(change.endswith("+ (self.gain * (self.wanted - gamma)))") for change in asyncfeded)


def test_search_ranges_are_no_mutants() -> None:
    """They are the tuner's data."""
    ranged = [change for change in changes(FEDBUFF) if "Tune(" in change]
    assert ranged and all("Tune(1, 32)" in change.split(" → ")[1] for change in ranged)  # the default is one


def at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: int) -> list[int] | None:
    """`body_lines` of a mutation in `line` of a small program."""
    program = "ONE = 1\n\n\ndef f(x=1):\n    if x:\n        y = (\n            1\n        )\n    return y\n"
    (tmp_path / "program.py").write_text(program)
    monkeypatch.setattr("tests.mutants.relevance.ROOT", tmp_path)
    lines = body_lines(Mutant("program.py", "", 0, (line, 0), (line, 1), ""))
    return None if lines is None else list(lines)


def test_lines_of_the_statement_around_a_mutation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The module; a function's head; a compound statement's head; a statement of several lines."""
    found = {line: at(tmp_path, monkeypatch, line) for line in (1, 4, 5, 7, 9)}
    assert found == {1: None, 4: [5, 6, 7, 8, 9], 5: [5], 7: [6, 7, 8], 9: [9]}


def default_of_buffer(mutant: Mutant) -> int:
    """In a child: FedBuff's default, as the mutated module has it."""
    forget(mutant.module)
    sys.meta_path.insert(0, MutatedModule(mutant, mutant.source() or ""))
    default: int = importlib.import_module(mutant.module).FedBuff.model_fields["buffer"].default
    return default


def test_a_child_imports_the_mutated_module_and_no_one_else_does() -> None:
    """The file and this process keep the original."""
    larger = next(each for each in mutants(FEDBUFF) if "] = 11  # K" in each.change())
    jobs = iter([Job("larger", default_of_buffer, (larger,))])
    before = (targets.ROOT / FEDBUFF).read_text()
    assert dict(results(lambda: next(jobs, None), 1, time.monotonic() + 60)) == {"larger": 11}
    assert (targets.ROOT / FEDBUFF).read_text() == before
    assert importlib.import_module(larger.module).FedBuff.model_fields["buffer"].default == 10


def test_a_mutation_reaches_those_that_import_its_module() -> None:
    """Directly or not, in a function or for types only; and nobody else."""
    assert reached("fl_core.strategies.buffered.fedbuff") == {"fl_core.strategies.buffered.fedbuff"}
    assert "fl_core.scenario" in imported()["fl_core.strategies.strategy"]  # for types
    everything = reached("fl_core.words")
    assert {"fl_core.timing.durations", "fl_core.loop.simulation", "fl_core.strategies.strategy"} < everything
    assert "fl_core.theory.weights" not in everything


def test_a_child_that_hangs_or_dies_has_no_result() -> None:
    """None for both; what still runs at the deadline is stopped and not reported."""
    jobs = iter(
        [Job("hangs", time.sleep, (60,), 0.2), Job("dies", os._exit, (1,)), Job("works", len, ("abc",))]
    )
    found = dict(results(lambda: next(jobs, None), 2, time.monotonic() + 60))
    assert found == {"hangs": None, "dies": None, "works": 3}
    jobs = iter([Job("late", time.sleep, (60,))])
    assert list(results(lambda: next(jobs, None), 2, time.monotonic() + 0.2)) == []


def test_results_are_kept_and_survivors_tried_again_with_other_tests(tmp_path: Path) -> None:
    """A killed mutant stays killed; a survivor of old tests is not settled."""
    killed, survived, untried = mutants(FEDBUFF)[:3]
    session = Session(tmp_path / "session.sqlite")
    session.set(killed, Result("killed", "test_a"))
    session.set(survived, Result("survived", "old"))
    session.close()
    session = Session(tmp_path / "session.sqlite")
    assert session.results[killed.key] == Result("killed", "test_a")
    assert [session.settled(each, "old") for each in (killed, survived, untried)] == [True, True, False]
    assert [session.settled(each, "new") for each in (killed, survived, untried)] == [True, False, False]
    session.set(survived, Result("killed", "test_b"))
    assert session.settled(survived, "new")
    session.close()


def test_equivalent_mutants_exist() -> None:
    """A reason for a mutation that is no longer made is out of date."""
    for file, change in equivalent():
        lines = [line.strip() for line in (targets.ROOT / file).read_text().splitlines()]
        near = [each for each in mutants(file) if change.startswith(lines[each.start[0] - 1])]
        assert any(each.change() == change for each in near), f"{file}: {change}"


def git(folder: Path, *arguments: str) -> None:
    """A git command with an author."""
    who = ["-c", "user.name=n", "-c", "user.email=e@example.org", "-c", "init.defaultBranch=main"]
    subprocess.run(["git", *who, *arguments], cwd=folder, check=True, capture_output=True)


def test_what_a_change_touches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No history, one commit, two commits, and what is not committed yet."""
    monkeypatch.setattr(changed, "ROOT", tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert changed.base() is None
    git(tmp_path, "init")
    for name in ("first.py", "second.py"):
        assert changed.base() is None
        (tmp_path / name).write_text("")
        git(tmp_path, "add", name)
        git(tmp_path, "commit", "-m", name)
    commit = changed.base()
    assert commit is not None
    assert changed.changed_since(commit) == ["second.py"]
    (tmp_path / "first.py").write_text("1")
    assert changed.changed_since(commit) == ["first.py", "second.py"]
