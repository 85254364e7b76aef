"""The package as its users get it: metadata, and a wheel that works outside of the repository."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
import venv
from datetime import date
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]

SUITE = """
{name: tiny, seeds: 2, problem: {name: digits, clients: 3}, budget: {updates: 6}, strategies: [asgd, ace]}
"""


def test_the_citation_is_of_this_version() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert citation["version"] == PROJECT["version"]
    assert date.fromisoformat(citation["date-released"]) >= date(2026, 11, 22)
    assert citation["license"] == PROJECT["license"]


def test_every_python_that_is_named_is_tried() -> None:
    """By an environment of tox; that of `tests` is the oldest one."""
    prefix = "Programming Language :: Python :: 3."
    named = [int(one.removeprefix(prefix)) for one in PROJECT["classifiers"] if one.startswith(prefix)]
    assert named == list(range(11, 11 + len(named))) and PROJECT["requires-python"] == f">=3.{named[0]}"
    environments = re.findall(r"^\[testenv:py3(\d+)\]", (ROOT / "tox.ini").read_text(), re.MULTILINE)
    assert [int(one) for one in environments] == named[1:]
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text())
    matrix = workflow["jobs"]["pythons"]["strategy"]["matrix"]["include"]
    assert [one["env"] for one in matrix] == [f"py3{minor}" for minor in named[1:]]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fresh environment with the wheel; its dependencies are those of this one, installed already."""
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"  # a copy: setuptools leaves files where it builds
    source.mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE", "fl_core", "benchmarks", "tuning", "reports"):
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, source / name)
    build = ["wheel", "-q", "--no-deps", "--no-build-isolation", "-w", str(folder), str(source)]
    subprocess.run([sys.executable, "-m", "pip", *build], check=True)
    (wheel,) = folder.glob("*.whl")
    environment = folder / "environment"
    venv.create(environment, with_pip=False, symlinks=True)
    (site,) = environment.glob("lib/python*/site-packages")
    into = ["--no-deps", "--no-compile", "--target", str(site), str(wheel)]
    subprocess.run([sys.executable, "-m", "pip", "install", "-q", *into], check=True)
    import torch

    (site / "dependencies.pth").write_text(f"{Path(torch.__file__).parents[1]}\n")
    return environment / "bin" / "python"


def use(python: Path, folder: Path, *arguments: str) -> str:
    """What the command prints there, without the repository on its path."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    program = "from benchmarks.cli import main; main()"
    done = subprocess.run(
        [python, "-c", program, *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
def test_a_wheel_works_outside_of_the_repository(installed: Path, tmp_path: Path) -> None:
    """A run with its page, and each kind of data that the package carries."""
    (tmp_path / "tiny.yaml").write_text(SUITE)
    said = use(installed, tmp_path, "run", "tiny.yaml")
    assert "ACE" in said and (tmp_path / "asyncfl-results" / "reports" / "tiny.html").is_file()
    use(installed, tmp_path, "report", "tiny", "--files", "paper")
    assert list((tmp_path / "paper").glob("*.tex"))
    assert "quickstart" in use(installed, tmp_path, "list", "suites")
    assert len(use(installed, tmp_path, "errata").splitlines()) > 5
    assert "published claims" in use(installed, tmp_path, "claims")
    assert '"fedbuff"' in use(installed, tmp_path, "schema")
    where = subprocess.run(
        [installed, "-c", "import reports; print(reports.__file__)"],
        cwd=tmp_path,
        env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert Path(where.stdout.strip()).is_relative_to(installed.parents[1])
