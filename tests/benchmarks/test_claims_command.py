"""`asyncfl claims` as a user types it: run, interrupted, gone on with, shown."""

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner
from toy_paper import CLAIMS

from benchmarks.claims import kept
from benchmarks.claims.files import papers
from benchmarks.claims.plan import ClaimPlan
from benchmarks.commands.claims.group import command
from benchmarks.errors import UserError
from benchmarks.suite.code import ALLOWED
from benchmarks.tracking.store import Store
from fl_core.recording import recorder as measure
from reports.records.store import load

ROOT = Path(__file__).parents[2]
PATH = os.pathsep.join([str(ROOT), str(Path(__file__).parent)])
PATIENCE = 60.0  # seconds, on a machine that does many things

LARGER = "  unused: {suite: quickstart, scales: {paper: {}}, needs: {paper: a fast computer}}\n"
MORE = """\
  - id: T-large/digits
    place: §2
    statement: It trains.
    kind: value
    band: [0.5, null]
    clock: updates
    rates: stated
    arrangement: paper
    scenario: unused
    where: {problem.partition: iid, timing.durations: fx}
    strategy: fedfix
    metric: test/accuracy
  - id: T-exact/sum
    place: §3
    statement: Two and two make five.
    kind: exact
    computed: arithmetic:total
    arguments: {of: [2, 2]}
    printed: 5
    seen: They make four.
"""


@pytest.fixture
def toy(tmp_path: Path) -> Path:
    """A folder of claims."""
    (tmp_path / "claims").mkdir()
    (tmp_path / "arithmetic.py").write_text("def total(of):\n    return sum(of)\n")
    (tmp_path / "claims" / "toy.yaml").write_text(CLAIMS.replace("claims:", LARGER + "claims:") + MORE)
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

    first = start(*run)
    end = time.monotonic() + PATIENCE
    while not finished_seeds(store):
        assert time.monotonic() < end and first.poll() is None
        time.sleep(0.02)
    os.killpg(first.pid, signal.SIGINT)  # as a terminal does
    output, _ = first.communicate(timeout=PATIENCE)
    assert first.returncode == 130 and "Traceback" not in output
    assert output.splitlines()[-1] == f"Go on with: asyncfl {' '.join(run)}"
    stored = kept.read(kept.path("toy", "small", toy / "results"))
    assert {one.seed for one in stored} == finished_seeds(store) != {0, 1, 2}

    assert "claims-toy-small: 6 runs, 6 of them finished." in done(*run)
    stored = kept.read(kept.path("toy", "small", toy / "results"))
    assert {(one.claim, one.sample, one.seed): one.value for one in stored} == _undisturbed(toy)
    assert all(one.origin and one.when and one.runs for one in stored)

    summary = done("claims", "--claims", str(toy))
    assert "Toy et al.  1      1      –              –          1           3" in summary
    assert "2 of 3 published claims tested, 0 at paper scale and 1 computed without training." in summary
    table = done("claims", "--claims", str(toy), "--paper", "toy")
    assert "Toy et al. · small\n" in table and "\nT-better/slow  confirmed  " in table
    assert "\nT-exact/sum  refuted  4.00" in table  # what is computed stands in a table of its own
    assert "T-large/digits" not in table
    row = done("claims", "show", "T-better", "--claims", str(toy))
    assert "small  T-better/slow  confirmed  " in row
    shown = done("claims", "show", "T-better/slow", "--claims", str(toy))
    assert "small (as the paper says): confirmed " in shown and all(
        f"seed {seed}: a " in shown for seed in range(3)
    )
    assert all(one.runs in shown for one in stored)
    assert "needs    a fast computer" in done("claims", "show", "T-large/digits", "--claims", str(toy))
    readme = done("claims", "--readme", "--claims", str(toy))
    assert "| [Toy et al.](docs/claims/toy.md) | 1 | 1 | – | – | 1 |\n" in readme
    done("claims", "--markdown", str(toy / "docs"), "--claims", str(toy))
    assert "| [Toy et al.](claims/toy.md) | 1 | 1 | – | – | 1 |\n" in (toy / "docs/claims.md").read_text()
    page = (toy / "docs" / "claims" / "toy.md").read_text()
    failed = "| **refuted**: contradicts the paper (note 1) | = 5 | 4.00 |  | computed |"
    assert f"{failed}\n\n1. They make four.\n" in page
    assert "| **confirmed: ahead** | A ahead of B | " in page and "| as the paper says, small scale |" in page
    assert "- paper scale, which needs a fast computer: T-large (1)." in page
    assert page.index("## Fails") < page.index("## Holds") < page.index("## Not run")

    again = done(*run)
    assert "seed 0" not in again  # nothing is computed twice
    assert kept.read(kept.path("toy", "small", toy / "results")) == stored


