"""A command that starts in a folder of others runs nothing that lies there, and finds what its user names."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

# What some library tries to import (found by a finder that notes all names that no other finds) …
OPTIONAL = """backports bottleneck brotli brotlicffi chardet colorama ctags cuda cython dill email_validator
envwrap lz4 monkeytype multipart numexpr opt_einsum org orjson polars pydot pynvml pyspark
python_multipart pytz redis scikits simplejson sksparse sniffio socks substrait torchcomms uarray ujson"""
# … and what a Python process imports that searches the working directory first.
SHADOWING = "multiprocessing signal json click torch mlflow uvicorn numpy psutil usercustomize"

SUITE = """
name: tiny
seeds: 1
problem: quadratic
budget: {updates: 20}
strategies: ["mine.area:Mine", "solo:Mine"]
tuning: {trials: 2}
"""
MARK = """
open({marks!r}, "a").write(__name__ + " ")
raise ImportError("as if it were not there")
"""
PLUGIN = "[mlflow.tracking_store]\nevil = evil:Store\n[mlflow.app]\nevil = evil:app\n"

OWN = """
from fl_core.strategies.asgd import ASGD

class Mine(ASGD):
    '''A strategy of a user's own.'''

    title = "Mine"

    def receive(self, server, update):
        from .steps import scaled
        server.step(scaled(self.server_lr, update))
"""
STEPS = """
def scaled(rate, update):
    return rate * update.delta
"""

Started = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with modules that leave a mark when they are imported, and strategies of the user's own.

    And with a package of the name of one of ours.
    """
    folder = tmp_path / "shared"
    folder.mkdir()
    for name in [*OPTIONAL.split(), *SHADOWING.split(), "evil"]:
        (folder / f"{name}.py").write_text(MARK.format(marks=str(tmp_path / "marks")))
    (folder / "evil-1.0.dist-info").mkdir()
    (folder / "evil-1.0.dist-info" / "entry_points.txt").write_text(PLUGIN)
    (folder / "evil-1.0.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: evil\nVersion: 1\n")
    (folder / "benchmarks").mkdir()
    (folder / "benchmarks" / "__init__.py").write_text(MARK.format(marks=str(tmp_path / "marks")))
    (folder / "mine").mkdir()
    (folder / "mine" / "area.py").write_text(OWN)
    (folder / "mine" / "steps.py").write_text(STEPS)
    (folder / "solo.py").write_text(OWN.partition("    def receive")[0])
    (folder / "tiny.yaml").write_text(SUITE)
    return folder


@pytest.fixture
def asyncfl(tmp_path: Path) -> Started:
    """Starts `asyncfl` in a folder, as the installed script does."""
    script = tmp_path / "bin" / "asyncfl"
    script.parent.mkdir()
    script.write_text("from asyncfl.cli import main\n\nif __name__ == '__main__':\n    main()\n")

    def _start(folder: Path, *arguments: str, path: str = str(ROOT)) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, str(script), *arguments],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"},
            capture_output=True,
            text=True,
            check=False,
        )

    return _start


def marks(folder: Path) -> str:
    """The modules that were imported."""
    file = folder.parent / "marks"
    return file.read_text() if file.exists() else ""


def without_shadows(folder: Path) -> None:
    """Leave only those modules that no process needs."""
    for name in SHADOWING.split():
        (folder / f"{name}.py").unlink()


RUN = ("run", "tiny.yaml", "--workers", "1", "--quiet")


@pytest.mark.slow
def test_nothing_is_imported_but_what_the_suite_names(folder: Path, asyncfl: Started) -> None:
    done = asyncfl(folder, *RUN)
    assert (done.returncode, marks(folder)) == (0, ""), done.stderr
    assert "died" not in done.stderr


@pytest.mark.slow
def test_nor_by_other_commands(folder: Path, asyncfl: Started) -> None:
    for command in (["list"], RUN, ["report", "tiny"], ["tune", "tiny.yaml", "--workers", "1"]):
        done = asyncfl(folder, *command)
        assert (done.returncode, marks(folder)) == (0, ""), (command, done.stderr)
    assert "mine.area:Mine" in (folder / "tuned-tiny.yaml").read_text()


@pytest.mark.parametrize("command", [("show", "tiny.yaml"), pytest.param(RUN, marks=pytest.mark.slow)])
def test_nor_where_pythonpath_has_empty_entries(
    folder: Path, asyncfl: Started, command: tuple[str, ...]
) -> None:
    """`PYTHONPATH=$PYTHONPATH:…` has one wherever the variable was empty."""
    without_shadows(folder)  # Python imports some of them before this package gets to work
    path = os.pathsep.join([str(ROOT), "", "."])
    done = asyncfl(folder, *command, path=path)
    assert (done.returncode, marks(folder)) == (0, ""), done.stderr


@pytest.mark.slow
def test_the_pages_of_mlflow_import_nothing_either(folder: Path, asyncfl: Started) -> None:
    """Its server is other processes, which search the folder on their own account."""
    assert asyncfl(folder, *RUN).returncode == 0
    shutil.rmtree(folder / "evil-1.0.dist-info")
    for path in folder.glob("*.py"):
        if path.stem != "org":  # a server that imported some of the others would not start
            path.unlink()
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    script = folder.parent / "bin" / "asyncfl"
    server = subprocess.Popen(
        [sys.executable, "-u", str(script), "ui", "--port", str(port)],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert server.stdout is not None
    ready = any(line.startswith("MLflow UI:") for line in server.stdout)
    server.terminate()
    server.wait()
    assert (ready, marks(folder)) == (True, "")
