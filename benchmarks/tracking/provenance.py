"""Where numbers come from: version and commit of this package, versions of its dependencies, the machine."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import subprocess
from pathlib import Path

from fl_core.schema import Tag

ROOT = Path(__file__).parents[2]
LIBRARIES = ("torch", "torchvision", "pytorch-lightning", "numpy", "scikit-learn", "pydantic", "mlflow")


def provenance() -> dict[Tag, str | dict[str, str]]:
    """Everything of it, by tag."""
    return {
        Tag.VERSION: version("asyncfl-bench"),
        Tag.COMMIT: commit(),
        Tag.VERSIONS: versions(),
        Tag.MACHINE: machine(),
    }


def version(distribution: str) -> str:
    """The installed version; empty if it is not installed."""
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return ""


def versions() -> dict[str, str]:
    """Of Python, and of each library that a number may depend on."""
    found = {"python": platform.python_version(), **{name: version(name) for name in LIBRARIES}}
    return {name: number for name, number in found.items() if number}


def commit() -> str:
    """The commit of the sources, with `+` if they were changed since; empty if they are no git checkout."""
    if not (ROOT / ".git").exists():
        return ""
    head = _git("rev-parse", "--verify", "--quiet", "HEAD")
    return head + "+" if head and _git("status", "--porcelain", "--untracked-files=no") else head


def _git(*arguments: str) -> str:
    try:
        done = subprocess.run(
            ["git", "-C", ROOT, *arguments], capture_output=True, text=True, check=True, timeout=10
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip()


def machine() -> str:
    """System, processor and number of cores."""
    return f"{platform.system()} {platform.release()}, {_processor()}, {os.cpu_count()} cores"


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, "") or platform.processor() or platform.machine()
