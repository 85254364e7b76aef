"""`asyncfl claims` as a user types it: run, interrupted, gone on with, shown."""

import os
import re
import signal
import subprocess
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner
from patience import PATIENCE, eventually
from recorded import held
from shell import python
from toy_paper import CLAIMS

from benchmarks.claims import register, stored_numbers
from benchmarks.claims.files import papers
from benchmarks.claims.plan import ClaimPlan
from benchmarks.commands.claims import command, plans_of, untraceable_plans
from benchmarks.engine import Local
from benchmarks.errors import UserError
from benchmarks.mlflow_store.store import Store
from benchmarks.runs.session import Session
from fl_core.import_guard import ALLOWED
from fl_core.recording import recorder as measure
from reports.records.suite_reader import load

ROOT = Path(__file__).parents[2]
PATH = os.pathsep.join([str(ROOT), str(ROOT / "tests" / "benchmarks")])

LARGER = """\
  unused:
    suite: quickstart
    scales: {paper: {}}
    needs: {paper: {runs: a network, gpu: an hour, cores: a week}}
"""
MAIN = """\
main:
  - {id: slow, words: Slow is behind, place: §1, readings: [T-better/slow]}
  - {id: sums, words: Sums are wrong, place: §3, readings: [T-theorem/sum], open: The text is lost.}
  - {id: large, words: It trains, place: §2, readings: [T-large/*]}
"""
MORE = """\
  - id: T-large/digits
    place: §2
    statement: It trains.
    kind: value
    band: [0.5, null]
    clock: updates
    rates: stated
    arrangement: paper
    workload: paper
    scenario: unused
    where: {timing.durations: fx}
    strategy: fedfix
    metric: test/accuracy
  - id: T-theorem/sum
    place: §3
    statement: Two and two make five.
    kind: theorem
    test: tests/test_arithmetic.py::test_sum
    found: 4
    printed: 5
    seen: They make four.
"""


@pytest.fixture
def toy(tmp_path: Path) -> Path:
    """A folder of claims."""
    (tmp_path / "claims").mkdir()
    (tmp_path / "claims" / "toy.yaml").write_text(CLAIMS.replace("claims:", LARGER + MAIN + "claims:") + MORE)
    return tmp_path / "claims"


@pytest.fixture
def done(start: Callable[..., subprocess.Popen[str]]) -> Callable[..., str]:
    """What `asyncfl` with some arguments prints, once it has ended well."""

    def _done(*arguments: str) -> str:
        process = start(*arguments)
        output, _ = process.communicate(timeout=PATIENCE)
        assert process.returncode == 0, output
        return output

    return _done


@pytest.mark.slow
def test_claims_are_run_interrupted_gone_on_with_and_shown(
    start: Callable[..., subprocess.Popen[str]], done: Callable[..., str], toy: Path, store: Store
) -> None:
    at = ("--claims", str(toy), "--store", str(store.folder))
    run = ("claims", "run", *at, "--allow-code", "--workers", "2")
    assert "claims-toy-small: 1 claim, 6 runs, " in done(*run, "--dry-run")

    go, file = toy.parent / "go", toy / "toy.yaml"
    slow = held(go, at=300, free=1)
    text = file.read_text().replace('{name: "sluggish:Slow", pause: 0.004}', slow)
    file.write_text(text.replace("sluggish:Slow", "sluggish:Held"))
    first = start(*run)
    assert eventually(lambda: finished_seeds(store) or first.poll() is not None)
    os.killpg(first.pid, signal.SIGINT)  # as a terminal does
    output, _ = first.communicate(timeout=PATIENCE)
    assert first.returncode == 130 and "Traceback" not in output
    assert output.splitlines()[-1] == f"Resume with: asyncfl {' '.join(run)}"
    stored = stored_numbers.read(stored_numbers.path("toy", "small", toy / "results"))
    assert {one.seed for one in stored} == finished_seeds(store) != {0, 1, 2}

    go.touch()
    assert "claims-toy-small: 6 runs, 6 of them finished." in done(*run)
    stored = stored_numbers.read(stored_numbers.path("toy", "small", toy / "results"))
    assert {(one.claim, one.sample, one.seed): one.value for one in stored} == _undisturbed(toy)
    assert all(one.origin and one.when and one.runs for one in stored)

    summary = done("claims", "--claims", str(toy))
    rows = [" ".join(line.split()) for line in summary.splitlines()]
    assert rows[3:7] == [
        "main result outcome paper show",
        "Slow is behind undecided 1 open slow",
        "Sums are wrong fails 0/1 sums",
        "It trains not run – large",
    ]
    table = done("claims", "--claims", str(toy), "--paper", "toy")
    assert "\nT-better/slow  the paper’s  ahead in 3 of 3 seeds  " in table and "T-large/digits" not in table
    shown = done("claims", "show", "T-better/slow", "--claims", str(toy))
    assert all(f"seed {seed}: a " in shown for seed in range(3)) and all(one.runs in shown for one in stored)
    assert "The text is lost." in done("claims", "show", "sums", "--claims", str(toy))
    assert register.changed(papers(toy)["toy"], toy / "results") == []  # digests came with the first numbers

    again = done(*run)
    assert "seed 0" not in again  # nothing is computed twice
    assert stored_numbers.read(stored_numbers.path("toy", "small", toy / "results")) == stored


