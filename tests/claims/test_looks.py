"""Looks at growing numbers of seeds."""

import pytest

from benchmarks.claims.claim import SEEDS
from reports.claims.verdicts import looks, share
from reports.inference import holm, holm_by_question
from tests.claims.test_verdicts import BETTER, UNSURE, pair


@pytest.mark.parametrize("seeds", [SEEDS, (5, 16, 32, 64), (8,)])
def test_all_looks_together_spend_the_whole_error(seeds: tuple[int, ...]) -> None:
    assert sum(share(seeds, at) for at in range(len(seeds))) == pytest.approx(1)


def test_shares_by_hand() -> None:
    assert [share(SEEDS, at) for at in range(4)] == [1 / 8, 1 / 8, 1 / 4, 1 / 2]


@pytest.mark.parametrize(
    ("n", "judged_at"),
    [(7, [7]), (8, [8]), (15, [8]), (16, [8, 16]), (40, [8, 16, 32]), (100, [8, 16, 32, 64])],
)
def test_a_look_waits_for_all_of_its_seeds(n: int, judged_at: list[int]) -> None:
    verdicts = [look.shown for look in looks(BETTER, pair((UNSURE * 13)[:n]))]
    assert [verdict.seeds for verdict in verdicts] == judged_at
    assert (verdicts[0].word == "not run") is (n < 8)


def test_holm_counts_a_question_until_all_of_its_hypotheses_fall() -> None:
    """Three questions, one with two hypotheses: p times 3, 3, 2 and 1; with one each it is Holm's."""
    questions = {b"x": {"side": 0.001, "equal": 0.012}, b"y": {"side": 0.01}, b"z": {"side": 0.04}}
    assert holm_by_question(questions) == {
        (b"x", "side"): pytest.approx(0.003),
        (b"y", "side"): pytest.approx(0.03),
        (b"x", "equal"): pytest.approx(0.03),  # 0.024, but never below an earlier one
        (b"z", "side"): pytest.approx(0.04),
    }
    p = [0.01, 0.04, 0.03, 0.005]
    alone = holm_by_question({bytes([at]): {"side": value} for at, value in enumerate(p)})
    assert [alone[bytes([at]), "side"] for at in range(4)] == pytest.approx(holm(p))
