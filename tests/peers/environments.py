"""Environments of the frameworks: each has its own pinned packages above a shared torch for CPUs."""

import subprocess
import sys
import venv
from collections.abc import Sequence
from pathlib import Path

# What every framework needs; torch without its CUDA libraries
BASE = (
    *("torch==2.13.0", "numpy==2.4.6", "typing-extensions==4.16.0", "sympy==1.14.0", "mpmath==1.3.0"),
    *("networkx==3.6.1", "jinja2==3.1.6", "markupsafe==3.0.4", "fsspec==2026.9.0", "filelock==4.2.11"),
)


def make(folder: Path, requirements: Sequence[str], base: Path | None = None) -> Path:
    """Return the interpreter of an environment with these packages and no others; make it if it is missing.

    Args:
        folder: Of the environment.
        requirements: Pinned packages, without their dependencies.
        base: The environment below it, whose packages are found after its own.
    """
    python = folder / "bin" / "python"
    complete = folder / "requirements.txt"
    wanted = "\n".join(requirements)
    if complete.is_file() and complete.read_text() == wanted:
        return python
    venv.create(folder, clear=True)
    if base is not None:
        (site,) = (folder / "lib").glob("python*/site-packages")
        (below,) = (base / "lib").glob("python*/site-packages")
        (site / "base.pth").write_text(f"{below}\n")
    if requirements:
        pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", "--no-deps"]
        # Plato and FlexFL ask for a newer Python than their server code needs
        subprocess.run([*pip, "--ignore-requires-python", *requirements], check=True)
    complete.write_text(wanted)
    return python
