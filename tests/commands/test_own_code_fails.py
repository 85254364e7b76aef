"""Own code that fails before anything runs: a line with its place, and nothing recorded is lost."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from shell import Done

LAW = """
from asyncfl import Durations

class Broken(Durations):
    \"\"\"A law that has no means.\"\"\"

    def means(self, n, seed):
        raise KeyError("x")
"""
SCRIPT = "import sys\n\nsys.exit(0)\n"
ASKED = """
import sys

from asyncfl import Strategy

class Asked(Strategy):
    \"\"\"A strategy that ends Python when it is asked what it refuses.\"\"\"

    def receive(self, server, update):
        server.step(update.delta)

    def refuses(self, scenario):
        sys.exit(0)
"""
SUITE = """
name: own
seeds: 1
problem: {name: quadratic}
budget: {updates: 5}
strategies: [asgd]
"""


@pytest.fixture(autouse=True)
def _imported_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test writes a module of this name."""
    monkeypatch.delitem(sys.modules, "mine", raising=False)


@pytest.mark.parametrize(
    ("code", "key", "said"),
    [
        (LAW, "timing: {durations: {name: 'mine:Broken'}}", "KeyError: 'x' (mine.py:8)"),
        (SCRIPT, "strategies: ['mine:S']", "cannot import 'mine:S': SystemExit: 0 (mine.py:3)"),
        (ASKED, "strategies: ['mine:Asked']", "SystemExit: 0 (mine.py:13)"),
    ],
)
def test_it_is_told_in_a_line(
    tmp_path: Path, typed: Callable[..., Done], code: str, key: str, said: str
) -> None:
    (tmp_path / "mine.py").write_text(code)
    kept = [line for line in SUITE.splitlines() if line.partition(":")[0] != key.partition(":")[0]]
    (tmp_path / "own.yaml").write_text("\n".join([*kept, key]))
    done = typed("run", "own.yaml")
    assert done.returncode == 2 and said in done.stderr and "Traceback" not in done.stderr
    assert len(done.stderr.splitlines()) == 1


ASTRAY = """
from asyncfl import Strategy

class Astray(Strategy):
    \"\"\"A strategy that sends to a client that is not there.\"\"\"

    def receive(self, server, update):
        server.step(update.delta)

    def next(self, server):
        return [99]
"""
WORDLESS = """
from asyncfl import Strategy

class Wordless(Exception):
    def __str__(self):
        raise RuntimeError

class Raises(Strategy):
    \"\"\"A strategy that raises an error without a text.\"\"\"

    def receive(self, server, update):
        raise Wordless
"""


@pytest.mark.parametrize(
    ("name", "code", "said"),
    [
        ("Astray", ASTRAY, "ValueError: Astray.next must return clients, numbers from 0 to 1, not 99"),
        ("Raises", WORDLESS, "Wordless (their_raises.py:12)"),
    ],
)
def test_show_tells_the_error_in_which_a_run_ends(
    tmp_path: Path, typed: Callable[..., Done], name: str, code: str, said: str
) -> None:
    """In the words of `run`, which records it: the estimate computes the beginning of a run."""
    module = f"their_{name.lower()}"
    (tmp_path / f"{module}.py").write_text(code)
    (tmp_path / "own.yaml").write_text(SUITE.replace("[asgd]", f"['{module}:{name}']"))
    done = typed("show", "own.yaml")
    assert done.returncode == 2
    assert done.stderr == f"Error: {name} · seed 0: error: {said}\n"


@pytest.mark.usefixtures("fork_server")
def test_tuned_values_stay_where_no_trial_comes_to_its_end(
    tmp_path: Path, typed: Callable[..., Done]
) -> None:
    """All diverge: nothing is found, the file of an earlier campaign stays, and the exit code says so."""
    hopeless = "lr: 1.0e+300\ntuning: {trials: 1, seeds: 1, space: {local_lr: [1.0e+300]}}"
    (tmp_path / "own.yaml").write_text(f"{SUITE}{hopeless}\n")
    (tmp_path / "tuned-own.yaml").write_text("# what was found before\n")
    done = typed("tune", "own.yaml", "--quiet")
    assert done.returncode == 1 and "no trial finished for 1 strategy" in done.stderr
    assert (tmp_path / "tuned-own.yaml").read_text() == "# what was found before\n"
    assert "Next:" not in done.stdout
