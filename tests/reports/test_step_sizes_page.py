"""The page on step sizes: its table of leaderboard scenarios, from the stored results."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

UNEQUAL = ("two-speed", "phones")  # clients differ in their mean speed
ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "explanation" / "step-sizes.md").read_text(encoding="utf-8")
NAMES = {"vanilla ASGD": "ASGD", "Rescaled ASGD": "Async FedAvg"}


def stored(workload: str, strategy: str) -> pd.DataFrame:
    """The runs of a strategy with clients of different mean speeds, by seed."""
    runs = pd.read_csv(ROOT / "benchmarks" / "leaderboard" / "1.0" / f"{workload}-held_out.csv")
    chosen = runs[runs["timing"].str.startswith(UNEQUAL) & (runs["strategy"] == strategy)]
    assert len(chosen) == 8
    return chosen.set_index("seed").sort_index()


@pytest.mark.parametrize("strategy", ["vanilla ASGD", "Rescaled ASGD", "ACE", "Ringleader ASGD", "AFA-CS"])
def test_scenarios_of_the_leaderboard(strategy: str) -> None:
    table = PAGE[PAGE.index("## Scenarios") :]
    (row,) = re.findall(rf"^\| {strategy} \| (.*) \|$", table, re.MULTILINE)
    cells = [tuple(map(float, re.findall(r"[+-]?[\d.]+", cell.replace("−", "-")))) for cell in row.split("|")]
    expected: list[tuple[float, ...]] = []
    for workload in ("features10", "features100", "text"):
        own, vanilla = stored(workload, NAMES.get(strategy, strategy)), stored(workload, "ASGD")
        for column in ("accuracy", "worst_client"):
            difference = 100 * (own[column] - vanilla[column])
            half = stats.t.ppf(0.975, 7) * difference.std() / np.sqrt(8)
            interval = (difference.mean() - half, difference.mean() + half)
            expected.append((100 * own[column].mean(), *(interval if half else ())))
    assert len(cells) == len(expected)
    for found, wanted in zip(cells, expected, strict=True):
        assert found[0] == pytest.approx(wanted[0], abs=0.051)
        assert found[1:] == pytest.approx(wanted[1:], abs=0.0051)


def test_rescaled_and_vanilla_steps_are_one_where_clients_are_equally_fast() -> None:
    """In every other scenario of that version, run for run."""
    folder = ROOT / "benchmarks" / "leaderboard" / "1.0"
    for path in (*folder.glob("*-held_out.csv"), *folder.glob("*-finals.csv")):
        runs = pd.read_csv(path)
        runs = runs[~runs["timing"].str.startswith(UNEQUAL)]
        key = ["partition", "timing", "ruleset", "seed"]
        vanilla, rescaled = (
            runs[runs["strategy"] == name].set_index(key)["accuracy"].sort_index()
            for name in ("ASGD", "Async FedAvg")
        )
        assert len(vanilla) and vanilla.equals(rescaled)