def finished_seeds(store: Store) -> set[int]:
    """The seeds of the toy's runs of which both strategies' runs are recorded."""
    try:
        runs = load(store.tracking_uri, "claims-toy-small").runs
    except UserError:  # nothing was recorded yet
        return set()
    ended = Counter(run.seed for run in runs if run.status.finite)
    return {seed for seed, strategies in ended.items() if strategies == 2}


def _undisturbed(toy: Path) -> dict[tuple[str, str, int], float]:
    """The same numbers from runs in this process, in one go."""
    paper = papers(toy)["toy"]
    claim = paper.claims["T-better/slow"]
    token = ALLOWED.set(True)
    try:
        picked = ClaimPlan(paper, "small", ()).picked(claim)
    finally:
        ALLOWED.reset(token)
    return {
        (claim.id, name, seed): measure.run(runs[0].experiment).curve[-1]["distance"]
        for name, by_seed in picked.items()
        for seed, runs in by_seed.items()
    }


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("check", "--allow-code"), "claims.T-large/digits: value: fedfax"),
        (("show", "T-theorem/sun"), "'T-theorem/sum'?"),
        (("run", "--paper", "toi"), "'toy'?"),
        (("run", "--id", "T-none*"), ""),
    ],
)
def test_mistakes_are_one_line_each(toy: Path, arguments: tuple[str, ...], words: str) -> None:
    wrong = (toy / "toy.yaml").read_text().replace("strategy: fedfix", "strategy: fedfax")
    (toy / "toy.yaml").write_text(wrong)
    with pytest.raises(UserError) as raised:
        command.main([*arguments, "--claims", str(toy)], standalone_mode=False)
    [line] = raised.value.lines
    assert words in line


def test_options_of_a_subcommand_stand_behind_it(toy: Path) -> None:
    said = CliRunner().invoke(command, ["--claims", str(toy), "show", "T-theorem/sum"])
    assert said.exit_code == 2 and "--claims" in said.output


def test_pages_are_of_all_papers(toy: Path) -> None:
    """Or one paper's would replace the summary of all."""
    at = ["--claims", str(toy), "--paper", "toy", "--markdown", str(toy / "docs")]
    said = CliRunner().invoke(command, at)
    assert said.exit_code == 2 and "--paper" in said.output
    assert not (toy / "docs").exists()


def test_all_pages_that_are_asked_for_are_written(toy: Path) -> None:
    pages = ["--markdown", str(toy / "docs"), "--html", str(toy / "page.html")]
    said = CliRunner().invoke(command, ["--claims", str(toy), "--readme", *pages], catch_exceptions=False)
    assert said.output.startswith("3 main results: ")
    assert all((toy / path).is_file() for path in ("docs/claims.md", "docs/claims.svg", "page.html"))


def test_the_cost_of_a_larger_scale_has_its_command(toy: Path) -> None:
    """The claims of the larger scale lack four seeds of two runs."""
    at = ["--claims", str(toy)]
    said = CliRunner().invoke(command, ["cost", "--scale", "paper", *at]).output
    [line] = [line for line in said.splitlines() if line.startswith("Toy et al.")]
    assert re.split("  +", line.strip())[-1] == "8"
    assert "asyncfl claims run --paper toy --scale paper --id '*' --until-decided" in said
    named = ["--scale", "paper", "--id", "*", "--until-decided", "--dry-run", *at]
    table, hint, _ = said.partition("Claims that need more")
    assert hint and CliRunner().invoke(command, ["run", *named]).output == table  # its command is this one


def test_the_cost_counts_a_paper_s_own_scale_where_two_cores_are_enough(toy: Path) -> None:
    """As `claims run` does."""
    at = ["--claims", str(toy)]
    text = (toy / "toy.yaml").read_text()
    for slow in ('{name: "sluggish:Slow", pause: 0.004}', '"sluggish:Slow"'):
        text = text.replace(slow, "fedbuff")
    for written, scales in ((text, ["small"]), (re.sub(r"\n    needs: .*", "", text), ["small", "paper"])):
        (toy / "toy.yaml").write_text(written)
        said = CliRunner().invoke(command, ["cost", *at]).output
        rows = [re.split("  +", line) for line in said.splitlines() if line.startswith("Toy et al.")]
        assert [scale for _, scale, *_ in rows] == scales
        assert CliRunner().invoke(command, ["run", "--dry-run", "--until-decided", *at]).output == said
    of_one = CliRunner().invoke(command, ["cost", "--paper", "toy", "--scale", "small", *at]).output
    [row] = [re.split("  +", line) for line in of_one.splitlines() if line.startswith("T-")]
    assert row == ["T-better/slow", "small", "3", "6"]  # three seeds of two runs


