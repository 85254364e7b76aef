"""The documentation is true: its files, as they stand there, and its commands are run elsewhere."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
GUIDES = DOCS / "how-to"
FILE = re.compile(r"^```(?:python|yaml|text)\n# (\S+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COMMANDS = re.compile(r"^```\n(asyncfl .*?)^```$", re.MULTILINE | re.DOTALL)
PYTHON = re.compile(r"^```python\n(?!# \S+\.py\n)(.*?)^```$", re.MULTILINE | re.DOTALL)
ASYNCFL = "from asyncfl.__main__ import main; main()"


def python(folder: Path, *arguments: str, text: str = "") -> str:
    """What Python prints there, with this package installed; it has to succeed."""
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        input=text,
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def written(guide: str, folder: Path) -> list[str]:
    """Write the files of a guide into a folder; their names."""
    files = FILE.findall((GUIDES / guide).read_text())
    for name, text in files:
        (folder / name).parent.mkdir(exist_ok=True, parents=True)
        with (folder / name).open("a") as file:  # a guide may add to a file
            file.write(text.lstrip("\n"))
    return [name for name, _ in files]


def commands(guide: str) -> list[str]:
    """The command lines of a guide, without `asyncfl` and comments."""
    lines = "".join(COMMANDS.findall((GUIDES / guide).read_text())).splitlines()
    return [re.sub(r"\s+#.*", "", line).removeprefix("asyncfl ") for line in lines]


def asyncfl(folder: Path, line: str) -> str:
    """What a command line prints, run as a shell would."""
    program = f'"{sys.executable}" -c "{ASYNCFL}"'
    done = subprocess.run(
        f"{program} {line}",
        shell=True,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    assert done.returncode == 0, line + done.stdout + done.stderr
    return done.stdout


class TestOwnStrategy:
    """A strategy, a law of durations, a suite that uses both, and their conformance tests."""

    @pytest.fixture(scope="class")
    def folder(self, tmp_path_factory: pytest.TempPathFactory) -> Path:
        folder = tmp_path_factory.mktemp("stranger")
        names = written("own-strategy.md", folder)
        assert names == ["mine/strategies.py", "mine/durations.py", "mine.yaml", "test_mine.py"]
        return folder

    def test_a_suite_runs_the_strategy_under_the_duration_law(self, folder: Path) -> None:
        """Both are in the table, with their parameters."""
        said = asyncfl(folder, "run mine.yaml")
        assert re.search(r"Momentum ASGD \(momentum 0\.3\).*\d", said), said
        assert re.search(r"^.*\bASGD\b.*\d", said, re.MULTILINE)
        assert "riangular" in said

    def test_list_prints_the_fields_of_a_strangers_class(self, folder: Path) -> None:
        """By its import path, with the comments beside them."""
        said = asyncfl(folder, "list mine.strategies:MomentumASGD")
        assert "Paper: Author et al., Venue 2026, Algorithm 1" in said
        fields = [" ".join(line.split()) for line in said.splitlines()]
        described = "momentum number ≥ 0, ≤ 1 default 0.5 tuned 0.1 to 0.9 β, the share of the last step kept"
        assert described in fields

    def test_the_conformance_suite_checks_both(self, folder: Path) -> None:
        """The test of the guide passes, and it is no empty one."""
        said = python(
            folder, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", os.devnull, "test_mine.py"
        )
        passed = re.search(r"^(\d+) passed", said, re.MULTILINE)
        assert passed is not None, said
        assert int(passed[1]) == 18


@pytest.mark.slow
def test_a_metric_of_ones_own_has_a_column_and_is_compared(tmp_path: Path) -> None:
    """Of own-problem.md, whose first suite has tests of its own (tests/benchmarks/test_own_problem.py)."""
    assert written("own-problem.md", tmp_path).count("mine.py") == 2
    run, compare = [line for line in commands("own-problem.md") if "punctual" in line]
    said = asyncfl(tmp_path, run)
    assert {"Mean", "absolute", "(minutes)", "Late", "arrivals", "(%)"} <= {*said.split()}, said
    compared = asyncfl(tmp_path, compare)
    assert "points" in compared or "%" in compared, compared


@pytest.mark.slow
@pytest.mark.parametrize("guide", ["suites.md", "trace.md", "choose.md", "gate.md"])
def test_the_commands_of_a_guide_succeed(tmp_path: Path, guide: str) -> None:
    """In the order in which they stand there, on the files that it shows."""
    assert written(guide, tmp_path) or guide == "choose.md"  # a command writes its suite
    lines = commands(guide)
    assert len(lines) > 1
    for line in lines:
        asyncfl(tmp_path, line)


@pytest.mark.slow
def test_the_commands_for_authors_succeed(tmp_path: Path) -> None:
    """On a copy of the claims, as the guide has it; what it shows of a main result is all of its readings."""
    shutil.copytree(ROOT / "benchmarks" / "claims", tmp_path / "my-claims")
    show, *others = commands("your-result.md")
    assert asyncfl(tmp_path, show).startswith("ACE is ahead of vanilla ASGD: ")
    assert len(others) == 4
    for line in others:
        asyncfl(tmp_path, line)


def test_the_gates_workflow_runs_the_commands_of_its_guide(tmp_path: Path) -> None:
    written("gate.md", tmp_path)
    workflow = yaml.safe_load((tmp_path / ".github" / "workflows" / "gate.yml").read_text())
    steps = [step["run"] for step in workflow["jobs"]["gate"]["steps"] if "run" in step]
    assert [step.removeprefix("asyncfl ") for step in steps if step.startswith("asyncfl ")] == commands(
        "gate.md"
    )[2:]


def test_the_space_of_the_guide_is_searched(
    tmp_path: Path, typed: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    written("tuning-space.md", tmp_path)
    said = typed("tune", "spaced.yaml", "--dry-run").stdout
    rows = [" ".join(line.split()) for line in said.splitlines()]
    assert any("FedBuff" in row and "local_lr 0.01 to 1 (log); buffer 2 | 5 | 10" in row for row in rows), (
        said
    )
    assert any(" ASGD " in row and "local_lr 0.01 to 1 (log)" in row and "buffer" not in row for row in rows)


@pytest.mark.slow
def test_the_calls_of_the_notebook_guide_work(tmp_path: Path) -> None:
    """All but the first block, which runs the whole quickstart."""
    blocks = PYTHON.findall((GUIDES / "notebook.md").read_text())
    suite = "{name: tiny, seeds: 2, problem: quadratic, budget: {updates: 9}, strategies: [asgd]}"
    (tmp_path / "tiny.yaml").write_text(suite)
    code = (
        "\n".join(blocks)
        .replace('"quickstart"', '"tiny.yaml"')
        .replace('"test/accuracy"].mean', '"distance"].mean')
    )
    python(tmp_path, "-c", code)
    assert (tmp_path / "quickstart.parquet").is_file()


@pytest.mark.slow
def test_the_tutorial_leads_to_a_table(tmp_path: Path) -> None:
    """Its cells one after another; lines that begin with `!` are for the shell."""
    notebook = json.loads((DOCS / "tutorial" / "paper-table.ipynb").read_text())
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert not any(cell["outputs"] or cell["execution_count"] for cell in cells)  # made by the build
    shell = tmp_path / "asyncfl"
    shell.write_text(f'#!/bin/sh\nexec "{sys.executable}" -c "{ASYNCFL}" "$@"\n')
    shell.chmod(0o755)
    code = "\n".join("".join(cell["source"]) for cell in cells)
    code = re.sub(r"^!(.*)$", r'subprocess.run("""./\1""", shell=True, check=True)', code, flags=re.MULTILINE)
    said = python(tmp_path, "-c", f"import subprocess\n{code}")
    assert "\\toprule" in said and "FedBuff" in said
    assert (tmp_path / "tuned-study.yaml").is_file()


def test_paths_that_the_project_names_exist() -> None:
    """In CONTRIBUTING.md, outside of blocks."""
    text = re.sub(r"^```.*?^```$", "", (ROOT / "CONTRIBUTING.md").read_text(), flags=re.MULTILINE | re.DOTALL)
    named = re.findall(r"(?:fl_core|tests|docs|benchmarks)/[\w/.-]*\w", text)
    assert len(named) > 8
    assert [path for path in named if not (ROOT / path).exists()] == []
    folders = re.findall(r"`(\w+)/`", text)
    assert folders
    assert [name for name in folders if not (ROOT / "fl_core" / "strategies" / name).is_dir()] == []


LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")


@pytest.mark.parametrize("page", sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md"), *DOCS.rglob("*.ipynb")]))
def test_links_lead_somewhere(page: Path) -> None:
    """Relative ones; pages that are made when the site is built are checked by the build."""
    text = re.sub(r"^```(?!\{).*?^```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    links = [link for link in LINK.findall(text) if "://" not in link and "/generated/" not in link]
    assert [link for link in links if not (page.parent / link).exists()] == []


def test_the_readme_fits_on_three_screens() -> None:
    assert len((ROOT / "README.md").read_text().splitlines()) <= 120
