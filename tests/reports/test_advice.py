"""`asyncfl advise`: the nearest population of the leaderboard, its rank groups, a suite to check it."""

import functools
from math import log
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from benchmarks.commands import advise, options, theory
from benchmarks.errors import UserError
from benchmarks.suite.suite import load
from fl_core.scenario import Timing
from reports import advice
from reports.leaderboard import rank_groups
from reports.leaderboard.board_tables import FINALS, TRIALS, BoardTables

TIMES = {  # to target; ∞ for never
    "features10-alike": {"FedAvg": 80.0, "FedBuff": 10.0, "ACE": 20.0, "ASGD": 10.0},
    "features10-two_speed": {"FedAvg": 400.0, "FedBuff": 200.0, "ACE": 50.0, "ASGD": np.inf},
}


def final_runs(scale: str, name: str, time: float) -> list[dict[str, object]]:
    """Return final runs of four studies and two seeds, with times near the given one."""
    rng = np.random.default_rng(len(name))
    return [
        dict(zip(FINALS, (scale, name, study, 10 * study + seed, "done", "abc"), strict=False))
        | {"time": time * np.exp(0.02 * rng.standard_normal()), "updates": 100, "uploads": 260_000}
        | {"downloads": 260_000, "worst_client": 0.5, "times": "0 1", "values": "0.1 0.9"}
        for study in (1, 2, 3, 4)
        for seed in (0, 1)
    ]


