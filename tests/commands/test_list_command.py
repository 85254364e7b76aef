"""`asyncfl list theory` and `list errata`: published and closed-form numbers, and mistakes in one line."""

import math
import re
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from benchmarks.commands.list import command
from benchmarks.discrepancies import discrepancies
from benchmarks.errors import UserError

THREE_SPEEDS = "10x0.01,10x0.1,10x1"  # §5.2 of Alahyane et al.


def listed(*arguments: str) -> Result:
    return CliRunner().invoke(command, arguments)


def theory(*arguments: str) -> Result:
    return listed("theory", *arguments)


def table(output: str, head: str) -> list[list[str]]:
    """The rows under the line that begins with `head`, up to the next empty line."""
    lines = output.splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith(head))
    end = lines.index("", start) if "" in lines[start:] else len(lines)
    return [line.split() for line in lines[start + 1 : end]]


def test_throughputs_of_the_paper() -> None:
    """§5.2: in 3000 units of time 16,932 updates (balanced) and 687 (uniform); 7,043 for H is ours.

    The staleness of clients, weighted by their probabilities, is the number of tasks less one.
    """
    done = theory("routing", "--speeds", THREE_SPEEDS, "--tasks", "30", "--objective", "H", "--tied")
    assert done.exit_code == 0
    rates = {row[0]: 3000 * float(row[2]) for row in table(done.output, "routing")}
    assert rates == pytest.approx({"optimal": 7043.4, "uniform": 687.2, "balanced": 16932.2}, rel=1e-4)
    rows = table(done.output, "clients")
    assert [row[:2] for row in rows] == [["0-9", "0.01"], ["10-19", "0.1"], ["20-29", "1"]]
    assert sum(10 * float(row[2]) for row in rows) == pytest.approx(1, rel=1e-4)
    assert sum(10 * float(row[2]) * float(row[3]) for row in rows) == pytest.approx(29, rel=1e-4)
    assert sum(10 * float(row[2]) * float(row[4]) * 2.34782 for row in rows) == pytest.approx(30, rel=1e-4)


def test_bound_per_update_is_the_closed_form() -> None:
    """Uniform: G = A/(η(T+1)) + ηB(1 + ηm(m−1)); balanced: 6 + 0.45 + 0.1125 (§3.2). The optimum is lower."""
    options = ("--lr", "0.1", "--distance", "6", "--noise", "4", "--rounds", "9")
    done = theory("routing", "--speeds", "1,2", "--tasks", "2", *options)
    bounds = {row[0]: float(row[1]) for row in table(done.output, "routing")}
    assert bounds["uniform"] == pytest.approx(6 / (0.1 * 10) + 0.1 * 4 * (1 + 0.1 * 2 * 1))
    assert bounds["balanced"] == pytest.approx(6 + 0.45 + 0.1125)
    assert bounds["optimal"] < min(bounds["uniform"], bounds["balanced"])


def test_weights_of_two_clients_worked_by_hand() -> None:
    """τ = 1, ½: (1 + 2)·τ/2; ⌈τ/0.4⌉/2; ½/(1 − e^(−0.4/τ))."""
    done = theory("weights", "--spread", "50", "--clients", "2", "--period", "0.4")
    worked = [
        [0, 1, 1, 3 * 1 / 2, 3 / 2, 0.5 / (1 - math.exp(-0.4))],
        [1, 0.5, 1, 3 * 0.5 / 2, 2 / 2, 0.5 / (1 - math.exp(-0.8))],
    ]
    rows = [[float(cell) for cell in row] for row in table(done.output, "client ")]
    assert rows == [pytest.approx(row, rel=1e-5) for row in worked]
    assert "3 aggregations per unit of time" in done.output


def test_times_are_exact() -> None:
    """0.6/0.2 is 3 and not a little more, which floats would round up to 4."""
    done = theory("weights", "--times", "0.6,1/3,2x0.2", "--period", "0.2")
    assert [row[4] for row in table(done.output, "client ")] == ["0.75", "0.5", "0.25", "0.25"]


