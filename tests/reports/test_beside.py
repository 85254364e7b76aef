"""`asyncfl replay SUITE --beside SUITE`: statistics of real time beside those of virtual time."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from typing import Any

import pytest
from synthetic import Fake, curve, records

from benchmarks.commands import report
from benchmarks.commands.replay import COLUMNS

Typed = Callable[..., subprocess.CompletedProcess[str]]


def run(
    seed: int, last: float, accuracy: float, client: list[int], busy: float | None = None, **more: Any
) -> Fake:
    totals = {"time_to_target": last / 2, "staleness/mean": last / 10} | more
    return Fake(
        seed=seed,
        curve=curve([0.1, accuracy], [0, 4]) | {"time": [0.0, last]},
        client=client,
        totals=totals if busy is None else totals | {"server_busy": busy},
    )


VIRTUAL = [
    run(0, 10.0, 0.8, [0, 0, 1, 1]),
    run(1, 20.0, 0.9, [0, 1, 0, 1]),
    run(2, 99.0, 0.1, [0, 0, 0, 0]),  # did not run in real time
]
REAL = [
    run(0, 11.0, 0.82, [0, 0, 0, 1], 0.25),
    run(1, 26.0, 0.88, [0, 1, 1, 1, 1, 2, 2, 2], 0.75),
    run(3, 1.0, 0.1, [0], 0.5),  # … nor this one in virtual time
]


@pytest.fixture
def beside(typed: Typed, monkeypatch: pytest.MonkeyPatch) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Types the command on two recorded suites."""

    def _beside(real: list[Fake], virtual: list[Fake]) -> subprocess.CompletedProcess[str]:
        suites = {"real": records(*real), "virtual": records(*virtual)}
        monkeypatch.setattr(report, "load", lambda store, name: suites[name])
        return typed("replay", "real", "--beside", "virtual")

    return _beside


def cells(said: str) -> list[list[str]]:
    """The rows below the header, by column."""
    header, *rows = said.splitlines()
    starts = [header.index(column) for column in COLUMNS]
    return [[row[a:b].strip() for a, b in zip(starts, [*starts[1:], None], strict=True)] for row in rows]


def test_ratios_and_means_over_the_seeds_that_ran_in_both(beside: Callable[..., Any]) -> None:
    [row] = cells(beside(REAL, VIRTUAL).stdout)
    assert row[:3] == ["digits · i.i.d. · F80", "FedBuff", "2"]
    assert row[3:5] == ["1.2 ± 0.14"] * 2  # of 1.1 and 1.3
    assert row[5:7] == ["1.5 ± 0.71", "1.85 ± 1.1"]
    # Seed 0: from 1/2, 1/2 to 3/4, 1/4. Seed 1: from 1/2, 1/2 to 1/8, 4/8 and 3/8 of a client that was idle.
    assert row[7] == "0.312 ± 0.088"
    assert row[8:] == ["0.85 ± 0.071", "0.85 ± 0.042", "0.5 ± 0.35"]


def test_a_target_that_was_not_reached_has_no_ratio(beside: Callable[..., Any]) -> None:
    far = run(0, 10.0, 0.8, [0, 1])
    del far.totals["time_to_target"]  # type: ignore[attr-defined]
    [row] = cells(beside(REAL[:1], [far]).stdout)
    assert row[3:5] == ["1.1", ""]


def test_no_time_has_no_ratio(beside: Callable[..., Any]) -> None:
    """Where the first model meets the target, or the run ends with it."""
    met = run(0, 10.0, 0.8, [0, 1], 0.5, time_to_target=0.0)
    [row] = cells(beside([met], [met]).stdout)
    assert row[3:5] == ["1", ""]
    ended = run(0, 0.0, 0.8, [0, 1], 0.5)
    [row] = cells(beside([ended], [ended]).stdout)
    assert row[3:5] == ["", ""]


def test_suites_that_cannot_be_compared_are_an_error_in_a_line(beside: Callable[..., Any]) -> None:
    assert beside(VIRTUAL, REAL).stderr == (
        "Error: real ran in virtual time: name a suite that asyncfl live recorded\n"
    )
    assert beside(REAL[2:], VIRTUAL).stderr == (
        "Error: real and virtual have no run of the same scenario, strategy and seed\n"
    )
