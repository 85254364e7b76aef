"""The command: `python -m tests.mutants`, or `tox run -e mutants`."""

import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

import click

ROOT = Path(__file__).parents[2]

# What is mutated: strategies, local work, loop, timing, theory, and what is recorded of a run.
TARGETS = (
    *("fl_core/strategies/*.py", "fl_core/local_work.py", "fl_core/loop/*.py", "fl_core/server/*.py"),
    *("fl_core/arrangements.py", "fl_core/timing/*.py", "fl_core/theory/*.py"),
    *(f"fl_core/recording/{name}.py" for name in ("evaluation", "recorder")),
)
# The tests that have to notice. Left out: counts of calls, which mutmut multiplies; trajectories that the
# code itself recorded; devices and data sets.
TESTS = tuple(f"tests/fl_core/{folder}test_*.py" for folder in ("", "oracles/", "theory/", "timing/"))
TESTS_LEFT_OUT = {
    f"tests/fl_core/test_{name}.py"
    for name in ("calls_of_an_update", "golden", "devices", "torchvision_repair", "memory")
}
# What looks at the names of a class, of which mutmut makes more.
DESELECTED = ("tests/fl_core/test_state.py::test_a_strategy_sees_what_is_documented_and_nothing_else",)
NEAR = 5  # test files of a changed file

# `strict=False` in place of `strict=True`: no test can tell, since lengths are equal.
NO_FAULT = re.compile(r",\s*(strict=\w+)?(?=\))|\s")


@click.command(context_settings={"show_default": True})
@click.argument("paths", nargs=-1)
@click.option(
    "--changed", is_flag=True, help="Only files that differ from origin/main or HEAD~1, by near tests."
)
@click.option("--sample", type=int, help="Mutants drawn at random, always the same.  [default: all]")
@click.option("--minutes", type=float, default=60, help="Stop after this time.")
@click.option("--workers", type=int, default=os.cpu_count(), help="Processes.")
def main(*, paths: tuple[str, ...], changed: bool, sample: int | None, minutes: float, workers: int) -> None:
    """Put small faults into PATHS (default: all of TARGETS); report in Markdown which the tests miss."""
    files = [file for file in matching(TARGETS) if not paths or any(map(Path(file).is_relative_to, paths))]
    if changed:
        files = [file for file in files if file in touched(ROOT)]
    if not files:
        click.echo("No file that is mutated is concerned.")
        return
    tests = [test for test in matching(TESTS) if test not in TESTS_LEFT_OUT]
    if changed:
        tests = sorted({test for file in files for test in near(file, tests)})
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        prepare(Path(folder), files, tests)
        os.chdir(folder)  # where mutmut looks for its configuration
        names = sorted(mutants(files))
        chosen = random.Random(0).sample(names, min(sample or len(names), len(names)))
        if chosen:
            run(["run", "--max-children", str(workers), *chosen], 60 * minutes)
        click.echo("\n".join(report(files, chosen)))
        os.chdir(ROOT)  # out of the folder, which is removed


def matching(patterns: Iterable[str]) -> list[str]:
    """Files, relative to the root."""
    return sorted({path.relative_to(ROOT).as_posix() for pattern in patterns for path in ROOT.glob(pattern)})


def touched(root: Path) -> set[str]:
    """Files changed since the branch left `origin/main`, or else since `HEAD~1`; none without history."""

    def git(*arguments: str) -> str:
        done = subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True, check=False)
        return done.stdout.strip()

    commits = git("merge-base", "HEAD", "origin/main"), git("rev-parse", "--verify", "--quiet", "HEAD~1")
    base = next((commit for commit in commits if commit and commit != git("rev-parse", "HEAD")), None)
    return set(git("diff", "--name-only", "--relative", base).splitlines()) if base else set()


def near(file: str, tests: list[str]) -> list[str]:
    """The test files that mention a module most often for their length, by its name or that of its class."""
    name = re.compile(rf"\b{Path(file).stem.replace('_', '_?')}\b", re.IGNORECASE)
    texts = {test: (ROOT / test).read_text() for test in tests}
    mentions = {test: len(name.findall(text)) / len(text) for test, text in texts.items()}
    return sorted(filter(mentions.get, tests), key=lambda test: -mentions[test])[:NEAR] or tests


