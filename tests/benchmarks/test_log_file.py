"""The log of a store: what sessions did, what libraries warned of, no passwords; it stops nothing."""

import logging
import re
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest
from recorded import write_suite
from toy import Count, Deadly

from benchmarks import engine, log_file
from benchmarks.errors import warn
from benchmarks.mlflow_store.store import Store
from benchmarks.pool.job import MAX_DEATHS
from benchmarks.pool.local import LocalPool
from benchmarks.runs.progress import Progress
from benchmarks.runs.session import Session
from benchmarks.suite.suite import load

LINE = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} (INFO|WARNING|ERROR) [\w.]+: \S.*")


def test_a_warning_is_printed_once_where_nothing_keeps_a_log() -> None:
    """Logging prints what no handler takes; pytest has one, so this asks another process."""
    program = "from benchmarks.errors import warn; warn('old records')"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("", "Warning: old records\n")


@pytest.fixture
def quiet() -> None:
    """Python's own filter of warnings, without pytest's."""
    warnings.simplefilter("always")


@pytest.mark.usefixtures("quiet")
def test_what_a_log_holds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    address = "postgresql://me:secret@there/db"
    monkeypatch.setattr(sys, "argv", ["/usr/bin/asyncfl", "run", "mine.yaml", "--tracking-uri", address])
    file = tmp_path / "asyncfl.log"

    def something_that_fails() -> None:
        logging.getLogger("tuning.anything").info("two\nlines to %s", address)
        logging.getLogger("some.library").info("not of interest")
        logging.getLogger("some.library").warning("of interest")
        warnings.warn("old", DeprecationWarning, stacklevel=1)
        warn("a warning of ours")
        raise RuntimeError(f"cannot reach {address}")

    with pytest.raises(RuntimeError), log_file.to_file(file):
        something_that_fails()
    text = file.read_text()
    assert "secret" not in text and text.count("postgresql://there/db") == 3
    assert "INFO benchmarks.log_file: asyncfl run mine.yaml --tracking-uri" in text
    assert "asyncfl-bench " in text and "torch " in text
    assert "INFO tuning.anything: two\\nlines to" in text
    assert "not of interest" not in text and "WARNING some.library: of interest" in text
    assert "DeprecationWarning: old" in text and "WARNING benchmarks.errors: a warning of ours" in text
    lines, _, traceback = text.partition("Traceback (most recent call last):")
    assert all(LINE.fullmatch(line) for line in lines.splitlines())
    assert "RuntimeError: cannot reach" in traceback


def test_afterwards_logging_is_as_before(tmp_path: Path) -> None:
    def state() -> list[object]:
        loggers = [logging.getLogger(name) for name in (None, *log_file.PACKAGES)]
        return [warnings.showwarning, *((logger.level, list(logger.handlers)) for logger in loggers)]

    before = state()
    with log_file.to_screen(), log_file.to_file(tmp_path / "asyncfl.log"):
        assert state() != before
    assert state() == before


@pytest.mark.parametrize("file", ["/dev/full", ".", "no/such/folder/asyncfl.log"])
def test_a_log_that_cannot_be_written_stops_nothing(
    file: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    done = False
    with log_file.to_file(tmp_path / file), log_file.phase("a phase"):
        done = True
    assert done and capsys.readouterr().err == ""


def test_workers_that_die_are_in_it(tmp_path: Path) -> None:
    file = tmp_path / "asyncfl.log"
    with log_file.to_file(file), LocalPool[Count](1, tmp_path / "workers.log") as pool:
        pool.submit(Deadly("deadly", deaths=MAX_DEATHS, tally=str(tmp_path / "deaths")))
        while pool.busy:
            pool.messages(1)
    text = file.read_text()
    assert text.count("worker 1 of 1 started") == MAX_DEATHS
    assert text.count("worker died (killed by SIGKILL) with jobs: deadly") == MAX_DEATHS
    assert [f"job deadly: {what}" in text for what in ("retry 1", "retry 2", "given up")] == [True] * 3


def test_a_session_tells_its_phases_and_what_ended_unusually(tmp_path: Path, store: Store) -> None:
    write_suite(tmp_path, "asgd, {name: asgd, local_lr: 9}", updates=400, seeds=1)
    session = Session(load(str(tmp_path / "small.yaml")), store, baselines=False)
    session.run(engine.engine("local", None, 1), lambda tasks: Progress())
    text = store.session_log.read_text()
    assert "small: 2 runs, 2 of them left" in text
    assert re.search(r"computing: \d+\.\d s", text) and "diverged" in text
    assert session.statuses["diverged"] == 1 and text.count("benchmarks.runs.session") == 2


def test_verbose_prints_it(tmp_path: Path, typed: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    write_suite(tmp_path, "asgd", seeds=1, updates=5)
    done = typed("run", "small.yaml", "--store", "here", "-v", "--quiet", "--no-report")
    assert done.returncode == 0 and "Distance" in done.stdout
    kept = (tmp_path / "here" / "asyncfl.log").read_text().splitlines()
    printed = [line for line in done.stderr.splitlines() if " benchmarks." in line]
    assert printed == kept and len(kept) >= 5
    again = typed("run", "small.yaml", "--store", "here", "--quiet", "--no-report")
    assert again.stderr == ""
