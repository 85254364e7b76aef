"""`asyncfl claims` as a user types it: run, interrupted, gone on with, shown."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from benchmarks.claims import kept
from benchmarks.claims.files import papers
from benchmarks.claims.plan import Plan
from benchmarks.commands.claims import command
from benchmarks.errors import UserError
from benchmarks.tracking.store import Store
from fl_core.recording import recorder as measure

ROOT = Path(__file__).parents[2]
PATH = os.pathsep.join([str(ROOT), str(Path(__file__).parent)])
PATIENCE = 60.0  # seconds, on a machine that does many things

TOY = """
paper: toy
title: Toy et al.
scenarios:
  pair:
    seeds: 3
    problem: {name: quadratic, centres: [[-1.0], [1.0], [0.5]], noise: 0.1}
    timing: {durations: {name: fx, spread: 80}}
    budget: {updates: 400}
    evaluations: 4
    strategies: [fedavg, {name: "sluggish:Slow", pause: 0.003}, fedbuff]
  unused: {suite: quickstart, scales: {paper: {}}, needs: {paper: a fast computer}}
claims:
  - id: T-better/slow
    place: §1
    statement: Synchronous averaging ends nearer to the optimum.
    kind: better
    clock: updates
    rates: stated
    scenario: pair
    metric: distance
    a: {strategy: fedavg}
    b: {strategy: "sluggish:Slow"}
  - id: T-large/digits
    place: §2
    statement: It trains.
    kind: value
    band: [0.5, null]
    clock: updates
    rates: stated
    scenario: unused
    where: {problem.partition: iid, timing.durations: fx}
    strategy: fedfix
    metric: test/accuracy
  - id: T-exact/sum
    place: §3
    statement: Two and two make five.
    kind: exact
    computed: operator:index
    arguments: {}
    printed: 5
    seen: They make four.
"""


@pytest.fixture
def toy(tmp_path: Path) -> Path:
    """A folder of claims."""
    (tmp_path / "claims").mkdir()
    (tmp_path / "arithmetic.py").write_text("def total(of):\n    return sum(of)\n")
    text = TOY.replace("operator:index", "arithmetic:total").replace(
        "arguments: {}", "arguments: {of: [2, 2]}"
    )
    (tmp_path / "claims" / "toy.yaml").write_text(text)
    return tmp_path / "claims"


def asyncfl(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    """`asyncfl` with some arguments, as the leader of a process group of its own."""
    return subprocess.Popen(
        [sys.executable, "-c", "from benchmarks.cli import main; main()", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": PATH},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def done(folder: Path, *arguments: str) -> str:
    """What it printed, once it has ended well."""
    process = asyncfl(folder, *arguments)
    output, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, output
    return output


@pytest.mark.slow
def test_claims_are_run_interrupted_gone_on_with_and_shown(tmp_path: Path, toy: Path, store: Store) -> None:
    run = (
        "claims",
        "run",
        "--claims",
        str(toy),
        "--allow-code",
        "--store",
        str(store.folder),
        "--workers",
        "2",
    )
    assert "claims-toy-small: 1 claim, 6 runs, " in done(tmp_path, *run, "--dry-run")

    first = asyncfl(tmp_path, *run)
    end = time.monotonic() + PATIENCE
    while not list(store.outbox.glob("claims-toy-small/*.checkpoint")):
        assert time.monotonic() < end and first.poll() is None
        time.sleep(0.02)
    os.killpg(first.pid, signal.SIGINT)  # as a terminal does
    output, _ = first.communicate(timeout=PATIENCE)
    assert first.returncode == 130 and "Traceback" not in output
    assert output.splitlines()[-1] == f"Go on with: asyncfl {' '.join(run)}"
    assert not kept.path("toy", "small", toy / "results").exists()

    assert "claims-toy-small: 6 runs, 6 of them finished." in done(tmp_path, *run)
    stored = kept.read(kept.path("toy", "small", toy / "results"))
    assert {(one.claim, one.sample, one.seed): one.value for one in stored} == _undisturbed(toy)
    assert all(one.origin and one.when and one.runs for one in stored)

    table = done(tmp_path, "claims", "--claims", str(toy))
    assert "Toy et al. · small\n" in table and "\nT-better/slow  confirmed  " in table
    assert "\nT-exact/sum  refuted  4.00" in table  # what is computed stands in a table of its own
    assert (
        "T-large/digits" not in table and "\nToy et al.  paper     –          –        –          1 " in table
    )
    shown = done(tmp_path, "claims", "show", "T-better/slow", "--claims", str(toy))
    assert "small: confirmed " in shown and all(f"seed {seed}: a " in shown for seed in range(3))
    assert all(one.runs in shown for one in stored)
    assert "needs    a fast computer" in done(
        tmp_path, "claims", "show", "T-large/digits", "--claims", str(toy)
    )
    markdown = done(tmp_path, "claims", "--markdown", "--claims", str(toy))
    assert "| Toy et al. | small | 1 | – | – | – | – | 1 |\n" in markdown
    assert "- **T-exact/sum** (computed): Two and two make five. *Seen:* They make four.\n" in markdown

    again = done(tmp_path, *run)
    assert "seed 0" not in again  # nothing is computed twice
    assert kept.read(kept.path("toy", "small", toy / "results")) == stored


def _undisturbed(toy: Path) -> dict[tuple[str, str, int | None], float]:
    """The same numbers from runs in this process, in one go."""
    paper = papers(toy)["toy"]
    claim = paper.claims["T-better/slow"]
    picked = Plan(paper, "small", ()).picked(claim)
    return {
        (claim.id, name, seed): measure.run(runs[0].experiment).curve[-1]["distance"]
        for name, by_seed in picked.items()
        for seed, runs in by_seed.items()
    }


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("check", "--allow-code"), "claims.T-large/digits: value: fedfax means none of"),
        (("show", "T-exact/sun"), "did you mean 'T-exact/sum'?"),
        (("run", "--paper", "toi"), "did you mean 'toy'?"),
        (("run", "--id", "T-none*"), "no claim of that name can run"),
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
    said = CliRunner().invoke(command, ["--claims", str(toy), "show", "T-exact/sum"])
    assert said.exit_code == 2
    assert "--claims stands behind show: asyncfl claims show --claims …" in said.output


def test_refuted_claims_that_look_alike_share_a_bullet(toy: Path) -> None:
    text = (toy / "toy.yaml").read_text()
    another = TOY[TOY.index("  - id: T-exact/sum") :].replace("T-exact/sum", "T-exact/again")
    alone = another.replace("T-exact/again", "T-exact/alone")
    text = (
        (text + another + alone)
        .replace("    seen: They make four.\n", "")
        .replace("operator:index", "arithmetic:total")
    )
    text = text.replace("arguments: {}", "arguments: {of: [2, 2]}")
    text += "seen: {T-exact/alone: It makes four., 'T-exact/*': They make four.}\n"
    (toy / "toy.yaml").write_text(text)
    run = ["claims", "run", "--claims", "claims", "--allow-code", "--id", "T-exact/*"]
    done(toy.parent, *run)
    printed = done(toy.parent, "claims", "--claims", "claims", "--markdown")
    both = "- **T-exact**, 2 claims (computed), such as: Two and two make five."
    assert f"{both} *Seen:* They make four. Claims: sum, again.\n" in printed
    assert "- **T-exact/alone** (computed): Two and two make five. *Seen:* It makes four.\n" in printed
