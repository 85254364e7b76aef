"""`asyncfl advise`: the nearest population of the leaderboard, who is soonest there, a suite to check it."""

import json
import re
from dataclasses import replace
from math import log
from pathlib import Path

import pytest
from click.testing import CliRunner
from test_leaderboard_scores import BEST, ENTRIES, board, held_out

from benchmarks.commands import advise, options
from benchmarks.errors import UserError
from benchmarks.suite.suite import load
from fl_core.scenario import Timing
from reports import advice
from reports.leaderboard.rules import FILE, Frame
from reports.leaderboard.tables import Tables

TIMINGS = {  # of the tables → of the suite `leaderboard`, whose scales are workloads
    "alike": "exponential per step",
    "two-speed": "no suite has it",
    "away": "nor this",
    "slow": "two-speed 20 % × 4 per step jobs exponential · clients 60",
}


def renamed(tables: Tables) -> Tables:
    """The tables as entries of the suite `leaderboard`."""

    def of_suite(frames: tuple[Frame, ...]) -> tuple[Frame, ...]:
        return tuple(own.model_copy(update={"timing": TIMINGS[own.timing]}) for own in frames)

    rules = tables.rules.model_copy(
        update={
            "suite": "leaderboard",
            "files": {"features10-design.csv": ""},
            "scenarios": of_suite(tables.rules.scenarios),
            "held_out": of_suite(tables.rules.held_out),
        }
    )
    parts = {
        name: getattr(tables, name).replace({"timing": TIMINGS}) for name in ("design", "finals", "held_out")
    }
    return replace(tables, rules=rules, **parts)


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A version in which FedBuff is soonest on the board, and ACE in the held-out scenarios."""
    folder, tables = tmp_path / "1.0", renamed(held_out({"FedBuff": 40, "ACE": 20, "FedAvg": 80}))
    tables.save(folder, "features10")
    (folder / FILE).write_text(json.dumps(tables.rules.model_dump(mode="json")))
    monkeypatch.setattr(options, "LEADERBOARD", folder)
    return folder


def told(*arguments: str) -> str:
    """What `asyncfl advise` prints, with plain spaces."""
    done = CliRunner().invoke(advise.command, arguments, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output.replace("\u00a0", " ")


def advised(path: Path) -> list[str]:
    """The strategies of the suite that was written."""
    return [own.reference() for own in load(str(path)).spec.strategies]


def test_clients_alike_are_advised_who_is_soonest_and_how_sure_that_is(kept: Path, tmp_path: Path) -> None:
    said = told("--clients", "20", "--out", str(tmp_path / "mine.yaml"))
    assert "Nearest: exponential per step, 1.01 × away" in said
    assert "Leaderboard (a and b): FedBuff reaches the hard target" in said
    found = re.search(r"over seeds \[([\d.]+), ([\d.]+)\], over scenarios \[([\d.]+), ([\d.]+)\]", said)
    assert found
    assert all(0.8 < float(end) / (BEST["FedAvg"] / BEST["FedBuff"]) < 1.25 for end in found.groups())
    assert "first with a probability of 1.00; all others are shown to be behind." in said
    assert "i.i.d.: FedBuff reaches" in said and "FedBuff: leads with i.i.d. data there" in said
    assert advised(tmp_path / "mine.yaml") == ["fedbuff", "ace", "fedavg"]


def test_clients_of_two_speeds_are_advised_from_held_out_scenarios(kept: Path, tmp_path: Path) -> None:
    """ACE takes a quarter of FedAvg's time there, FedBuff half of it."""
    said = told("--clients", "40", "--slow", "20%", "--factor", "4", "--out", str(tmp_path / "mine.yaml"))
    assert "Nearest: two-speed 20 % × 4 per step jobs exponential" in said
    assert (
        "held-out scenarios (a and b), where nothing was tuned: ACE reaches the hard target 4.0 × sooner"
        in said
    )
    assert "FedBuff: 2.0 × sooner than FedAvg there" in said
    suite = load(str(tmp_path / "mine.yaml"))
    assert suite.spec.problem.clients == 40 and advised(tmp_path / "mine.yaml") == [
        "ace",
        "fedbuff",
        "fedavg",
    ]


