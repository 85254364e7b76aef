"""`asyncfl` as a user types it: what is printed, where, and with which exit code."""

import json
import os
import re
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner

from benchmarks.catalogue import FAMILIES, family
from benchmarks.commands import group
from benchmarks.mlflow_store.database import TABLES
from benchmarks.part_descriptions import described

ROOT = Path(__file__).parents[2]
HEAVY = {
    *("torch", "mlflow", "pytorch_lightning", "optuna", "pandas", "numpy", "scipy.stats", "matplotlib"),
    *("rich", "sklearn", "pydantic"),
}
ASYNCFL = "from asyncfl.__main__ import main; main()"

NO_NETWORK = dict.fromkeys(("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"), "http://127.0.0.1:9")

SMALL = """
name: small
seeds: 2
problem: quadratic
budget: {updates: 20}
strategies: [fedavg, ace]
grid: {problem.noise: [0, 1]}
"""

Done = subprocess.CompletedProcess[str]
AsyncFL = Callable[..., Done]


@pytest.fixture
def asyncfl(tmp_path: Path) -> AsyncFL:
    """Runs `asyncfl` in an empty folder with a suite `small.yaml` in it."""
    (tmp_path / "small.yaml").write_text(SMALL)

    def _asyncfl(*arguments: str, program: str = ASYNCFL) -> Done:
        environment = {key: value for key, value in os.environ.items() if not key.startswith("ASYNCFL_")}
        return subprocess.run(
            [sys.executable, "-c", program, *arguments],
            cwd=tmp_path,
            env={**environment, **NO_NETWORK, "XDG_CACHE_HOME": str(tmp_path), "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=False,
        )

    return _asyncfl


@pytest.fixture
def here(tmp_path: Path, typed: AsyncFL) -> AsyncFL:
    """The same in the process of the test, for commands that import for seconds."""
    (tmp_path / "small.yaml").write_text(SMALL)
    return typed


def test_help_loads_nothing_heavy(asyncfl: AsyncFL) -> None:
    """What costs seconds to import is not imported before a command runs: `--help` answers at once."""
    program = (
        "import sys\n"
        "from asyncfl.__main__ import main\n"
        "from benchmarks.commands.group import COMMANDS\n"
        "for words in ([], *([command] for command in COMMANDS)):\n"
        "    sys.argv = ['asyncfl', *words, '--help']\n"
        "    try: main()\n"
        "    except SystemExit as end: assert end.code == 0\n"
        f"print('LOADED', *({HEAVY} & sys.modules.keys()))"
    )
    done = asyncfl(program=program)
    assert done.returncode == 0, done.stderr
    helps, _, loaded = done.stdout.rpartition("LOADED")
    assert loaded.split() == []
    assert all(f"\n  {command} " in helps for command in ("run", "report", "list", "show", "ui"))


def test_help_says_in_a_line_what_each_command_does() -> None:
    """On a terminal of 80 columns, without being cut."""
    lines = CliRunner().invoke(group.asyncfl, ["--help"]).output.splitlines()
    said = dict(line.split(maxsplit=1) for line in lines[lines.index("Commands:") + 1 :])
    assert said.keys() == set(group.COMMANDS)
    assert not [words for words in said.values() if words.endswith("...")]


def test_what_is_only_looked_up_loads_no_science(asyncfl: AsyncFL) -> None:
    """torch alone takes a second and a half of processor time; what is printed here is text from files."""
    program = (
        "import sys; from benchmarks.commands.group import asyncfl\n"
        "for words in ('list', 'list strategies', 'list errata', 'list errata X-1'):\n"
        "    asyncfl(words.split(), standalone_mode=False)\n"
        "    allowed = {'pydantic'} if 'errata' in words else set()\n"
        f"    print('LOADED', *({HEAVY} & sys.modules.keys()) - allowed)"
    )
    done = asyncfl(program=program)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert [line for line in lines if line.startswith("LOADED")] == ["LOADED"] * 4
    assert len(lines) > 100


def test_version(here: AsyncFL) -> None:
    done = here("--version")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("asyncfl ")


@pytest.mark.parametrize("words", [["show", "quikstart"], ["report", "small"], ["ui"]])
def test_a_mistake_is_one_line_and_exit_code_2(here: AsyncFL, words: list[str]) -> None:
    done = here(*words)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("Error: ") and done.stderr.count("\n") == 1


def test_a_port_that_is_taken(here: AsyncFL, tmp_path: Path) -> None:
    (tmp_path / "asyncfl-results").mkdir()
    with closing(sqlite3.connect(tmp_path / "asyncfl-results" / "mlflow.db")) as store:
        for table in TABLES:
            store.execute(f"CREATE TABLE {table} (name)")
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        done = here("ui", "--port", str(port))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1 and str(port) in done.stderr


def test_a_bug_keeps_its_traceback(
    here: AsyncFL, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delattr("benchmarks.suite.suite.load")
    with pytest.raises(ImportError, match="cannot import name 'load'") as caught:
        here("show", "quickstart")
    sys.excepthook(caught.type, caught.value, caught.tb)
    assert "Traceback" in capsys.readouterr().err


def test_a_bug_in_own_code_is_a_line_with_its_place(here: AsyncFL, tmp_path: Path) -> None:
    (tmp_path / "has_a_bug.py").write_text(
        "from fl_core.strategies.ace import ACE\n"
        "class Mine(ACE):\n"
        "    def refuses(self, scenario):\n"
        "        return 1 / 0\n"
    )
    done = here("show", "small.yaml", "--set", "strategies=['has_a_bug:Mine']")
    assert done.returncode == 2
    assert done.stderr == "Error: ZeroDivisionError: division by zero (has_a_bug.py:4)\n"


def test_show_counts_runs_and_estimates_their_time(here: AsyncFL) -> None:
    done = here("show", "small.yaml", "--set", "seeds=3")
    assert (done.returncode, done.stderr) == (0, "")
    assert "Runs: 2 scenarios × 2 strategies × 3 seeds = 12\n" in done.stdout
    assert "problem.noise  0 | 1\n" in done.stdout
    assert re.search(r"\nEstimated time: about (< )?[\d.]+ \w+ \(worker processes: \d+\), ", done.stdout)


def test_batch_norm_is_refused_before_anything_starts(here: AsyncFL, tmp_path: Path) -> None:
    (tmp_path / "nets.py").write_text(
        "from torch import nn\n"
        "from fl_core.problems.models.model import Model\n"
        "class Normed(Model):\n"
        "    def build(self, shape, classes):\n"
        "        return nn.Sequential(nn.Flatten(), nn.BatchNorm1d(64), nn.Linear(64, classes))\n"
    )
    (tmp_path / "normed.yaml").write_text(
        "{name: normed, problem: {name: digits, clients: 3, model: 'nets:Normed'}, "
        "budget: {updates: 9}, strategies: [asgd], lr: 0.1, seeds: 2}"
    )
    reason = "the network's layer 1 (BatchNorm1d) keeps running statistics, which no server averages"
    shown = here("show", "normed.yaml")
    assert shown.returncode == 2 and f"{reason}: use GroupNorm" in shown.stderr
    ran = here("run", "normed.yaml", "--store", "results")
    assert ran.returncode == 2 and reason in ran.stderr and "Traceback" not in ran.stderr
    assert not list((tmp_path / "results" / "outbox").glob("*/*"))


def test_show_of_a_suite_whose_data_fail_is_an_error(here: AsyncFL, tmp_path: Path) -> None:
    (tmp_path / "lost.py").write_text(
        "from pytorch_lightning import LightningModule\n"
        "from torch import nn\n"
        "class Line(LightningModule):\n"
        "    def __init__(self):\n"
        "        super().__init__()\n"
        "        self.line = nn.Linear(2, 1)\n"
        "    def training_step(self, batch):\n"
        "        return self.line(batch[0]).mean()\n"
        "def rows():\n"
        "    return open('no-such.csv')\n"
    )
    (tmp_path / "lost.yaml").write_text(
        "{name: lost, problem: {name: own, module: 'lost:Line', data: 'lost:rows', clients: 3}, "
        "budget: {updates: 9}, strategies: [asgd], lr: 0.1, seeds: 1}"
    )
    done = here("show", "lost.yaml")
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert line.startswith("Error: data lost:rows failed: FileNotFoundError: ")
    assert line.endswith(" (lost.py:10)")


@pytest.mark.slow
def test_show_without_the_data_says_so_and_shows_the_rest(asyncfl: AsyncFL, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    done = asyncfl("show", "mnist_weights", "--data-dir", "empty")
    assert done.returncode == 0, done.stderr
    assert "2 strategies × 5 seeds = 20\n" in done.stdout
    assert "Estimated time: unknown. " in done.stdout


def test_list_names_every_part_with_its_line(here: AsyncFL) -> None:
    done = here("list")
    assert (done.returncode, done.stderr) == (0, "")
    kinds = dict(block.split("\n", 1) for block in done.stdout.split("\n\n"))
    assert list(kinds) == [
        *(
            "STRATEGIES",
            "SAMPLINGS",
            "PROBLEMS",
            "PARTITIONS",
            "MODELS",
            "DURATIONS",
            "AVAILABILITY",
            "LINKS",
        ),
        *("ARRANGEMENTS", "LOCAL", "OPTIMIZERS", "CODINGS", "SUITES"),
    ]
    strategies = dict(line.split(maxsplit=1) for line in kinds["STRATEGIES"].splitlines())
    assert {"fedavg", "async_fedavg", "fedfix", "fedbuff", "ca2fl", "ace", "asgd"} <= strategies.keys()
    assert strategies["fedbuff"].endswith("Nguyen et al., AISTATS 2022, Algorithm 1")
    assert {"quickstart", "mnist_weights"} <= {line.split()[0] for line in kinds["SUITES"].splitlines()}


def test_list_one_kind(here: AsyncFL) -> None:
    done = here("list", "local")
    assert {"prox", "scaffold", "sgd"} <= {line.split()[0] for line in done.stdout.splitlines()}
    assert "FedProx" in done.stdout and "FedBuff" not in done.stdout
    for words in (("locale",), ("quickstart",), ("duration", "fx"), ("nowhere:Nothing",)):
        done = here("list", *words)
        assert done.returncode == 2 and done.stderr.startswith("Error: ") and words[0] in done.stderr


def test_list_a_part_prints_its_fields_in_words(here: AsyncFL) -> None:
    done = here("list", "fedbuff")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(
        "fedbuff: FedBuff, buffered asynchronous aggregation\nPaper: Nguyen et al., "
    )
    assert "the staleness scaling 1/√(1+τ) of its §5" in done.stdout
    fields = [" ".join(line.split()) for line in done.stdout.partition("\nFields\n")[2].splitlines()]
    for field in (
        "buffer whole number ≥ 1 default 10 tuned 1 to 32, logarithmic updates a step waits for",
        "local_lr number > 0 default 0.1 tuned 0.001 to 1, logarithmic η_l, the clients' learning rate",
        (
            "scaling inverse_root or one_plus_root or none default inverse_root "
            "s(τ) by staleness: 1/√(1+τ), 1/(1+√(1+τ)), or 1"
        ),
    ):
        assert field in fields
    assert here("list", "durations", "two_speed").stdout.startswith("two_speed: Two-speed mixture")


def test_every_part_has_words_for_its_fields() -> None:
    for of in (
        of for kind in FAMILIES for name in family(kind).members() for of in described(kind, name).fields
    ):
        assert of.values and of.default and of.what, of
        assert not set("<>[].'") & set(of.values.replace("> ", "").replace("< ", "")), of


def test_schema_is_json(here: AsyncFL) -> None:
    done = here("list", "--schema")
    assert (done.returncode, done.stderr) == (0, "")
    assert set(json.loads(done.stdout)["required"]) == {"name", "seeds", "strategies"}
