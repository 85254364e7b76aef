"""The table in the terminal, as people see it."""

from __future__ import annotations

import pytest
from rich.console import Console
from synthetic import POOLED, Fake, curve, diverged, quickstart, records

from reports.records.records import RecordedSuite
from reports.terminal import tables


def printed(suite: RecordedSuite, width: int) -> str:
    console = Console(width=width, record=True, file=None, force_terminal=False)
    with console.capture() as captured:
        console.print(tables(suite))
    return captured.get()


SUITE = records(*quickstart(), pooled=POOLED)


@pytest.mark.parametrize("width", [72, 160])
def test_it_fits_and_cuts_no_number(width: int) -> None:
    text = printed(SUITE, width)
    assert max(len(line) for line in text.splitlines()) <= width
    assert "…" not in text
    for name in ("ACE", "FedBuff", "diverged)", "Seeds", "96.9"):
        assert name in text


@pytest.mark.parametrize("width", [60, 84, 120])
def test_no_word_is_broken(width: int) -> None:
    """Above the widths of tables that are narrower than the words of their scenario, too."""
    strategies = ("FedBuff (concurrency 10, buffer 5)", "Generalized AsyncSGD (concurrency 10)", "FedFix")
    fakes = [
        Fake("digits · exponential, spells", name, seed, curve=curve([0.1, 0.5, 0.9], [0, 10, 20]))
        for name in strategies
        for seed in range(3)
    ]
    text = printed(records(*fakes, pooled=POOLED), width)
    words = set(text.split())
    assert words >= {word for name in (*strategies, "Trained centrally") for word in name.split()}
    assert words >= {"exponential,", "spells"}
    assert max(len(line) for line in text.splitlines()) <= width


def test_what_it_says() -> None:
    three = [Fake(seed=seed, curve=curve([0.1, end], [0, 10])) for seed, end in enumerate((0.9, 0.8, 0.85))]
    lines = printed(records(*three), 140).splitlines()
    (row,) = [line for line in lines if line.startswith("FedBuff")]
    assert " ".join(row.split()) == "FedBuff 85.0 ± 5.0 10 (2 of 3) 15 (2 of 3) 1.00 2 3"


def test_who_misses_the_target_again_is_said() -> None:
    """Where most of the seeds that met it do: two of two, of which one is at the target again in the end."""
    wavering = [[0.1, 0.9, 0.8, 0.9], [0.1, 0.9, 0.9, 0.8], [0.1, 0.2, 0.3, 0.2]]
    fakes = [Fake(seed=seed, curve=curve(values, [0, 5, 10, 15])) for seed, values in enumerate(wavering)]
    steady = Fake(strategy="ACE", seed=1, curve=curve([0.1, 0.2, 0.9, 0.95], [0, 5, 10, 15]))
    once = Fake(strategy="ACE", curve=fakes[0].curve)
    note = "FedBuff: most seeds miss the target again later."
    assert note in printed(records(*fakes, once, steady), 140)
    assert "again" not in printed(records(steady), 140)


def test_names_are_not_markup() -> None:
    text = printed(records(Fake(strategy="[red]x[/red] [weights identical]", curve=curve([0.1], [0]))), 160)
    assert "[red]x[/red] [weights identical]" in text


def test_diverged_and_stalled_runs_are_counted() -> None:
    lost = diverged(Fake(curve=curve([0.1, 0.2, 0.3], [0, 5, 10])), after=2)
    assert "1 (1 diverged)" in printed(records(lost), 120)
    still = Fake(curve=curve([0.1, 0.2], [0, 5]), status="stalled")
    assert "1 (1 stalled)" in printed(records(still), 120)


@pytest.mark.parametrize("weighed", ["sp/loss", "fp/loss"])
def test_a_missing_surrogate_loss_is_explained(weighed: str) -> None:
    """Where one of the strategies has none, and where no strategy has one and the column is left out."""
    with_it = Fake(show=weighed, curve=curve([0.1, 0.2], [0, 5], **{weighed: [2.0, 1.0]}))
    without = Fake(show=weighed, strategy="ACE", curve=curve([0.1, 0.2], [0, 5]))
    for fakes, missing in (([with_it], False), ([with_it, without], True), ([without], True)):
        text = " ".join(printed(records(*fakes), 140).split())
        assert ("No surrogate loss where no formula says" in text) == (missing and weighed == "sp/loss")