def test_seeds_without_a_clean_commit_are_run_again(toy: Path) -> None:
    """They alone, and all strategies of the claim under them."""
    text = (toy / "toy.yaml").read_text().replace('{name: "sluggish:Slow", pause: 0.004}', "fedbuff")
    (toy / "toy.yaml").write_text(text.replace('"sluggish:Slow"', "fedbuff"))
    clean, changed = f"{'0' * 40}, python", f"{'0' * 40}+, python"
    numbers = [
        stored_numbers.Number("T-better/slow", sample, seed, 0.5, "k", "2026-11-27T00:00:00+00:00", origin)
        for seed, origin in enumerate([clean, changed, "no commit, python"])
        for sample in "ab"
    ]
    stored_numbers.merge(stored_numbers.path("toy", "small", toy / "results"), ["T-better/slow"], numbers)
    [everything] = plans_of(papers(toy)["toy"], "small", ("T-better/slow",))
    [plan] = untraceable_plans([everything], toy / "results")
    assert [claim.id for claim in plan.claims] == ["T-better/slow"]
    assert sorted((run.experiment.seed, run.strategy) for run in plan.runs()) == sorted(
        (run.experiment.seed, run.strategy) for run in everything.runs() if run.experiment.seed in {1, 2}
    )


def test_numbers_that_wait_outside_of_mlflow_are_said(
    toy: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Claims read what MLflow has."""

    def run(session: Session, *_: object) -> None:
        session.pending_records, session.pending_reason = 6, "the server does not answer"

    monkeypatch.setattr(Session, "run", run)
    monkeypatch.setattr(Local, "warm_up", lambda *_: None)
    at = ["run", "--claims", str(toy), "--store", str(store.folder), "--allow-code"]
    said = CliRunner().invoke(command, at).output
    assert "not in MLflow: 6 records (the server does not answer), kept in " in said


@pytest.mark.slow
def test_what_is_open_is_run_to_its_next_look_until_it_is_decided(
    done: Callable[..., str], toy: Path, store: Store
) -> None:
    """Two strategies that differ by luck alone: three looks, each with fresh seeds; nothing is run twice."""
    text = (toy / "toy.yaml").read_text()
    alike = text.replace('{name: "sluggish:Slow", pause: 0.004}', "fedbuff")
    alike = alike.replace('"sluggish:Slow"', "fedbuff").replace("looks: [3]", "looks: [2, 3, 5]")
    (toy / "toy.yaml").write_text(alike)
    at = ("--claims", str(toy), "--store", str(store.folder))
    before = done("claims", "cost", "--claims", str(toy))
    assert "Toy et al.  small  1 of 1       " in before
    run = ("claims", "run", *at, "--allow-code", "--until-decided")
    ran = done(*run, "--workers", "2", "--hours", "1")
    looks = [line.split(",")[0] for line in ran.splitlines() if " claim to " in line]
    assert looks and looks == [f"claims-toy-small: 1 claim to {n} seeds" for n in (2, 3, 5)][: len(looks)]
    stored = stored_numbers.read(stored_numbers.path("toy", "small", toy / "results"))
    seeds = [one.seed for one in stored if one.sample == "a"]
    assert seeds == list(range((2, 3, 5)[len(looks) - 1]))
    again = done(*run)
    assert " claim to " not in again and "Toy et al.  small  0 of 1       0" in again


def test_the_summary_and_pages_wait_for_no_heavy_import(toy: Path) -> None:
    """Torch, pandas, MLflow and scipy.stats take seconds; what is stored is summed up without them."""
    program = (
        "import sys\n"
        "from benchmarks.commands.claims import command\n"
        "command.main(sys.argv[1:], standalone_mode=False)\n"
        "print('heavy:', *{'torch', 'pandas', 'mlflow', 'scipy.stats'} & sys.modules.keys())\n"
        "import reports.page, reports.terminal\n"
        "print('heavy:', *{'torch', 'mlflow', 'matplotlib'} & sys.modules.keys())"
    )
    done = python(toy.parent, program, "--claims", str(toy), PYTHONPATH=PATH)
    assert done.stdout.splitlines()[-2:] == ["heavy:"] * 2, done.stderr
