"""`asyncfl check` on real runs: what passes, what fails; and the suite `ci`."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from click.testing import CliRunner, Result
from in_process import deliver
from recorded import write_suite

from benchmarks import speed as strategies
from benchmarks.commands import check
from benchmarks.engine import Local
from benchmarks.errors import UserError
from benchmarks.mlflow_store.store import Store
from benchmarks.runs.progress import Progress
from benchmarks.runs.session import Session
from benchmarks.suite.suite import load
from fl_core.recorded_names import Tag
from fl_core.strategies.strategy import Strategy
from reports.gate import baseline as baselines
from reports.gate.output import SUMMARY
from tests.databases import new_store


def run(suite: Path, store: Store) -> None:
    """Compute and record a suite."""
    Session(load(str(suite)), store).run(Local(2), lambda _: Progress())


def invoke(command: object, *words: object) -> Result:
    return CliRunner().invoke(command, list(map(str, words)))  # type: ignore[arg-type]


def complaint(command: object, *words: object) -> str:
    """What the user is told, in one line."""
    error = invoke(command, *words).exception
    assert isinstance(error, UserError), error
    (line,) = error.lines
    return line


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """A store with two strategies and two seeds, to be read alone."""
    folder = tmp_path_factory.mktemp("checked")
    store = new_store(folder / "results")
    deliver(folder, store)
    return store


def test_records_agree_with_their_own_baseline(tmp_path: Path, recorded: Store) -> None:
    """And with that of nothing else: another suite, other runs, no baseline at all."""
    suite, file = write_suite(tmp_path), tmp_path / "base.json"
    at_store = ("--store", recorded.folder)
    done = invoke(check.command, suite, *at_store, "--baseline", file, "--no-speed", "--write")
    assert done.exit_code == 0 and len(baselines.read(file).runs) == 4
    assert len(re.findall(r"(?:FedBuff|ASGD) .*(?:[−+]|× )\S+ *$", done.output, re.MULTILINE)) == 6

    junit, summary = tmp_path / "new" / "gate.xml", tmp_path / "new" / "gate.md"
    done = invoke(check.command, suite, *at_store, "--baseline", file, "--junit", junit, "--summary", summary)
    assert done.exit_code == 0, done.output
    assert ET.parse(junit).getroot()[0].get("tests") == "10"
    assert summary.read_text().startswith(SUMMARY)

    again = ("--baseline", file, "--no-speed", "--junit", junit, "--summary", summary)
    assert invoke(check.command, suite, *at_store, *again).exit_code == 0  # written anew
    notes = tmp_path / "notes.md"
    notes.write_text("# Notes\n\n## What asyncfl check said\n")
    for option in ("--junit", "--summary"):
        assert str(notes) in complaint(check.command, suite, *at_store, "--baseline", file, option, notes)
    assert str(notes) in complaint(
        check.command, suite, *at_store, "--no-speed", "--baseline", notes, "--write"
    )
    assert "What asyncfl check said" in notes.read_text()

    assert "'small'" in complaint(check.command, suite, *at_store)  # no baseline of it is shipped
    (tmp_path / "longer").mkdir()
    longer = write_suite(tmp_path / "longer", updates=80)
    against = (*at_store, "--baseline", file, "--junit", junit, "--summary", summary)
    for words in ((longer,), (suite, "--set", "budget.updates=80")):
        error = invoke(check.command, *words, *against).exception
        assert isinstance(error, UserError)
        assert "lacks 4 of its 4 and has 4 more" in error.lines[0]
        assert error.lines[1:] == ("scenario.budget.updates: 60 → 80",)
        assert error.lines[1] in summary.read_text()
        case = ET.parse(junit).find(".//error")
        assert case is not None and error.lines[1] in str(case.text)
    done = invoke(check.command, suite, *at_store, "--baseline", file, "--no-speed", "--update")
    assert done.exit_code == 0 and not baselines.read(file).accepted
    other = write_suite(tmp_path, name="other")
    said = complaint(check.command, other, *at_store, "--baseline", file)
    assert str(file) in said and "'small'" in said and "'other'" in said
    none = tmp_path / "none.json"
    assert f"--write --baseline {none}" in complaint(check.command, suite, *at_store, "--baseline", none)
    elsewhere = tmp_path / "elsewhere"
    said = complaint(check.command, suite, "--store", elsewhere, "--baseline", file)
    assert str(elsewhere) in said and not elsewhere.exists()


def test_a_crash_of_the_users_code_is_reported_with_its_traceback(
    tmp_path: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Raised where the suite is loaded."""

    def crash(*_: object) -> None:
        exec(
            compile("def step():\n    raise ValueError('no step')\nstep()", "mine/own.py", "exec"),
            {"__name__": "own"},
        )

    monkeypatch.setattr("benchmarks.suite.suite.load", crash)
    junit, summary = tmp_path / "gate.xml", tmp_path / "gate.md"
    words = ("--store", store.folder, "--junit", junit, "--summary", summary)
    error = invoke(check.command, write_suite(tmp_path), *words).exception
    assert isinstance(error, ValueError)
    case = ET.parse(junit).find(".//error")
    assert case is not None and "own.py" in str(case.text) and "ValueError: no step" in str(case.text)
    assert "ValueError: no step" in summary.read_text()