def test_who_leads_under_either_split_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Even where others are sooner on average: with skewed labels FedAvg takes a tenth of the time."""
    monkeypatch.setattr(advice, "CANDIDATES", 2)
    tables = renamed(board(**ENTRIES))
    ahead = (tables.finals["partition"] == "skew") & (tables.finals["strategy"] == "ACE")
    times = tables.finals["time_hard"].where(~ahead, tables.finals["time_hard"] / 3)
    known = advice.known(replace(tables, finals=tables.finals.assign(time_hard=times)), TIMINGS["alike"])
    chosen = advice.candidates(known, load("leaderboard", ["seeds=1"]))
    assert [(own.label, own.why) for own in chosen[:2]] == [
        ("FedBuff", "leads with i.i.d. data there"),
        ("ACE", "leads with skew data there"),
    ]


def test_where_nothing_near_was_measured_it_says_so(
    kept: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A log of one client a thousand times slower than the others."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "log.csv").write_text("client,length\n" + "".join(f"{i},1\n" for i in range(9)) + "9,1000\n")
    said = told("--trace", "log.csv", "--out", "mine.yaml")
    assert "Nothing near was measured" in said and "leads" not in said
    assert "sooner" not in said  # no strategy is recommended: the suite has one of each kind
    assert "    path: log.csv\n" in (tmp_path / "mine.yaml").read_text()  # the folder may be moved
    suite = load(str(tmp_path / "mine.yaml"))
    assert suite.spec.problem.clients == 10 and "Nothing near was measured." in suite.description
    assert advised(tmp_path / "mine.yaml") == ["async_fedavg", "fedbuff", "ace", "fedfix", "fedavg"]


@pytest.mark.parametrize(
    "given",
    [
        ("--uplink", "1", "--message", "4MB", "--unit", "1"),
        ("--at-work", "5"),
    ],
    ids=["slow links", "few at work"],
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
    told(
        "--trace",
        str(tmp_path / "log.csv"),
        "--client",
        "who",
        "--start",
        "from",
        "--duration",
        "took",
        "--out",
        str(tmp_path / "mine.yaml"),
    )
    spec = load(str(tmp_path / "mine.yaml"), ["seeds=1", "strategies=[asgd]"]).spec
    assert float(spec.budget.time or 0) == pytest.approx(
        5 * 121, rel=0.01
    )  # a job ends 121 before the next spell


def test_neighbours_are_sorted_by_distance() -> None:
    law = {"name": "two_speed", "jobs": "exponential"}
    own = advice.of_timing(Timing.model_validate({"durations": law}), 20, 30)
    found = advice.neighbours(
        own,
        [load("standard", ["seeds=1"])],
        dict.fromkeys(["exponential", "two-speed 20 % × 10 jobs exponential", "of no suite"], 1.0),
    )
    assert [there.timing for there in found] == ["two-speed 20 % × 10 jobs exponential", "exponential"]
    assert found[0].distance == pytest.approx(0, abs=0.05) and found[1].distance > log(10)


def test_mistakes_are_one_line(kept: Path, tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text("nonsense\nx,\n")
    (tmp_path / "none.csv").write_text("client,length\n")
    for arguments, message in (
        (("--trace", str(tmp_path / "log.csv")), "a row is a client and lengths"),
        (("--trace", str(tmp_path / "log.csv"), "--slow", "0.1"), "--slow cannot be combined with --trace"),
        (("--trace", str(tmp_path / "none.csv")), "none.csv: no job found"),
        (("--out", str(tmp_path / "log.csv")), "exists already"),
        (("--uplink", "5"), "--message: give the size"),
        (("--message", "5MB"), "--message: give the size"),
        (("--uplink", "up", "--message", "5MB"), "--uplink up: give Mbit/s, or the file"),
        (("--uplink", "5", "--message", "5MB"), "--unit: give the seconds"),
        (("--uplink", "5", "--message", "5 pounds", "--unit", "1"), "a size is a number of bytes"),
    ):
        with pytest.raises(UserError, match=message):
            told(*arguments)
