"""Rank groups against boards whose truth is known: equal entries, true differences, and clones."""

import numpy as np
import pytest

from reports.leaderboard import rank_groups as module
from reports.leaderboard.rank_groups import PopulationBoard, rank_groups

SHAPES = [(31, 1, 4), (31, 3, 4), (10, 1, 4)]  # entries, scenarios, studies


@pytest.fixture(autouse=True)
def _few_boards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BOARDS", 400)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_boards_of_equals_are_one_group(shape: tuple[int, int, int]) -> None:
    rng = np.random.default_rng(1)
    wrong = 0
    for _ in range(300):
        logs = 0.2 * rng.standard_normal(shape)
        logs += 0.3 * rng.standard_normal((1, *shape[1:]))  # common to all entries
        if shape[1] > 1:
            logs += 0.1 * rng.standard_normal((*shape[:2], 1))  # what an entry gains in one scenario
        board = PopulationBoard(logs)
        wrong += {*rank_groups(board.means, board.threshold)} != {(1, 1)}
    assert wrong <= 26  # 15 of 300 are expected; more than 26 have a probability of 0.3 %


def test_true_differences_are_found() -> None:
    rng = np.random.default_rng(2)
    logs = np.log([1.0, 1, 1, 3, 3, 9])[:, None, None] + 0.1 * rng.standard_normal((6, 1, 4))
    board = PopulationBoard(logs)
    assert rank_groups(board.means, board.threshold) == [(at, at) for at in (1, 1, 1, 2, 2, 3)]
    assert board.power == 1 and board.false_statements <= 0.1


def test_the_error_is_that_of_an_analysis_of_variance() -> None:
    rng = np.random.default_rng(3)
    logs = rng.standard_normal((12, 1, 4))
    y = logs[:, 0, :]
    rest = y - y.mean(1, keepdims=True) - y.mean(0) + y.mean()
    assert PopulationBoard(logs).error == pytest.approx((((rest**2).sum() / (11 * 3)) / 4) ** 0.5)


def test_a_clone_and_another_entry_change_no_group_at_a_given_threshold() -> None:
    means = [0.0, 0.1, 1.0, 1.05, 3.0]
    groups = rank_groups(means, 0.4)
    assert groups == [(at, at) for at in (1, 1, 2, 2, 3)]
    for clone in means:
        assert rank_groups([*means, clone], 0.4)[:-1] == groups
