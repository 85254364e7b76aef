"""Findings on a strategy: one conclusion, from the rank groups, with what it is behind first."""

import json
from pathlib import Path

import numpy as np
import pytest
from test_scores import FLIPPED, GOAL, SCALES, tables, trial_rows

from reports.leaderboard import rank_groups
from reports.leaderboard import scores as module
from reports.leaderboard.board_tables import BoardTables
from reports.leaderboard.findings import AHEAD, BEHIND, LEVEL, MANIFEST, PAGE, RANKED, Findings, write
from reports.leaderboard.scores import PopulationScores, board_scores


@pytest.fixture(scope="module")
def scores() -> dict[str, PopulationScores]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "RESAMPLES", 100)
        patch.setattr(rank_groups, "BOARDS", 200)
        board = BoardTables(trial_rows(), tables().finals)
        own = board_scores(board, dict.fromkeys(SCALES, GOAL))
        assert all(each.groups for each in own.values())  # computed under the patch
        return own


@pytest.mark.parametrize("strategy", ["ACE", "FedBuff", "FedAvg", "Slow", FLIPPED])
def test_verdicts_are_those_of_the_rank_groups(scores: dict[str, PopulationScores], strategy: str) -> None:
    findings = Findings(strategy, scores)
    for population, own in scores.items():
        verdicts = findings.verdicts(population)
        others = [name for names in verdicts.values() for name in names]
        assert sorted(others) == sorted({*own.ranked} - {strategy} if strategy in own.ranked else ())
        means = {entry: np.log(np.minimum(own.times[entry], GOAL.budget)).mean() for entry in own.entries}
        for name in others:
            ratio = np.exp(means[name] - means[strategy])
            verdict = AHEAD if ratio > own.resolution else BEHIND if 1 / ratio > own.resolution else LEVEL
            assert name in verdicts[verdict]


def test_a_strategy_that_never_meets_the_target_is_not_ranked(scores: dict[str, PopulationScores]) -> None:
    findings = Findings(FLIPPED, scores)
    assert all("not ranked (0%" in line for line in findings.conclusion().splitlines()[: len(scores)])
    assert {point: met for met, point in findings.checklist()}[RANKED] is False
    assert FLIPPED in Findings("ACE", scores).conclusion()


def test_what_it_is_behind_comes_first(scores: dict[str, PopulationScores]) -> None:
    first = Findings("ACE", scores).conclusion().splitlines()[0]
    assert first.index("behind") < first.index("ahead of") and "FedBuff" in first.split("ahead of")[0]
    assert "behind" not in Findings("FedBuff", scores).conclusion()


@pytest.mark.usefixtures("undrawn")
def test_the_page_draws_no_other_conclusion(scores: dict[str, PopulationScores], tmp_path: Path) -> None:
    findings = Findings("ACE", scores)
    text = write(findings, {"conclusion": findings.conclusion()}, tmp_path).read_text()
    assert (tmp_path / PAGE).read_text() == text and "orrelation" not in text
    assert all(f"- {line}" in text for line in findings.conclusion().splitlines())
    assert json.loads((tmp_path / MANIFEST).read_text())["conclusion"] == findings.conclusion()
    assert {path.stem for path in tmp_path.glob("*.svg")} == {*SCALES}
