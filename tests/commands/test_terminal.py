"""`asyncfl` at a terminal that is closed, full, of another encoding, or interrupts it: a line, or silence."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
ASYNCFL = "from asyncfl.cli import main; main()"
SMALL = """
name: größe
seeds: 1
problem: quadratic
budget: {updates: 5}
strategies: [asgd]
"""
# Interrupts itself at the moment at which a module is first asked for.
INTERRUPTED = """
import os, signal, sys
class Interrupt:
    def find_spec(self, name, *_):
        if name == {module!r}:
            sys.meta_path.remove(self)
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Interrupt())
"""

Done = subprocess.CompletedProcess[str]


def asyncfl(*arguments: str, program: str = ASYNCFL, **changed: Any) -> Done:
    """A process of its own, with the test's settings away."""
    ours = ("ASYNCFL_", "LC_", "PYTHONUNBUFFERED")
    environment = {key: value for key, value in os.environ.items() if not key.startswith(ours)}
    environment |= {"PYTHONPATH": str(ROOT), **changed.pop("env", {})}
    usual = {"env": environment, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.run([sys.executable, "-c", program, *arguments], check=False, **{**usual, **changed})


@pytest.mark.parametrize("module", ["click", "torch"])  # the first import of weight, and the longest
def test_an_interrupted_import_ends_in_silence(module: str, tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(SMALL, encoding="utf-8")
    done = asyncfl("show", "a.yaml", program=INTERRUPTED.format(module=module) + ASYNCFL, cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


FORK_SERVER = """
import multiprocessing, os, signal
from multiprocessing import forkserver
from benchmarks.pool.fork_server import warm_up
warm_up()
os.kill(forkserver._forkserver._forkserver_pid, signal.SIGINT)
process = multiprocessing.get_context("forkserver").Process(target=os._exit, args=(7,))
process.start()
process.join()
print(process.exitcode)
"""


@pytest.mark.slow
def test_the_fork_server_ignores_ctrl_c_from_its_first_moment() -> None:
    """Ctrl-C reaches all processes of a terminal."""
    done = asyncfl(program=FORK_SERVER)
    assert (done.returncode, done.stdout, done.stderr) == (0, "7\n", "")


LIGHTNING = """
import multiprocessing
from benchmarks.pool.fork_server import prepare_for_networks, warm_up
code = "import sys; sys.exit(7 if 'pytorch_lightning' in sys.modules else 0)"
warm_up()
for ask in (lambda: None, prepare_for_networks):
    ask()
    process = multiprocessing.get_context("forkserver").Process(target=exec, args=(code,))
    process.start()
    process.join()
    print(process.exitcode)
"""


@pytest.mark.slow
def test_the_fork_server_imports_lightning_when_asked_to() -> None:
    done = asyncfl(program=LIGHTNING)
    assert (done.returncode, done.stdout, done.stderr) == (0, "0\n7\n", "")


@pytest.mark.slow
def test_asking_for_lightning_harms_no_other_fork_server() -> None:
    other = FORK_SERVER.replace("warm_up()\nos.kill", "forkserver.ensure_running()\nos.kill", 1)
    done = asyncfl(program=other.replace("SIGINT", "SIGURG"))
    assert (done.returncode, done.stdout, done.stderr) == (0, "7\n", "")


def test_ctrl_c_in_a_command_ends_with_its_exit_code(
    typed: Callable[..., Done], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("benchmarks.catalogue.entries", interrupted)
    done = typed("list", "strategies")
    assert (done.returncode, done.stdout, done.stderr.strip()) == (130, "", "")


def test_words_that_are_no_text(typed: Callable[..., Done], monkeypatch: pytest.MonkeyPatch) -> None:
    for words in (["list", "\udcff"], ["run", "\udcff.yaml"], ["\udcff"], ["report", "--store", "x\udcff"]):
        done = typed(*words)
        assert (done.returncode, done.stdout) == (2, "")
        assert (
            done.stderr.startswith("Error: '") and "cannot be encoded as utf-8: use names in " in done.stderr
        )
        assert done.stderr.count("\n") == 1
    monkeypatch.setenv("ASYNCFL_STORE", "\udcff")
    assert typed("list").returncode == 2


def test_a_folder_that_is_no_text_or_gone(
    typed: Callable[..., Done], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "a\udcff"
    folder.mkdir()
    monkeypatch.chdir(folder)
    assert "cannot be encoded as utf-8" in typed("list").stderr
    folder.rmdir()
    done = typed("list")
    said = "Error: the current folder no longer exists. Change to another folder\n"
    assert (done.returncode, done.stderr) == (2, said)


ASCII = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONIOENCODING": ""}


def test_a_locale_of_ascii_shows_what_it_can() -> None:
    done = asyncfl("list", env=ASCII)
    assert (done.returncode, done.stderr) == (0, "") and done.stdout.isascii() and "\\u03c4" in done.stdout


@pytest.mark.slow
def test_a_locale_of_ascii_records_all(tmp_path: Path) -> None:
    """Except under a name that is that of a folder."""
    path = tmp_path / "a.yaml"
    path.write_text(SMALL.replace("größe", "a\ndescription: größe"), encoding="utf-8")
    strict = {**ASCII, "PYTHONWARNDEFAULTENCODING": "1"}
    done = asyncfl("run", "a.yaml", "--workers", "1", env=strict, cwd=tmp_path)
    ours = [
        line for line in done.stderr.splitlines() if str(ROOT) in line and "site-packages" not in line
    ]  # an environment may lie among our files
    assert (done.returncode, ours) == (0, []), done.stderr
    assert "größe" in (tmp_path / "asyncfl-results/reports/a.html").read_text(encoding="utf-8")

    path.write_text(SMALL, encoding="utf-8")
    done = asyncfl("run", "a.yaml", "--workers", "1", env=ASCII, cwd=tmp_path)
    assert done.returncode == 2 and done.stderr.count("\n") == 1
    assert (
        "gr\\xf6\\xdfe' cannot be encoded as ascii: use names in UTF-8, and a locale such as" in done.stderr
    )


def test_closed_streams_lead_nowhere() -> None:
    """Nor does a file that is opened take their place: MLflow's database, say, would hold what is printed."""
    place = "import os; first = os.open(os.devnull, os.O_RDONLY); os.close(first); assert first > 2, first\n"
    checked = f"import atexit\natexit.register(lambda: exec({place!r}))\n{ASYNCFL}"
    done = asyncfl("--version", program=checked, preexec_fn=lambda: [os.close(at) for at in range(3)])
    assert (done.returncode, done.stderr) == (0, "")


def test_a_reader_that_has_read_enough() -> None:
    for words in (["list"], ["--version"]):
        ours, theirs = os.pipe()
        os.close(ours)
        done = asyncfl(*words, stdout=theirs)
        os.close(theirs)
        assert (done.returncode, done.stderr) == (1, ""), words


def test_a_full_disk_behind_the_output() -> None:
    for words in (["list"], ["--version"]):
        with Path("/dev/full").open("w") as full:
            done = asyncfl(*words, stdout=full)
        assert done.returncode == 2, words
        assert done.stderr.startswith("Error: No space left on device: ") and done.stderr.count("\n") == 1


def test_no_line_is_longer_than_300_characters(typed: Callable[..., Done], tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(f"name: a\n{'x' * 900}: 1\nseeds: {'y' * 4000}\n")
    for words in (
        ["list", "x" * 4000],
        ["show", "a.yaml"],
        ["x" * 4000],
        ["run", "a", "--engine", "x" * 4000],
    ):
        done = typed(*words)
        assert (done.returncode, done.stdout) == (2, "")
        assert all(len(line) <= 300 for line in done.stderr.splitlines()) and " … " in done.stderr
