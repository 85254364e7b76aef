"""The documentation is true: its files, as they stand there, and its commands are run elsewhere."""

from __future__ import annotations

import ast
import functools
import inspect
import json
import os
import re
import shlex
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pages
import pytest
import yaml

from asyncfl import Experiment
from fl_core.live.run import refuses
from fl_core.local_work import LocalWork
from fl_core.strategies.strategy import Strategy

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
GUIDES = DOCS / "how-to"
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
    """Write the files of a guide into a folder, and return their names."""
    return pages.write_files(GUIDES / guide, folder)


def commands(guide: str) -> list[str]:
    """Return the command lines of a guide, without `asyncfl` and comments."""
    return pages.commands(GUIDES / guide)


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


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("page", pages.PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_block_of_a_page_runs_as_pasted(page: Path, tmp_path: Path) -> None:
    """In order, in a fresh folder; what follows a command as `text` is in its output."""
    done = pages.run_in(tmp_path, page)
    assert done.returncode == 0, done.stdout


BLOCKS_NOT_RUN = {
    "needs Flower": 6,
    "needs PostgreSQL": 2,
    "needs Ray": 1,
    "needs a GPU": 3,
    "needs a network": 5,
    "part of Flower's configuration": 1,
    "part of a module": 1,
    "part of a suite": 4,
    "stays open": 2,
    "takes an hour": 1,
    "takes minutes, and needs features of images": 2,
}


def test_blocks_that_are_not_run_have_a_reason() -> None:
    """Adding a block that is not run takes a number here."""
    left_out = pages.blocks_not_run()
    reasons = Counter(block.reason_not_run for block in left_out)
    assert reasons == BLOCKS_NOT_RUN, [f"{block.place}: {block.reason_not_run}" for block in left_out]


def test_every_block_is_a_command_a_file_python_or_output() -> None:
    """A command is never shown as output, where it would not be run."""
    for block in (block for page in pages.PAGES for block in pages.blocks(page)):
        assert block.language in pages.SHELL | pages.FILES | {"text"}, block.place
        data = block.language in pages.FILES - {"python"}
        assert not data or block.file or block.reason_not_run, block.place
        assert block.language != "text" or not re.search(
            r"^(asyncfl|pip|python) ", block.text, re.MULTILINE
        ), block.place
        assert block.tested or block.is_shortened


@pytest.mark.parametrize(
    ("command", "error"),
    [
        ("false", "page.md:1"),
        ("true", None),
        ("echo a; exit 3", "exit code 3"),
        ("asyncfl no-such-command", "page.md:1"),
    ],
)
def test_a_block_that_fails_is_named(
    command: str, error: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"```\n{command}\n```\n")
    monkeypatch.setattr(pages, "ROOT", tmp_path)
    if error is None:
        pages.run(page)
    else:
        with pytest.raises(AssertionError, match=error):
            pages.run(page)


EXAMPLE_PAGE = """
Rows in `a.csv`:
```csv
x
1
```
```python
# mod.py
x = 2
```
More:
```python
# mod.py
y = x + 1
```
```python
import mod
```
<!-- in tests: 100 → 10 -->
```python
print(mod.y, 100)
```
```text
other
```
<!-- not run: needs a GPU -->
```
false
```
```
cat a.csv; echo took 3 s
```
```text
x
1
took … s
```
"""


def test_files_output_and_comments_of_a_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files are named inside or above; Python goes on in one namespace; output is compared line by line."""
    page = tmp_path / "page.md"
    page.write_text(EXAMPLE_PAGE)
    monkeypatch.setattr(pages, "ROOT", tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    pages.run(page)
    assert [block.reason_not_run for block in pages.blocks(page)].count("needs a GPU") == 1
    page.write_text(page.read_text().replace("took …", "lasted …"))
    with pytest.raises(AssertionError, match="not in the output: lasted"):
        pages.run(page)


@pytest.mark.slow
def test_the_strategy_of_the_guide_to_evidence_conforms(tmp_path: Path) -> None:
    """As one that an author would begin from."""
    written("evidence.md", tmp_path)
    check = "from asyncfl import conformance; from mine.patient import Patient"
    said = python(tmp_path, "-c", f"{check}; print(len([one() for one in conformance.checks(Patient)]))")
    assert int(said) == 12


def of_action(inputs: dict[str, str]) -> list[dict[str, Any]]:
    """The shell steps of action.yml, with the inputs of a workflow in their environment."""
    action = yaml.safe_load((ROOT / "action.yml").read_text())
    assert inputs.keys() <= action["inputs"].keys()
    given = {name: inputs.get(name, about.get("default")) for name, about in action["inputs"].items()}
    assert None not in given.values()

    def filled(text: str) -> str:
        return re.sub(r"\$\{\{ inputs\.([\w-]+) \}\}", lambda name: given[name[1]], text)

    steps = [step for step in action["runs"]["steps"] if "run" in step]
    assert all(step["shell"] == "bash" and "${{" not in step["run"] for step in steps)  # no text becomes code
    return [
        step
        | {"env": {name: filled(value) for name, value in step.get("env", {}).items()}}
        | {"working-directory": filled(step["working-directory"])}
        for step in steps
    ]


def shims(folder: Path) -> Path:
    """A folder with `asyncfl`, and a `pip` that only notes what it was to install."""
    folder.mkdir()
    (folder / "asyncfl").write_text(f'#!/bin/sh\nexec "{sys.executable}" -c "{ASYNCFL}" "$@"\n')
    (folder / "pip").write_text(f'#!/bin/sh\necho "$@" >> "{folder}/installed"\n')
    for command in folder.iterdir():
        command.chmod(0o755)
    return folder


def in_workflow(folder: Path, steps: Sequence[Mapping[str, Any]]) -> list[int]:
    """Run steps as GitHub does, until one fails, and then those that always run; their exit codes."""
    codes: list[int] = []
    variables = {
        **os.environ,
        "PATH": f"{folder.parent / 'bin'}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "GITHUB_ACTION_PATH": str(ROOT),
        "GITHUB_STEP_SUMMARY": str(folder.parent / "summary.md"),
        "GITHUB_OUTPUT": str(folder.parent / "output"),
    }
    for step in steps:
        if any(codes) and step.get("if") != "always()":
            continue
        words = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
        at = folder / step["working-directory"]
        done = subprocess.run(words, cwd=at, env={**variables, **step["env"]}, check=False)
        codes.append(done.returncode)
    return codes


def stubs(folder: Path, *names: str) -> Path:
    """Make commands in folder/bin that only note their words; return the file of the notes."""
    notes = folder / "notes"
    (folder / "bin").mkdir()
    for name in names:
        stub = folder / "bin" / name
        stub.write_text(f'#!/bin/sh\nprintf "%s\\037" {name} "$@" >> "{notes}"\necho >> "{notes}"\n')
        stub.chmod(0o755)
    return notes


def words_of(notes: Path) -> list[list[str]]:
    """Return the words of each command that was called."""
    return [line.removesuffix("\037").split("\037") for line in notes.read_text().splitlines()]


def noted(folder: Path, inputs: dict[str, str]) -> tuple[list[int], list[list[str]]]:
    """Run the action with commands that only note their words; return exit codes and words."""
    notes = stubs(folder, "asyncfl", "pip")
    codes = in_workflow(folder / "work", of_action({"suite": "my suite.yaml"} | inputs))
    return codes, words_of(notes)


class TestAction:
    """The shell steps of action.yml, with stubs in place of pip and asyncfl."""

    def test_by_default_torch_comes_from_the_index_for_cpus(self, tmp_path: Path) -> None:
        (tmp_path / "work").mkdir()
        codes, words = noted(tmp_path, {})
        assert codes == [0] * 5
        constraints = ["-c", f"{ROOT}/constraints.txt"]
        torch = ["pip", "install", "--quiet", "--no-deps", "torch", "torchvision", *constraints]
        store = ["--store", "asyncfl-gate"]
        reports = ["--junit", "asyncfl-gate/gate.xml", "--summary", "asyncfl-gate/gate.md"]
        assert words == [
            ["pip", "cache", "dir"],
            [*torch, "--index-url", "https://download.pytorch.org/whl/cpu"],
            ["pip", "install", "--quiet", str(ROOT), *constraints],
            ["asyncfl", "run", "my suite.yaml", *store, "--quiet", "--no-baselines"],
            ["asyncfl", "check", "my suite.yaml", *store, "--baseline", "baseline.json", *reports],
        ]

    def test_every_input_arrives_whole(self, tmp_path: Path) -> None:
        """Spaces, quotes, patterns of files, lines and dollars in values are not the shell's."""
        (tmp_path / "work" / "a b").mkdir(parents=True)
        (tmp_path / "work" / "a b" / "own reqs.txt").write_text("einops\n")
        inputs = {
            "options": "--set 'problem={name: digits, clients: 10}'\n--set name=\"$HOME *\"\n--set a=*",
            "check": "--quality-only",
            "requirements": "own reqs.txt",
            "torch-index": "",
            "working-directory": "a b",
            "store": "my store",
            "baseline": "base line.json",
        }
        codes, words = noted(tmp_path, inputs)
        assert codes == [0] * 5
        options = ["--set", "problem={name: digits, clients: 10}", "--set", "name=$HOME *", "--set", "a=*"]
        reports = ["--junit", "my store/gate.xml", "--summary", "my store/gate.md"]
        installed = ["pip", "install", "--quiet", str(ROOT), "-c", f"{ROOT}/constraints.txt"]
        against = ["--store", "my store", "--baseline", "base line.json", *reports]
        assert words[1:] == [
            [*installed, "-r", "own reqs.txt"],
            ["asyncfl", "run", "my suite.yaml", *options, "--store", "my store", "--quiet", "--no-baselines"],
            ["asyncfl", "check", "my suite.yaml", *options, "--quality-only", *against],
        ]

    def test_failed_runs_are_checked_and_reported(self, tmp_path: Path) -> None:
        """The check fails, and its summary shows why."""
        (tmp_path / "work").mkdir()
        notes = stubs(tmp_path, "asyncfl", "pip")
        with (tmp_path / "bin" / "asyncfl").open("a") as stub:
            stub.write(
                '[ "$1" = check ] && mkdir -p asyncfl-gate && echo why > asyncfl-gate/gate.md; exit 2\n'
            )
        codes = in_workflow(tmp_path / "work", of_action({"suite": "own.yaml"}))
        assert codes == [0, 0, 0, 2, 0]
        assert [words[1] for words in words_of(notes)[-2:]] == ["run", "check"]
        assert (tmp_path / "summary.md").read_text() == "why\n"

    def test_an_unmatched_quote_stops_the_job(self, tmp_path: Path) -> None:
        (tmp_path / "work").mkdir()
        codes, words = noted(tmp_path, {"options": "--set 'lr=1"})
        assert codes[2] != 0 and all(command[0] == "pip" for command in words)

    def test_the_cache_depends_on_the_requirements(self, tmp_path: Path) -> None:
        keys = []
        for text in ("einops", "einops>0.8"):
            folder = tmp_path / text
            (folder / "work").mkdir(parents=True)
            (folder / "work" / "r.txt").write_text(text)
            noted(folder, {"requirements": "r.txt"})
            keys.append(dict(line.split("=", 1) for line in (folder / "output").read_text().splitlines()))
        assert keys[0]["checksum"] != keys[1]["checksum"]

    def test_the_guide_lists_the_inputs(self) -> None:
        """And its files for containers and GitLab use them, and the commands of the guide."""
        text = (GUIDES / "gate.md").read_text()
        inputs = yaml.safe_load((ROOT / "action.yml").read_text())["inputs"]
        assert re.findall(r"^\| `([\w-]+)` \|", text, re.MULTILINE)[: len(inputs)] == list(inputs)
        files = {
            block.split("\n")[0]: yaml.safe_load(block)
            for block in re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)
        }
        jobs = files["# .github/workflows/gate-in-a-container.yml"]["jobs"]
        assert jobs["gate"]["steps"][1]["with"].keys() <= inputs.keys()
        artifact = jobs["comment"]["steps"][0]["with"]["name"]
        assert artifact == inputs["artifact"]["default"]
        script = files["# .gitlab-ci.yml"]["gate"]["script"]
        ours = [line.removeprefix("asyncfl ") for line in script if line.startswith("asyncfl")]
        run, check = commands("gate.md")[2:4]
        assert ours == [run, f"{check} --no-speed"]  # CI has another kind of machine

    def test_the_script_for_gitlab_installs_and_runs_the_two_commands(self, tmp_path: Path) -> None:
        """In one shell, as GitLab's runner does; reports are those that its artifacts name."""
        text = (GUIDES / "gate.md").read_text()
        (block,) = re.findall(r"```yaml\n# \.gitlab-ci\.yml\n(.*?)```", text, re.DOTALL)
        job = yaml.safe_load(block)["gate"]
        notes = stubs(tmp_path, "git", "pip", "asyncfl")
        variables = {**os.environ, **job["variables"], "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}"}
        script = "\n".join(job["script"])
        subprocess.run(["bash", "-eo", "pipefail", "-c", script], cwd=tmp_path, env=variables, check=True)
        clone, torch, install, *ours = words_of(notes)
        assert clone[:2] == ["git", "clone"] and torch[-1] == job["variables"]["TORCH"]
        assert install[:2] == ["pip", "install"] and clone[-1] in install
        run, check = commands("gate.md")[2:4]
        assert [shlex.join(words[1:]) for words in ours] == [
            run.removesuffix(" || true"),
            f"{check} --no-speed",
        ]
        given = dict(zip(ours[1], ours[1][1:], strict=False))
        assert job["artifacts"]["reports"]["junit"] == given["--junit"]
        assert {given["--summary"], f"{given['--store']}/reports"} == set(job["artifacts"]["paths"])

    def test_artifact_and_python_are_inputs(self) -> None:
        steps = yaml.safe_load((ROOT / "action.yml").read_text())["runs"]["steps"]
        used = {step["uses"].partition("@")[0]: step["with"] for step in steps if "uses" in step}
        assert used["actions/setup-python"] == {"python-version": "${{ inputs.python-version }}"}
        assert used["actions/upload-artifact"]["name"] == "${{ inputs.artifact }}"
        paths = used["actions/upload-artifact"]["path"].split("\n")[:-1]
        assert all(path.startswith("${{ inputs.working-directory }}/${{ inputs.store }}/") for path in paths)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_the_gates_workflow_passes_and_fails_step_by_step(tmp_path: Path) -> None:
    """The five lines of the guide, between its other commands; then without the baseline."""
    folder, bin_ = tmp_path / "work", shims(tmp_path / "bin")
    folder.mkdir()
    written("gate.md", folder)
    workflow = yaml.safe_load((folder / ".github" / "workflows" / "gate.yml").read_text())
    checkout, gate = workflow["jobs"]["gate"]["steps"]
    assert checkout == {"uses": "actions/checkout@v4"} and gate["uses"] == "OWNER/asyncfl-bench@main"
    for line in commands("gate.md")[:2]:
        asyncfl(folder, line)

    summary = tmp_path / "summary.md"
    no_speed = {"check": "--no-speed"}  # the machine may be busy
    assert in_workflow(folder, of_action(gate["with"] | no_speed)) == [0, 0, 0, 0, 0]
    assert (
        f"install --quiet {ROOT} -c {ROOT}/constraints.txt" in (bin_ / "installed").read_text().splitlines()
    )
    assert summary.read_text().splitlines()[1].startswith("## ✅ guarded: ")
    assert (folder / "asyncfl-gate" / "gate.xml").is_file()
    assert list((folder / "asyncfl-gate" / "reports").glob("*.html"))

    lost = {"baseline": "none.json", "options": "--set seeds=3"}
    assert in_workflow(folder, of_action(gate["with"] | no_speed | lost)) == [0, 0, 0, 2, 0]
    for line in commands("gate.md")[-2:]:
        asyncfl(folder, line)
    assert in_workflow(folder, of_action(gate["with"] | no_speed)) == [0, 0, 0, 0, 0]


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


