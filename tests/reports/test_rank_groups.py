"""Rank groups against boards whose truth is known: equal entries, true differences, and clones."""

import numpy as np
import pytest
from scipy.stats import norm, studentized_range

from reports.leaderboard import rank_groups as module
from reports.leaderboard.rank_groups import PopulationBoard, rank_groups

SHAPES = [(12, 3, 4), (10, 1, 4)]  # entries, scenarios, studies


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


def interaction(table: np.ndarray) -> np.ndarray:
    """Mean square of a two-way table without its row and column effects."""
    rows, columns = table.shape
    rest = table - table.mean(1, keepdims=True) - table.mean(0) + table.mean()
    return (rest**2).sum() / ((rows - 1) * (columns - 1))


@pytest.mark.parametrize(("scenarios", "gains"), [(1, 0.0), (3, 0.0), (3, 3.0)])
def test_the_error_is_that_of_an_analysis_of_variance(scenarios: int, gains: float) -> None:
    rng = np.random.default_rng(3)
    logs = rng.standard_normal((12, scenarios, 4))
    if scenarios > 1:
        logs += gains * rng.standard_normal((12, scenarios, 1)) - logs.mean(2, keepdims=True)
    within = np.mean([interaction(logs[:, at]) for at in range(scenarios)]) / (4 * scenarios)
    between = interaction(logs.mean(2)) / scenarios if scenarios > 1 else 0.0
    assert (between > within) == (gains == 3)
    assert PopulationBoard(logs).error == pytest.approx(max(within, between) ** 0.5)


@pytest.mark.parametrize("source", ["studies", "scenarios"])
def test_normal_boards_have_the_threshold_of_tukey(source: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The 95 % quantile of the studentized range; and the power of two normal means."""
    monkeypatch.setattr(module, "BOARDS", 4000)
    entries, count = 12, 40
    noise = 0.5 * np.random.default_rng(4).standard_normal((entries, count))
    logs = noise[:, None] if source == "studies" else np.repeat(noise[:, :, None], 2, axis=2)
    board = PopulationBoard(logs)
    quantile = studentized_range.ppf(0.95, entries, (entries - 1) * (count - 1))
    assert board.threshold == pytest.approx(quantile * board.error, rel=0.02)
    assert board.resolution == pytest.approx(np.exp(board.threshold))
    assert board.false_statements == pytest.approx(0.05, abs=0.015)
    power = norm.sf((board.threshold - np.log(1.5)) / (2**0.5 * board.error))
    assert 0.2 < power < 0.8 and board.power == pytest.approx(power, abs=0.03)


def test_entries_without_noise_are_separated_by_any_difference() -> None:
    board = PopulationBoard(np.array([0.0, 0, 1])[:, None, None] * np.ones((3, 1, 4)))
    assert (board.error, board.threshold, board.resolution, board.false_statements) == (0, 0, 1, 0)
    assert rank_groups(board.means, board.threshold) == [(1, 1), (1, 1), (2, 2)]
    noisy = np.zeros((6, 1, 4))
    noisy[:2] = [[[1, -1, 0, 0]], [[-1, 1, 0, 0]]]
    ranges = PopulationBoard(noisy).ranges("threshold")
    assert np.isfinite(ranges).all() and ranges.min() == 0 < ranges.max()  # some boards draw no noisy entry
