"""Provenance of numbers: version and commit of the package, versions of dependencies, the machine.

Recorded with every run, stored number and tuned value, so that a number can be traced to the code that made
it.

Fixed: forms of commit and versions, by which stored numbers count as traceable.
"""

import importlib.metadata
import os
import platform
import subprocess
from pathlib import Path

from fl_core.import_guard import not_own
from fl_core.recorded_names import Tag

ROOT = Path(__file__).parents[2]
NO_SOURCES = (":(top,exclude)benchmarks/claims/results", ":(top,exclude)benchmarks/claims/decisions")
LIBRARIES = ("torch", "torchvision", "pytorch-lightning", "numpy", "scikit-learn", "pydantic", "mlflow")


def provenance() -> dict[Tag, str | dict[str, str]]:
    """Return the provenance of numbers computed now, by tag."""
    return {
        Tag.VERSION: version("asyncfl-bench"),
        Tag.COMMIT: commit(),
        Tag.REPOSITORY: commit(Path.cwd()),
        Tag.VERSIONS: versions(),
        Tag.MACHINE: machine(),
        Tag.PROCESSOR: processor(),
    }


def version(distribution: str) -> str:
    """Return the installed version of a distribution; empty if not installed."""
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return ""


def versions() -> dict[str, str]:
    """Return the versions of Python and of each installed library with influence on numbers."""
    numbers = {"python": platform.python_version(), **{name: version(name) for name in LIBRARIES}}
    return {name: number for name, number in numbers.items() if number}


def commit(folder: Path = ROOT) -> str:
    """Return the commit of the git repository of a folder, with `+` if tracked files were changed.

    Stored numbers of claims do not count as changes: otherwise, after `asyncfl claims run` stored the first
    numbers, all later ones would come from a changed tree.

    Args:
        folder: Any folder of the repository; by default that of the sources of this package.

    Returns:
        The hash, or nothing where there is no repository or no commit.
    """
    if folder == ROOT and not (ROOT / ".git").exists():  # installed, maybe inside of another repository
        return ""
    head = _git(folder, "rev-parse", "--verify", "--quiet", "HEAD")
    status = ("status", "--porcelain", "--untracked-files=no", "--", ":/", *NO_SOURCES)
    changed = head and _git(folder, "-c", "core.fsmonitor=", *status)
    return head + "+" if changed else head


def has_commit(name: str, folder: Path = ROOT) -> bool:
    """Return whether the repository of a folder has the named commit."""
    return bool(_git(folder, "rev-parse", "--verify", "--quiet", f"{name}^{{commit}}"))


def _git(folder: Path, *arguments: str) -> str:
    """Return the output of a git command in a folder; empty without git or a repository, or on failure."""
    # Git refuses the checkout of another user, as in a container of CI; trusted folders may be read
    # nevertheless.
    trust = [] if not_own(folder) else ["-c", "safe.directory=*"]
    try:
        done = subprocess.run(
            ["git", *trust, "-C", folder, *arguments], capture_output=True, text=True, check=True, timeout=10
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip()


def machine() -> str:
    """Return system, processor and number of cores as text."""
    return f"{platform.system()} {platform.release()}, {_name(_cpu_info())}, {os.cpu_count()} cores"


def processor() -> str:
    """Return system, kind of processor, and vector instructions, the influences on sums of floats."""
    import torch

    info = _cpu_info()
    kind = (f"{key} {info[key]}" for key in ("cpu family", "model") if key in info)  # names may be generic
    return ", ".join([platform.system(), _name(info), *kind, torch.backends.cpu.get_cpu_capability()])


def _name(info: dict[str, str]) -> str:
    return info.get("model name", "") or platform.processor() or platform.machine()


def _cpu_info() -> dict[str, str]:
    """Return Linux's description of the first core; empty on other systems."""
    try:
        first = Path("/proc/cpuinfo").read_text(encoding="utf-8").partition("\n\n")[0]
    except OSError:
        return {}
    rows = (line.partition(":") for line in first.splitlines())
    return {key.strip(): value.strip() for key, _, value in rows}