def test_a_file_of_another_is_no_report_and_stays_as_it_is(tmp_path: Path, store: Store) -> None:
    """The other report says why nothing was compared."""
    junit, summary = tmp_path / "gate.xml", tmp_path / "notes.md"
    summary.write_text("# Notes\n")
    words = ("--store", store.folder, "--junit", junit, "--summary", summary)
    error = invoke(check.command, write_suite(tmp_path), *words).exception
    assert isinstance(error, UserError)
    case = ET.parse(junit).find(".//error")
    assert case is not None and str(summary) in str(case.attrib) + str(case.text)
    assert summary.read_text() == "# Notes\n"


def test_a_run_that_ended_in_error_is_reported_with_its_traceback(tmp_path: Path, store: Store) -> None:
    mended, file = tmp_path / "mended", tmp_path / "base.json"
    strategies = f"asgd, {{name: 'sluggish:Failing', mended: '{mended}', label: Failing}}"
    mended.touch()
    deliver(tmp_path, store, strategies=strategies)
    mended.unlink()
    suite, baseline = tmp_path / "small.yaml", ("--baseline", file, "--no-speed")
    done = invoke(check.command, suite, "--store", store.folder, *baseline, "--write")
    assert done.exit_code == 0, done.output
    fresh, junit, summary = Store(tmp_path / "fresh"), tmp_path / "gate.xml", tmp_path / "gate.md"
    deliver(tmp_path, fresh, strategies=strategies)
    reports = ("--junit", junit, "--summary", summary)
    said = complaint(check.command, suite, "--store", fresh.folder, *baseline, *reports)
    assert "2 of 4 runs" in said and "RuntimeError: the twentieth update (" in said
    case = ET.parse(junit).find(".//error")
    for text in (summary.read_text(), str(case.text) if case is not None else ""):
        assert "in receive\n    raise RuntimeError(" in text


def test_a_baseline_is_written_or_compared_with(tmp_path: Path) -> None:
    for words in (("--update",), ("--quality-only",), ("--junit", tmp_path / "gate.xml")):
        done = invoke(check.command, write_suite(tmp_path), "--store", tmp_path, "--write", *words)
        assert done.exit_code == 2 and words[0] in done.output


def test_what_is_missing(tmp_path: Path, recorded: Store) -> None:
    """Runs that are not recorded are named; one seed makes no baseline."""
    for seeds, named in ((3, "2 of 6 runs"), (1, "one seed")):
        suite = write_suite(tmp_path, seeds=seeds)
        assert named in complaint(check.command, suite, "--store", recorded.folder, "--write")
    assert not (recorded.folder / "baselines").exists()


