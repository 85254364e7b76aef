"""The messages that users meet most, in `messages.txt`: an edited message is seen there in one place.

Write the file again: python tests/commands/test_messages.py
"""

import shlex
from io import StringIO
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from benchmarks.commands.group import asyncfl
from benchmarks.errors import users_mistake

GOLDEN = Path(__file__).parent / "messages.txt"
SUITE = """\
name: mine
problem: {name: digits, clients: 4}
timing: {durations: exponential}
budget: {updates: 20}
lr: 0.1
strategies: [fedbuff, asgd]
seeds: 2
"""
FILES = {
    "mine.yaml": SUITE,
    "typo.yaml": SUITE.replace("budget:", "bugdet:"),
    "law.yaml": SUITE.replace("exponential", "fix"),
    "strategy.yaml": SUITE.replace("fedbuff", "fedbuf"),
    "negative.yaml": SUITE.replace("clients: 4", "clients: -4"),
    "broken.yaml": SUITE.replace("[fedbuff, asgd]", "[fedbuff, asgd"),
    "own.yaml": SUITE.replace("asgd", "nowhere.strategies:Mine"),
    "twice.yaml": SUITE + "seeds: 3\n",
    "tuned.yaml": SUITE + "tuning: {sampler: grid, space: {local_lr: {low: 0.01, high: 1}}}\n",
    "jobs.csv": "device,began,ended\na,0,1\na,2,3\n",
    "empty.csv": "",
}


def commands() -> list[str]:
    """Return the command lines of the golden file."""
    lines = GOLDEN.read_text(encoding="utf-8").splitlines()
    return [line.removeprefix("$ asyncfl ") for line in lines if line.startswith("$ ")]


def printed(command: str) -> str:
    """Return the command line and the message with which it ends, as `execute` prints it."""
    result = CliRunner().invoke(asyncfl, shlex.split(command), prog_name="asyncfl", standalone_mode=False)
    error, text = result.exception, StringIO()
    if isinstance(error, click.ClickException):
        error.show(text)
    else:
        assert error is not None, f"asyncfl {command} reports no mistake"
        lines = users_mistake(error)
        assert lines is not None, f"asyncfl {command}: {error!r}"
        text.writelines(f"Error: {line}\n" for line in lines)
    return f"$ asyncfl {command}\n{text.getvalue()}"


def prepare(folder: Path) -> None:
    """Write the files with mistakes into a folder."""
    for name, content in FILES.items():
        (folder / name).write_text(content, encoding="utf-8")


def test_the_messages_that_users_meet_most(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    prepare(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ASYNCFL_STORE", "asyncfl-results")
    monkeypatch.setenv("COLUMNS", "80")
    assert "\n".join(map(printed, commands())) == GOLDEN.read_text(encoding="utf-8")


if __name__ == "__main__":
    import os
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        prepare(Path(folder))
        os.chdir(folder)
        os.environ |= {"ASYNCFL_STORE": "asyncfl-results", "COLUMNS": "80"}
        text = "\n".join(map(printed, commands()))
    GOLDEN.write_text(text, encoding="utf-8")