def finished_seeds(store: Store) -> set[int]:
    """The seeds of the toy's runs of which both strategies' runs are recorded."""
    try:
        ended = Counter(run.seed for run in load(store.tracking_uri, "claims-toy-small").runs if run.done)
    except UserError:  # nothing was recorded yet
        return set()
    return {seed for seed, strategies in ended.items() if strategies == 2}


def _undisturbed(toy: Path) -> dict[tuple[str, str, int | None], float]:
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


def test_pages_are_of_all_papers(toy: Path) -> None:
    """Or one paper's would replace the summary of all."""
    at = ["--claims", str(toy), "--paper", "toy", "--markdown", str(toy / "docs")]
    said = CliRunner().invoke(command, at)
    assert said.exit_code == 2 and "without --paper" in said.output
    assert not (toy / "docs").exists()


@pytest.mark.parametrize("missing", [False, True])
def test_the_cost_of_a_larger_scale_has_its_command(
    tmp_path: Path, toy: Path, monkeypatch: pytest.MonkeyPatch, missing: bool
) -> None:
    def seconds(runs: list[object]) -> float:
        if missing:
            raise FileNotFoundError("no such data")
        return 7200.0

    monkeypatch.setattr("benchmarks.runs.estimate.core_seconds", seconds)
    monkeypatch.setattr("benchmarks.commands.claims.cost.ESTIMATES", {})
    at = ["--claims", str(toy), "--store", str(tmp_path / "store")]
    said = CliRunner().invoke(command, ["cost", "--scale", "paper", *at]).output
    [line] = [line for line in said.splitlines() if line.startswith("Toy et al.")]
    assert line.split("  ")[-1].strip() == ("–, 8 runs unknown" if missing else "16.0 h")
    assert "asyncfl claims run --paper toy --scale paper --id '*' --until-decided" in said


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
    before = done("claims", "cost", *at)
    assert "Toy et al.  small  1 of 1       " in before
    run = ("claims", "run", *at, "--allow-code", "--until-decided")
    ran = done(*run, "--workers", "2", "--hours", "1")
    looks = [line.split(",")[0] for line in ran.splitlines() if " claim to " in line]
    assert looks and looks == [f"claims-toy-small: 1 claim to {n} seeds" for n in (2, 3, 5)][: len(looks)]
    stored = kept.read(kept.path("toy", "small", toy / "results"))
    seeds = [one.seed for one in stored if one.sample == "a"]
    assert seeds == list(range((2, 3, 5)[len(looks) - 1]))
    again = done(*run)
    assert " claim to " not in again and "Toy et al.  small  0 of 1       0     –" in again


def test_the_summary_waits_for_no_heavy_import(toy: Path) -> None:
    """Torch, pandas, MLflow and scipy.stats take seconds; what is stored is summed up without them."""
    program = (
        "import sys\n"
        "from benchmarks.commands.claims.group import command\n"
        "command.main(sys.argv[1:], standalone_mode=False)\n"
        "print('heavy:', *{'torch', 'pandas', 'mlflow', 'scipy.stats'} & sys.modules.keys())"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, "--claims", str(toy)],
        cwd=toy.parent,
        env={**os.environ, "PYTHONPATH": PATH},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines()[-1] == "heavy:"
