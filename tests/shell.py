"""`asyncfl`, or any program, in a process of its own, with the sources of this repository."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
ASYNCFL = "from asyncfl.cli import main; main()"

Done = subprocess.CompletedProcess[str]


def python(folder: Path, program: str, *arguments: str, code: Path = ROOT, **variables: str) -> Done:
    """Run a program in a folder, with some variables of the environment changed."""
    return subprocess.run(
        [sys.executable, "-c", program, *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(code), **variables},
        capture_output=True,
        text=True,
        check=False,
    )


def asyncfl(folder: Path, *arguments: str, code: Path = ROOT, **variables: str) -> Done:
    """Run `asyncfl` in a folder."""
    return python(folder, ASYNCFL, *arguments, code=code, **variables)