def prepare(folder: Path, files: list[str], tests: list[str]) -> None:
    """A copy of the project by links, and the configuration of mutmut, which copies what it mutates."""
    copied = ("asyncfl", "benchmarks", "docs", "reports", "tuning")
    for name in ("fl_core", "tests", *copied):
        (folder / name).symlink_to(ROOT / name)
    settings = {
        "source_paths": ["fl_core"],
        "only_mutate": files,
        "also_copy": copied,
        "pytest_add_cli_args": [f"--deselect={test}" for test in DESELECTED],
        "pytest_add_cli_args_test_selection": tests,
        "process_isolation": "forkserver",  # so that nothing is cached that a mutant would compute
        "track_dependencies": False,
        "debug": True,  # what pytest says is in the log
    }
    lines = [f"{key} = {json.dumps(value)}" for key, value in settings.items()]
    project = (ROOT / "pyproject.toml").read_text()
    (folder / "pyproject.toml").write_text("\n".join([project, "[tool.mutmut]", *lines, ""]))


def mutants(files: list[str]) -> Iterator[str]:
    """The names that mutmut gives to the mutants of these files."""
    from mutmut.mutation.file_mutation import mutate_file_contents
    from mutmut.utils.format_utils import get_mutant_name

    for file in files:
        for name in mutate_file_contents(file, Path(file).read_text()).mutant_names:
            yield get_mutant_name(Path(file), name)


def run(arguments: list[str], seconds: float) -> None:
    """mutmut, until it has ended or the time is over."""
    variables = {"OMP_NUM_THREADS": "1", "CI": "1"}  # hypothesis tries the same examples each time
    command = [sys.executable, "-P", "-m", "mutmut", *arguments]
    with Path("log").open("w") as log:
        process = subprocess.Popen(
            command, env=os.environ | variables, stdout=log, stderr=log, start_new_session=True
        )
        try:
            if process.wait(seconds):
                click.echo(f"mutmut failed: …{Path('log').read_text()[-2000:]}", err=True)
        except subprocess.TimeoutExpired:
            click.echo("The time is over.", err=True)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # the workers, too
            process.wait()


def report(files: list[str], chosen: list[str]) -> Iterator[str]:
    """A row for each file, and the survivors. The score is killed / (killed + survived)."""
    from mutmut.mutation.data import SourceFileMutationData
    from mutmut.mutation.diff_apply import get_diff_for_mutant
    from mutmut.stats import status_by_exit_code

    counts: dict[str, Counter[str]] = {}
    survivors: list[str] = []
    for file in files:
        data = SourceFileMutationData(path=Path(file))
        data.load()
        outcomes = counts[file] = Counter()
        for name in sorted(data.exit_code_by_key.keys() & set(chosen)):
            outcome = {"not checked": "not tried", "survived": "survived", "no tests": "survived"}.get(
                status_by_exit_code[data.exit_code_by_key[name]], "killed"
            )
            if outcome == "survived":
                change = get_diff_for_mutant(name, path=Path(file)).splitlines()[3:]
                old, new = (
                    " ".join(line[1:].strip() for line in change if line.startswith(sign)) for sign in "-+"
                )
                if NO_FAULT.sub("", old) == NO_FAULT.sub("", new):
                    outcome = "equivalent"
                else:
                    survivors.append(f"- `{file}`: `{old}` → `{new}`")
            outcomes[outcome] += 1
    yield "| file | mutants | killed | survived | equivalent | not tried | score |"
    yield "|---|---:|---:|---:|---:|---:|---:|"
    for name, found in [*counts.items(), ("all", sum(counts.values(), Counter()))]:
        tried = found["killed"] + found["survived"]
        cells = [found.total(), *(found[each] for each in ("killed", "survived", "equivalent", "not tried"))]
        score = f"{100 * found['killed'] / tried:.1f} %" if tried else ""
        yield f"| {name} | {' | '.join(map(str, cells))} | {score} |"
    yield ""
    yield f"{len(survivors)} survived:" if survivors else "None survived."
    yield from survivors


if __name__ == "__main__":
    main()