def test_the_build_makes_the_outputs_of_notebooks() -> None:
    notebooks = sorted((DOCS / "tutorial").glob("*.ipynb"))
    cells = [cell for path in notebooks for cell in json.loads(path.read_text())["cells"]]
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    assert code and not any(cell["outputs"] or cell["execution_count"] for cell in code)
    assert not any("\n!" in "".join(cell["source"]) for cell in code)  # would go on after a failure


class TestDeploy:
    """The example app, which tests/fl_core/live/test_flower.py runs, and what is said of strategies."""

    EXAMPLE = ROOT / "examples" / "flower"
    guide = (GUIDES / "deploy.md").read_text()

    def test_the_app_of_the_guide_is_the_example(self, tmp_path: Path) -> None:
        written("deploy.md", tmp_path)
        ours = ast.parse((self.EXAMPLE / "app.py").read_text())
        assert ast.dump(ast.parse((tmp_path / "app.py").read_text())) == ast.dump(
            ast.Module(ours.body[1:], [])  # without its docstring
        )
        assert sum(len(file.read_text().splitlines()) for file in self.EXAMPLE.glob("*.py")) <= 40

    def test_the_experiment_of_the_example_can_run_in_real_time(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.syspath_prepend(self.EXAMPLE)  # where its problem is
        text = (self.EXAMPLE / "description.json").read_text()
        assert refuses(Experiment.model_validate_json(text)) is None

    def test_the_table_says_what_each_strategy_asks_of_its_clients(self) -> None:
        rows = re.findall(r"^\| (unchanged|busy longer|refused) \| (.*?) \|", self.guide, re.MULTILINE)
        asked: dict[str, list[str]] = {"unchanged": [], "busy longer": [], "refused": []}
        for name, strategy in Strategy.members().items():
            classes = [base for base in strategy.__mro__[:-1] if base.__module__.startswith(Strategy.homes)]
            source = "".join(map(inspect.getsource, classes))
            acts = {action for action in ("collect", "dismiss", "refresh") if f"server.{action}(" in source}
            assert strategy.collects == ("collect" in acts)
            kind = "unchanged" if not acts else "busy longer" if acts == {"dismiss"} else "refused"
            asked[kind].append(name)
        assert {kind: re.findall(r"`(\w+)`", names) for kind, names in rows} == asked

    def test_the_state_that_papers_keep_at_clients_is_named(self) -> None:
        state = (
            (GUIDES / "deploy.md").read_text().split("A paper's clients may hold state")[1].split("\n\n")[0]
        )
        parts = [part for family in (Strategy, LocalWork) for part in family.members().values()]
        holding = [part.name for part in parts if part().kept_by_clients and part.name != "quafl"]  # refused
        assert holding and all(f"`{name}`" in state for name in holding)


def test_paths_that_the_project_names_exist() -> None:
    """In CONTRIBUTING.md, outside of blocks."""
    text = re.sub(r"^```.*?^```$", "", (ROOT / "CONTRIBUTING.md").read_text(), flags=re.MULTILINE | re.DOTALL)
    named = re.findall(r"(?:fl_core|tests|docs|benchmarks)/[\w/.-]*\w", text)
    assert len(named) > 8
    assert [path for path in named if not (ROOT / path).exists()] == []


LINK = re.compile(r"\]\(([^)\s]+)\)")
EVERY_PAGE = sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md"), *DOCS.rglob("*.ipynb")])
EVERY_PAGE = [page for page in EVERY_PAGE if page.parent.name != "generated"]  # by a build of the site


def prose(page: Path) -> str:
    """Return a page without its blocks."""
    return re.sub(r"^ *```.*?^ *```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)


@functools.cache
def anchors(page: Path) -> set[str]:
    """Return the anchors of a page: its headings as GitHub and the site name them, and explicit ones."""
    headings = re.findall(r"^#{1,6} +(.+?) *$", prose(page), re.MULTILINE)
    words = [re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).lower() for heading in headings]
    slugs = {re.sub(r"[^\w\- ]", "", heading).replace(" ", "-") for heading in words}
    return slugs | set(re.findall(r"^\(([\w-]+)\)=$|id=\"([\w-]+)\"", page.read_text(), re.MULTILINE))


def test_relative_links_and_anchors_exist() -> None:
    """Pages that are made when the site is built are checked by the build."""
    missing = []
    links = [(page, link) for page in EVERY_PAGE for link in LINK.findall(prose(page))]
    for page, link in links:
        path, _, anchor = link.partition("#")
        if "://" in link or "generated/" in link or link.startswith("mailto:"):
            continue
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (anchor and target.suffix == ".md" and anchor not in anchors(target)):
            missing.append((page.name, link))
    assert missing == []


def test_the_readme_is_short() -> None:
    """At most 110 lines."""
    assert len((ROOT / "README.md").read_text().splitlines()) <= 110