MEASURED = functools.cache(advise._measured)  # the board of all tests is the same


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A board on which FedBuff and ASGD lead among clients alike, and ACE where some are slow."""
    rows = [row for scale, own in TIMES.items() for entry in own.items() for row in final_runs(scale, *entry)]
    folder = tmp_path / "board"
    folder.mkdir()
    BoardTables(pd.DataFrame(columns=TRIALS), pd.DataFrame(rows, columns=FINALS)).save(folder)
    monkeypatch.setattr(options, "LEADERBOARD", folder)
    monkeypatch.setattr(advise, "_measured", MEASURED)
    monkeypatch.setattr(rank_groups, "BOARDS", 200)
    monkeypatch.setattr(advice, "SEEDS", range(2))
    return folder


def told(*arguments: str) -> str:
    """What `asyncfl advise` prints, with plain spaces."""
    done = CliRunner().invoke(advise.command, arguments, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output.replace("\u00a0", " ")


def advised(path: Path) -> list[str]:
    """The strategies of the suite that was written."""
    return [own.reference() for own in load(str(path)).spec.strategies]


def test_clients_alike_are_advised_the_rank_groups_there(kept: Path, tmp_path: Path) -> None:
    said = told("--clients", "20", "--out", str(tmp_path / "mine.yaml"))
    assert "alike (distance 1.0" in said
    first = next(line for line in said.splitlines() if line.startswith("First rank group"))
    assert "ASGD" in first and "FedBuff" in first and "ACE (2)" in said
    assert "FedAvg (3)" in said
    assert [*advised(tmp_path / "mine.yaml")][2:] == ["ace", "fedavg"]
    assert {*advised(tmp_path / "mine.yaml")[:2]} == {"asgd", "fedbuff"}


def test_clients_of_two_speeds_are_advised_the_groups_of_their_population(kept: Path, tmp_path: Path) -> None:
    said = told("--clients", "40", "--slow", "20%", "--out", str(tmp_path / "mine.yaml"))
    assert "two speeds (distance 1" in said and "First rank group: ACE." in said
    assert "never meet the target: ASGD." in said
    suite = load(str(tmp_path / "mine.yaml"))
    assert suite.spec.problem.clients == 40
    assert advised(tmp_path / "mine.yaml") == ["ace", "fedbuff", "fedavg"]


def test_what_was_not_said_is_not_printed_as_the_users(kept: Path, tmp_path: Path) -> None:
    """Every line says what is assumed, but for what an option gives."""
    lines = told("--clients", "20", "--away", "30%", "--out", str(tmp_path / "mine.yaml")).splitlines()
    yours = {word: next(line for line in lines if words in line) for word, words in advice.WORDS.items()}
    assert {word for word, line in yours.items() if " assumed: " not in line} == {"absence"}
    assert "exponential" in yours["tail"]


def test_where_nothing_near_was_measured_it_says_so(
    kept: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A log of one client a thousand times slower than the others."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "log.csv").write_text("client,length\n" + "".join(f"{i},1\n" for i in range(9)) + "9,1000\n")
    said = told("--trace", "log.csv", "--out", "mine.yaml")
    assert "Nothing near was measured" in said
    assert "ank group" not in said  # no strategy is recommended: the suite has one of each kind
    assert "    path: log.csv\n" in (tmp_path / "mine.yaml").read_text()  # the folder may be moved
    suite = load(str(tmp_path / "mine.yaml"))
    assert suite.spec.problem.clients == 10 and "Nothing near was measured." in suite.description
    assert advised(tmp_path / "mine.yaml") == ["async_fedavg", "fedbuff", "ace", "fedfix", "fedavg"]


@pytest.mark.parametrize(
    "given",
    [
        ("--uplink", "1", "--message", "4MB", "--unit", "1"),
        ("--server-uplink", "20", "--message", "4MB", "--unit", "1"),
        ("--at-work", "5"),
    ],
    ids=["slow links", "slow link of the server", "few at work"],
)
def test_links_and_clients_at_work_are_characteristics(
    given: tuple[str, ...], kept: Path, tmp_path: Path
) -> None:
    """Alike clients are near; with 32 s to send an update, or a quarter of 20 at work, they are not."""
    said = told("--clients", "20", *given, "--out", str(tmp_path / "mine.yaml"))
    assert "Nothing near was measured" in said
    suite = load(str(tmp_path / "mine.yaml"), ["seeds=1"])
    strategies = {own.reference(): own for own in suite.spec.strategies}
    if given[0] == "--at-work":
        assert strategies["fedbuff"].concurrency == strategies["ace"].concurrency == 5
        assert strategies["fedavg"].model_dump()["sampling"]["sample"] == 5
    else:
        network = suite.spec.timing.network
        assert network and network.message == 4_000_000


@pytest.mark.slow
def test_the_suite_has_time_for_absences_and_as_many_clients_as_digits_are_enough_for(
    kept: Path, tmp_path: Path
) -> None:
    """Away for half of the time, a typical client does 30 jobs of mean length 1 in about 60 units."""
    said = told("--clients", "1500", "--away", "50%", "--out", str(tmp_path / "mine.yaml"))
    assert "It has 1000 of the 1500 clients" in said
    suite = load(str(tmp_path / "mine.yaml"), ["seeds=1", "strategies=[asgd]"])
    for run in suite.runs():  # i.i.d. and skewed: nobody is without data
        assert int(run.experiment.scenario.problem.world(0).sizes.min()) >= 1
    spec = suite.spec
    assert spec.problem.clients == 1000 and 55 < float(spec.budget.time or 0) < 65
    assert spec.problem.target == 0.9  # how much sooner is what is advised


def test_who_is_away_at_the_start_of_the_suite_comes_back(kept: Path, tmp_path: Path) -> None:
    """Jobs of length 1, seen in spells of 480 with absences of 120 on average."""
    rows = [
        (client, at + 600 * spell) for client in range(8) for spell in range(4) for at in range(0, 480, 2)
    ]
    (tmp_path / "log.csv").write_text("who,from,took\n" + "".join(f"{who},{at},1\n" for who, at in rows))
    log = ("--trace", str(tmp_path / "log.csv"), "--client", "who", "--start", "from", "--duration", "took")
    told(*log, "--out", str(tmp_path / "mine.yaml"))
    spec = load(str(tmp_path / "mine.yaml"), ["seeds=1", "strategies=[asgd]"]).spec
    assert float(spec.budget.time or 0) == pytest.approx(
        5 * 121, rel=0.01
    )  # a job ends 121 before the next spell


def test_power_adds_time_and_energy_of_the_best_routing(
    kept: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(theory, "FRONT", {weight: theory.FRONT[weight] for weight in (0.0, 1.0)})
    out = tmp_path / "own.yaml"
    shown = told("--clients", "2", "--computation", "2", "--idle", "0.5", "--out", str(out)).splitlines()
    speeds = ("--speeds", "2x1", "--computation", "2x2", "--idle", "2x0.5", "--limit", "2")
    expected = CliRunner().invoke(theory.command, ["cost", *speeds]).output.splitlines()
    table = expected[(first := next(at for at, line in enumerate(expected) if line.startswith("choice"))) :]
    assert len(shown) > 6 and first
    assert [line for line in shown if line in table[:4]] == table[:4]  # AsyncSGD, least time, least energy
    assert (tmp_path / "own-energy.svg").read_text().count("<svg") == 1


def test_neighbours_are_sorted_by_distance() -> None:
    law = {"name": "two_speed", "jobs": "exponential"}
    own = advice.of_timing(Timing.model_validate({"durations": law}), 20, 30)
    scenarios = {
        point.scenario.timing.label(): point.scenario for point in load("standard", ["seeds=1"]).points
    }
    names = ("exponential", "two-speed 20 % × 10 jobs exponential")
    near, far = advice.neighbours(own, {name: (name, scenarios[name], 1.0) for name in names})
    assert (near.name, far.name) == names[::-1]
    assert near.distance == pytest.approx(0, abs=0.05) and far.distance > log(10)


def test_mistakes_are_one_line(kept: Path, tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text("nonsense\nx,\n")
    (tmp_path / "none.csv").write_text("client,length\n")
    for arguments, message in (
        (("--trace", str(tmp_path / "log.csv")), "must be a client and the lengths"),
        (("--trace", str(tmp_path / "log.csv"), "--slow", "0.1"), "--slow cannot be combined with --trace"),
        (("--trace", str(tmp_path / "none.csv")), "none.csv: has no job"),
        (("--out", str(tmp_path / "log.csv")), "exists already"),
        (("--uplink", "5"), "--message is missing"),
        (("--message", "5MB"), "--message needs links"),
        (("--uplink", "up", "--message", "5MB"), "--uplink up: must be a rate in Mbit/s, or a column"),
        (("--uplink", "5", "--message", "5MB"), "--unit is missing"),
        (("--uplink", "5", "--message", "5 pounds", "--unit", "1"), "must be a number of bytes"),
    ):
        with pytest.raises(UserError, match=message):
            told(*arguments)
