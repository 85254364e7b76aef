"""The package as its users get it: metadata, and a wheel that works outside of the repository."""

from __future__ import annotations

import configparser
import itertools
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import venv
import zipfile
from datetime import date
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from asyncfl import PACKAGES

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]

ASYNCFL = "from asyncfl.__main__ import main; main()"
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
SUITE = """
{name: tiny, seeds: 2, problem: {name: digits, clients: 3}, budget: {updates: 6}, strategies: [asgd, ace]}
"""


def test_version_citation_and_changelog_are_of_one_release() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert citation["version"] == PROJECT["version"] and citation["license"] == PROJECT["license"]
    assert date.fromisoformat(citation["date-released"])
    headings = re.findall(r"^## (.*)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert headings[:2] == ["[Unreleased]", f"[{PROJECT['version']}] - {citation['date-released']}"]


def test_a_release_carries_its_section_of_the_changelog(tmp_path: Path) -> None:
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "release.yml").read_text())
    announce = workflow["jobs"]["announce"]["steps"][-1]["run"].splitlines()[0]
    shutil.copy(ROOT / "CHANGELOG.md", tmp_path)
    version = {"GITHUB_REF_NAME": f"v{PROJECT['version']}", "PATH": os.environ["PATH"]}
    subprocess.run(["bash", "-c", announce], cwd=tmp_path, env=version, check=True)
    notes = (tmp_path / "notes.md").read_text()
    changelog = (ROOT / "CHANGELOG.md").read_text()
    _, heading, rest = changelog.partition(f"## [{PROJECT['version']}]")
    assert heading and len(notes) > 100 and "\n## " not in notes
    assert rest.partition("\n")[2].startswith(notes)


def test_what_github_reads_is_yaml() -> None:
    files = [*(ROOT / ".github").rglob("*.yml"), ROOT / ".pre-commit-config.yaml"]
    assert len(files) == 6 and all(yaml.safe_load(file.read_text()) for file in files)


def test_every_dependency_has_a_bound_and_a_tested_version_within_it() -> None:
    pins = re.findall(r"^([\w-]+)==(.+)", (ROOT / "constraints.txt").read_text(), re.MULTILINE)
    tested = {canonicalize_name(name): version for name, version in pins}
    for text in PROJECT["dependencies"]:
        dependency = Requirement(text)
        assert dependency.specifier and canonicalize_name(dependency.name) in tested, text
    for text in itertools.chain(PROJECT["dependencies"], *PROJECT["optional-dependencies"].values()):
        dependency = Requirement(text)
        version = tested.get(canonicalize_name(dependency.name))
        assert version is None or version in dependency.specifier, f"{text}, but {version} is tested"


def test_checkpoints_are_read_by_a_lightning_that_executes_none_of_them() -> None:
    [lightning] = [text for text in PROJECT["dependencies"] if text.startswith("pytorch-lightning")]
    assert "2.6.5" not in Requirement(lightning).specifier


def test_the_newest_versions_are_tried_without_constraints() -> None:
    """With PyTorch's own pin, since the registry's newest wheel may bring gigabytes of CUDA."""
    tox = configparser.ConfigParser(interpolation=None)
    tox.read(ROOT / "tox.ini", encoding="utf-8")
    newest = tox["testenv:newest"]
    assert "constraints" not in newest["install_command"] and "newest" not in tox["tox"]["env_list"]
    constraints = (ROOT / "constraints.txt").read_text().splitlines()
    assert set(newest["deps"].split()) <= set(constraints)


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


SOURCE = ("asyncfl", *PACKAGES, "docs", "examples", "tests", "AGENTS.md", "CHANGELOG.md", "CITATION.cff")
SOURCE += ("CONTRIBUTING.md", "LICENSE", "MANIFEST.in", "README.md", "SECURITY.md", "constraints.txt")
SOURCE += ("pyproject.toml", "tox.ini")
# Numbers of claims and of an earlier leaderboard, in the source distribution alone
NUMBERS = ("benchmarks/claims/results/", "benchmarks/leaderboard/1.0/")