@pytest.mark.parametrize(
    ("arguments", "options"),
    [
        (("routing", "--speeds", "1,,2", "--tasks", "2"), {"--speeds"}),
        (("routing", "--speeds", "0x1", "--tasks", "2"), {"--speeds"}),
        (("routing", "--speeds", "1,1e10", "--tasks", "2"), {"--speeds"}),
        (("weights", "--times", "1", "--period", "0"), {"--period"}),
        (("weights", "--spread", "100", "--clients", "3"), {"--spread"}),
        (("weights", "--spread", "80"), {"--times", "--spread", "--clients"}),
        (("weights", "--times", "1", "--clients", "3"), {"--times", "--spread", "--clients"}),
    ],
)
def test_a_mistake_is_one_line(arguments: tuple[str, ...], options: set[str]) -> None:
    error = theory(*arguments).exception
    assert isinstance(error, UserError)
    (line,) = error.lines
    assert set(re.findall(r"--\w+", line)) == options


@pytest.mark.parametrize("value", ["nan", "1e400"])
def test_an_option_takes_finite_numbers(value: str) -> None:
    done = theory("routing", "--speeds", "1,2", "--tasks", "2", "--lr", value)
    assert done.exit_code == 2 and "'--lr'" in done.stderr and value in done.stderr


def test_theory_has_help_and_refuses_unknown_commands() -> None:
    assert theory("weights", "--help").exit_code == 0
    assert "theory weights" in theory("weights", "--help").output
    assert theory("weighs").exit_code == 2


def test_errata_of_one_id_say_how_to_choose() -> None:
    done = listed("errata", "X-14")
    assert done.exit_code == 0
    assert done.output.startswith("X-14  ")
    assert "strategies.aced.stamp=model" in done.output


def test_errata_without_an_id_are_all() -> None:
    done = listed("errata")
    assert [part.split()[0] for part in done.output.split("\n\n")] == [one.id for one in discrepancies()]
    assert max(map(len, done.output.splitlines())) <= 110


def test_an_erratum_that_does_not_exist() -> None:
    error = listed("errata", "X-111").exception
    assert isinstance(error, UserError)
    assert "X-111" in error.lines[0] and "'X-11'" in error.lines[0]


def test_least_time_and_energy_to_an_accuracy(tmp_path: Path) -> None:
    """One client, one task: T = 4·15·209/(100/8)² updates of ½ s, at 5 W."""
    figure = tmp_path / "front.svg"
    speeds = ("--speeds", "2", "--computation", "5", "--idle", "1")
    done = theory("cost", *speeds, "--limit", "1", "--figure", str(figure))
    assert done.exit_code == 0
    for row in table(done.output, "choice"):
        time, energy = row[-6], row[-5]
        assert float(time) == pytest.approx(4 * 15 * 209 / 12.5**2 / 2, rel=1e-5)
        assert float(energy) == pytest.approx(5 * float(time), rel=1e-5)
    assert figure.read_text().startswith("<?xml")


def test_least_time_and_energy_lie_on_a_front() -> None:
    given = ("--speeds", "0.5,2", "--computation", "1,8", "--idle", "2x0.1", "--server", "4")
    rows = table(theory("cost", *given, "--limit", "2").output, "choice")
    times, energies = ([float(row[place]) for row in rows] for place in (-6, -5))
    assert times[1:] == sorted(times[1:]) and energies[1:] == sorted(energies[1:], reverse=True)
    assert times[0] > times[1] and energies[0] > energies[-1]


@pytest.mark.parametrize(
    ("option", "value"), [("--computation", "1,2"), ("--accuracy", "700"), ("--figure", "front.png")]
)
def test_mistakes_in_costs(option: str, value: str) -> None:
    given = {"--speeds": "1", "--computation": "1", "--idle": "1"} | {option: value}
    done = theory("cost", *(text for pair in given.items() for text in pair))
    assert isinstance(done.exception, UserError) and option in str(done.exception)
