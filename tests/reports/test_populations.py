"""The board's scores and page, from tables whose truth is known."""

from itertools import combinations
from math import inf
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from reports.leaderboard import populations as module
from reports.leaderboard import rank_groups
from reports.leaderboard.board_tables import FINALS, TRIALS, BoardTables
from reports.leaderboard.populations import (
    COPY,
    NEVER,
    PopulationScores,
    ScenarioGoal,
    _median_best,
    populations,
)
from reports.leaderboard.populations_page import write

BUDGET = 200.0
TRUE = {"FedAvg": 100.0, "FedBuff": 30.0, "ASGD": 30.0, "Clone of ASGD": 30.0, "ACE": 60.0, "Slow": 180.0}
MOTIONLESS, FLIPPED = "Motionless", "Flipped"
GOAL = ScenarioGoal(BUDGET, 0.5)
SCALES = ("features10-alike", "features10-alike-iid", "features10-fixed")


@pytest.fixture(autouse=True)
def _few_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "RESAMPLES", 200)
    monkeypatch.setattr(rank_groups, "BOARDS", 300)


def _curve(time: float) -> dict[str, str]:
    """Return a curve that rises evenly from 0.1 and is at 0.5 at the time; flat where that is endless."""
    times = np.arange(0, BUDGET + 1, 1.0)
    values = 0.1 + 0.4 * np.minimum(times / time, 2)
    return {"times": " ".join(map(str, times)), "values": " ".join(f"{value:.4f}" for value in values)}


def rows(
    name: str, studies: tuple[int, ...], scale: str, rng: np.random.Generator
) -> list[dict[str, object]]:
    made = []
    for study in studies:
        luck = 0.08 * rng.standard_normal()
        for seed in range(4):
            noise = np.exp(luck + 0.1 * rng.standard_normal())
            time = TRUE[name.removesuffix(COPY)] * noise if name.removesuffix(COPY) in TRUE else inf
            made.append(
                dict(zip(FINALS, (scale, name, study, 10 * study + seed, "done", "abc"), strict=False))
                | {
                    "time": time if time < BUDGET else inf,
                    "updates": 100,
                    "uploads": 10**6,
                    "downloads": 10**6,
                }
                | {"worst_client": 0.5, **_curve(time)}
            )
    return made


def tables(*more: str) -> BoardTables:
    rng = np.random.default_rng(1)
    finals = [
        row
        for scale in SCALES
        for name in (*TRUE, MOTIONLESS, FLIPPED, *more)
        for row in rows(name, (1, 2, 3, 4), scale, rng)
    ]
    for scale in SCALES:
        for name in ("FedBuff", "ASGD", "ACE"):
            finals += rows(f"{name}{COPY}", (5, 6, 7, 8), scale, rng)
    return BoardTables(pd.DataFrame(columns=TRIALS), pd.DataFrame(finals, columns=FINALS))


def scores(board: BoardTables, population: str = "alike") -> PopulationScores:
    scales = populations(board)[population]
    return PopulationScores(board, scales, dict.fromkeys(scales, GOAL))


def test_scores_are_ratios_of_median_times() -> None:
    own = scores(tables())
    assert own.scales == ["features10-alike", "features10-alike-iid"]
    for name, time in TRUE.items():
        if name != "Slow":
            assert own.sooner(name) == pytest.approx(TRUE["FedAvg"] / time, rel=0.2)
            low, high = own.interval(name)
            assert low <= own.sooner(name) <= high
    assert own.interval("FedAvg")[0] < 1 < own.interval("FedAvg")[1]  # its own luck is in it


def test_times_to_other_targets_are_read_off_the_curves() -> None:
    own = scores(tables())
    at_target = own.times_to(dict.fromkeys(own.scales, 0.5))
    half_way = own.times_to(dict.fromkeys(own.scales, 0.3))
    for name in TRUE:
        met = np.isfinite(own.times[name])
        assert (np.abs(at_target[name][met] - own.times[name][met]) <= 1.1).all()  # marks are 1 apart
        assert (np.abs(half_way[name][met] - own.times[name][met] / 2) <= 1.1).all()
    assert np.isinf(half_way[MOTIONLESS]).all()
    assert own.agreement(0.9) > 0.9 and not own.sooner_at_best[FLIPPED] > 0


def test_the_best_of_few_trials_is_that_of_all_their_choices() -> None:
    times = np.array([3.0, 1.0, inf, 2.0, 5.0, 4.0])
    for count in range(1, 7):
        best = sorted(min(chosen) for chosen in combinations(times, count))
        assert _median_best(times, count) in (best[(len(best) - 1) // 2], best[len(best) // 2])


def test_identical_entries_share_a_group_and_different_ones_do_not() -> None:
    for population in ("alike", "fixed"):
        own = scores(tables(), population)
        assert own.groups["FedBuff"] == own.groups["ASGD"] == own.groups["Clone of ASGD"] == 1
        assert own.groups["FedAvg"] > own.groups["ACE"] > 1
        assert own.groups[MOTIONLESS] == own.groups[FLIPPED] == NEVER
        assert {*own.order()[-2:]} == {MOTIONLESS, FLIPPED} and own.sooner(FLIPPED) == 0
        assert own.met(MOTIONLESS) == 0
        assert {*own.copies} == {"FedBuff", "ASGD", "ACE"} and not any(COPY in name for name in own.entries)


def test_an_entry_that_is_not_whole_is_left_out_and_changes_nothing() -> None:
    board = tables()
    part = pd.DataFrame(rows("FedBuff", (1, 2), SCALES[0], np.random.default_rng(2)), columns=FINALS)
    more = BoardTables(board.trials, pd.concat([board.finals, part.assign(strategy="Begun")]))
    assert scores(more).groups == scores(board).groups


def test_the_page_says_who_leads_where(tmp_path: Path) -> None:
    board = tables()
    written = write(board, dict.fromkeys(SCALES, GOAL), tmp_path)
    text = written.read_text()
    assert (tmp_path / "populations-heat.svg").is_file()
    lines = {line.split(" | ")[0].strip("| "): line for line in text.splitlines() if line.startswith("| ")}
    assert "never" in lines[MOTIONLESS] and "**1**" in text
    assert written.read_bytes() == write(board, dict.fromkeys(SCALES, GOAL), tmp_path).read_bytes()
    board.save(tmp_path / "tables")
    again = BoardTables.load(tmp_path / "tables")
    assert write(again, dict.fromkeys(SCALES, GOAL), tmp_path).read_text() == text