@pytest.fixture(scope="module")
def distributions(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The source distribution, and the wheel that is built from it."""
    folder = tmp_path_factory.mktemp("distributions")
    source = folder / "source"  # a copy: setuptools leaves files where it builds
    source.mkdir()
    for name in SOURCE:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / name, source / name)
    build = f"from setuptools import build_meta; build_meta.build_sdist({str(folder)!r})"
    subprocess.run([sys.executable, "-c", build], cwd=source, check=True, capture_output=True)
    (archive,) = folder.glob("*.tar.gz")
    wheel = ["wheel", "-q", "--no-deps", "--no-build-isolation", "-w", str(folder), str(archive)]
    subprocess.run([sys.executable, "-m", "pip", *wheel], check=True)
    (wheel_file,) = folder.glob("*.whl")
    return archive, wheel_file


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory, distributions: tuple[Path, Path]) -> Path:
    """A fresh environment with the wheel; its dependencies are those of this one, installed already."""
    environment = tmp_path_factory.mktemp("wheel") / "environment"
    venv.create(environment, with_pip=False, symlinks=True)
    (site,) = environment.glob("lib/python*/site-packages")
    into = ["--no-deps", "--no-compile", "--target", str(site), str(distributions[1])]
    subprocess.run([sys.executable, "-m", "pip", "install", "-q", *into], check=True)
    import torch

    (site / "dependencies.pth").write_text(f"{Path(torch.__file__).parents[1]}\n")
    return environment / "bin" / "python"


def files_below(*names: str) -> set[str]:
    """Paths of the repository's files in some folders, without caches."""
    paths = (path for name in names for path in (ROOT / name).rglob("*"))
    return {
        path.relative_to(ROOT).as_posix()
        for path in paths
        if path.is_file() and not {"__pycache__", "generated", "_build"} & {*path.parts}
    }


@pytest.mark.slow
def test_the_wheel_holds_the_packages_without_stored_numbers(distributions: tuple[Path, Path]) -> None:
    with zipfile.ZipFile(distributions[1]) as wheel:
        held = {name for name in wheel.namelist() if ".dist-info/" not in name}
        size = sum(member.compress_size for member in wheel.infolist())
    packages = files_below("asyncfl", *PACKAGES)
    assert held == {name for name in packages if not name.startswith(NUMBERS)}
    assert any(name.startswith(NUMBERS) for name in packages)
    assert size < 3e6  # bytes to download, of which the leaderboard is half


@pytest.mark.slow
def test_the_source_distribution_holds_what_is_needed_to_test_and_reproduce(
    distributions: tuple[Path, Path],
) -> None:
    with tarfile.open(distributions[0]) as archive:
        held = {member.name.partition("/")[2] for member in archive.getmembers() if member.isfile()}
    assert files_below("asyncfl", *PACKAGES, "docs", "examples", "tests") - held == set()
    assert {name for name in SOURCE if (ROOT / name).is_file()} - held == set()


def python(installed: Path, folder: Path, program: str, *arguments: str) -> str:
    """What a program prints there, without the repository on its path."""
    done = subprocess.run(
        [installed, "-c", program, *arguments],
        cwd=folder,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def use(installed: Path, folder: Path, *arguments: str) -> str:
    """What the command prints there."""
    return python(installed, folder, ASYNCFL, *arguments)


@pytest.mark.slow
def test_a_wheel_works_outside_of_the_repository(installed: Path, tmp_path: Path) -> None:
    """A run with its page, and each kind of data that the package carries."""
    (tmp_path / "tiny.yaml").write_text(SUITE)
    said = use(installed, tmp_path, "run", "tiny.yaml")
    assert "ACE" in said and (tmp_path / "asyncfl-results" / "reports" / "tiny.html").is_file()
    use(installed, tmp_path, "report", "tiny", "--files", "paper")
    assert list((tmp_path / "paper").glob("*.tex"))
    assert "quickstart" in use(installed, tmp_path, "list", "suites")
    assert len(use(installed, tmp_path, "list", "errata").splitlines()) > 5
    claims = ["claims", "--claims", str(ROOT / "benchmarks" / "claims")]
    assert "ACE is ahead of FedBuff" in use(installed, tmp_path, *claims)
    assert '"fedbuff"' in use(installed, tmp_path, "list", "--schema")
    where = Path(python(installed, tmp_path, "import reports; print(reports.__file__)").strip()).parent
    assert where.is_relative_to(installed.parents[1])
    assert all((where.parent / name / "py.typed").is_file() for name in ("asyncfl", *PACKAGES))


@pytest.mark.slow
def test_claims_without_stored_numbers_name_the_folder_that_has_them(installed: Path, tmp_path: Path) -> None:
    """Entries are checked all the same; a page of runs of claims has no verdicts."""
    assert "In order" in use(installed, tmp_path, "claims", "check")
    for words in (["claims"], ["claims", "show", "A-best"], ["claims", "run"], ["claims", "register"]):
        command = [installed, "-c", ASYNCFL, *words]
        done = subprocess.run(
            command, cwd=tmp_path, env=ENVIRONMENT, capture_output=True, text=True, check=False
        )
        assert done.returncode == 2 and "--claims" in done.stderr, done.stderr
        assert len(done.stderr.splitlines()) < 5 and "Traceback" not in done.stderr
    sections = "from reports.claims.html import sections; print(sections('claims-ace-small'))"
    assert python(installed, tmp_path, sections).strip() == "[]"


@pytest.mark.slow
def test_workers_find_our_packages_among_others_of_their_names(installed: Path, tmp_path: Path) -> None:
    for name in PACKAGES:
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("")
    (tmp_path / "tiny.yaml").write_text(SUITE)
    runs = "import asyncfl\nprint(asyncfl.run('tiny.yaml')['status'].tolist())"
    assert python(installed, tmp_path, runs).splitlines()[-1] == str(["done"] * 4)
    assert "ASGD" in use(installed, tmp_path, "run", "tiny.yaml", "--set", "seeds=3")