@pytest.mark.usefixtures("fork_server")
def test_records_of_another_commit(tmp_path: Path, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """A store that was filled before says nothing about what is checked out now, here or at the user's."""
    suite, file = write_suite(tmp_path), tmp_path / "base.json"
    about = {Tag.COMMIT: "", Tag.REPOSITORY: "a" * 40, Tag.VERSIONS: {}}
    monkeypatch.setattr("benchmarks.runs.session.provenance", lambda: about)
    run(suite, store)
    invoke(check.command, suite, "--store", store.folder, "--baseline", file, "--no-speed", "--write")
    assert baselines.read(file).repository == "a" * 40
    warned = {}
    for here in ("a" * 40, "a" * 40 + "+", "b" * 40, ""):
        monkeypatch.setattr("benchmarks.mlflow_store.provenance.commit", lambda *_, here=here: here)
        done = invoke(check.command, suite, "--store", store.folder, "--baseline", file)
        warned[here[:1]] = (
            "the runs were computed at commit aaaaaaaaaaaa, not at bbbbbbbbbbbb" in done.output + done.stderr
        )
    assert warned == {"a": False, "b": True, "": False}


def test_what_is_accepted_depends_on_both_questions(tmp_path: Path, recorded: Store) -> None:
    """Asked for reproducibility alone, results that are also worse are not offered to --update."""
    suite, file = write_suite(tmp_path), tmp_path / "base.json"
    at_store = (suite, "--store", recorded.folder, "--no-speed")
    invoke(check.command, *at_store, "--baseline", file, "--write")
    before = baselines.read(file)
    by = 10 if all(goal.higher for goal in before.goals.values()) else -10
    better = [one.model_copy(update={"final": one.final + by, "loss": ((40, 0.0),)}) for one in before.runs]
    baselines.write(before.model_copy(update={"runs": tuple(better)}), file)
    done = invoke(check.command, *at_store, "--baseline", file, "--reproducibility-only")
    assert done.exit_code == 3 and "--update --accept-worse REASON" in done.output
    both = ("--reproducibility-only", "--quality-only")
    assert all(option in complaint(check.command, *at_store, "--baseline", file, *both) for option in both)
    update = (check.command, *at_store, "--baseline", file, "--update")
    assert "--accept-worse" in complaint(*update)
    assert len(baselines.read(file).runs) == len(better) and not baselines.read(file).accepted
    done = invoke(*update, "--accept-worse", "the target was wrong")
    assert done.exit_code == 0, done.output
    assert re.search(r"^Worse: FedBuff in .*worse in 2 of 2 seeds$", done.output, re.MULTILINE)
    accepted = baselines.read(file)
    assert [line.reason for line in accepted.accepted] == ["the target was wrong"]
    assert [one.final for one in accepted.first_runs] == [one.final for one in better]
    assert accepted.runs == before.runs
    assert invoke(check.command, *at_store, "--baseline", file).exit_code == 0
    written = invoke(check.command, *at_store, "--baseline", file, "--write")
    assert written.exit_code == 0 and "drops its history of 1 entry" in written.output
    assert "history" not in invoke(check.command, *at_store, "--baseline", file, "--write").output
    for words in (("--accept-worse", "why"), ("--update", "--accept-worse", " ")):
        assert invoke(check.command, *at_store, "--baseline", file, *words).exit_code == 2


def test_the_tolerance_of_golden_values(tmp_path: Path, recorded: Store) -> None:
    """Differences within it are a warning where the same machine made both; beyond it they fail."""
    suite, file = write_suite(tmp_path), tmp_path / "base.json"
    at_store = (suite, "--store", recorded.folder, "--no-speed", "--baseline", file)
    invoke(check.command, *at_store, "--write")
    before = baselines.read(file)
    digits = [
        one.model_copy(update={"loss": tuple((at, loss * (1 + 1e-8)) for at, loss in one.loss)})
        for one in before.runs
    ]
    baselines.write(before.model_copy(update={"runs": tuple(digits)}), file)
    assert invoke(check.command, *at_store).exit_code == 0
    assert invoke(check.command, *at_store, "--tolerance", "1e-9").exit_code == 3
    for wrong in (("-1",), ("nan",), ("1", "--update")):
        assert invoke(check.command, *at_store, "--tolerance", *wrong).exit_code == 2


def test_speed_is_a_median_of_ratios_to_the_yardstick_beside_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that is ten times slower for a while slows both, and one hiccup of seven is forgotten."""
    seconds = iter([20, 40] + [2, 4] * 5 + [2, 400])
    monkeypatch.setattr(strategies, "rate", lambda *_: 1 / next(seconds))
    planned = load("ci", ["strategies=[asgd]"]).runs()
    assert strategies.ratios(planned, ["ASGD"]) == {"ASGD": 0.5}


def test_the_suite_ci_covers_every_strategy() -> None:
    """On two kinds of problem, under several seeds, in the execution that repeats bit for bit."""
    suite = load("ci")
    runs = suite.runs()
    assert {run.experiment.strategy.name for run in runs} == Strategy.members().keys()
    assert {run.experiment.scenario.problem.name for run in runs} == {"digits", "quadratic"}
    assert len({run.scenario for run in runs}) >= 3
    assert len({run.experiment.seed for run in runs}) >= 3
    assert {run.execution for run in runs} == {"one_by_one"}


def test_the_shipped_baseline_is_one_of_the_suite_ci() -> None:
    """Of exactly its runs, all done, with the speed of every strategy."""
    path, planned = baselines.shipped("ci"), load("ci").runs()
    found = baselines.read(path)
    baselines.must_fit(found, planned, path)
    baselines.must_have_spread(found)
    assert {one.status for one in found.runs} == {"done"}
    assert found.speed.keys() == {run.strategy for run in planned}
