"""Tables of the terminal: they fit it, and nothing of them is lost."""

import re
import sys

import pytest

from benchmarks.terminal_output import print_table

HEADER = ("strategy", "law", "empty", "loss")
ROWS = [("FedBuff (concurrency 10)", "[exponential]", "", "0.5"), ("ACE", "F80", "", "12")]


@pytest.mark.parametrize("width", [80, 40])
def test_a_table_fits_the_terminal(
    width: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", str(width))
    print_table(HEADER, ROWS)
    lines = re.sub(r"\x1b\[[\d;]*m", "", capsys.readouterr().out).splitlines()
    assert max(map(len, lines)) <= width
    words = {"strategy", "law", "loss", *" ".join(" ".join(row) for row in ROWS).split()}
    assert {word for line in lines for word in line.split() if not word.startswith("─")} == words


def test_a_pipe_gets_a_line_a_row(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(HEADER, ROWS)
    assert capsys.readouterr().out.splitlines() == [
        "FedBuff (concurrency 10)  [exponential]  0.5",
        "ACE                       F80            12",
    ]
