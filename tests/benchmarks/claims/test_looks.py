"""Looks at growing numbers of seeds."""

import pytest

from benchmarks.claims.verdicts.looks import SEEDS, Looks


@pytest.mark.parametrize("seeds", [SEEDS, (5, 16, 32, 64), (8,)])
def test_all_looks_together_spend_five_per_cent(seeds: tuple[int, ...]) -> None:
    plan = Looks(seeds)
    assert sum(1 - plan.level(at) for at in range(len(seeds))) == pytest.approx(0.05)


def test_shares_by_hand() -> None:
    assert [Looks().share(at) for at in range(4)] == [1 / 8, 1 / 8, 1 / 4, 1 / 2]
    assert Looks().p(0.01, 1) == pytest.approx(0.08)
    assert Looks().p(0.5, 0) == 1


def test_a_look_waits_for_all_of_its_seeds() -> None:
    assert [len(Looks().reached(n)) for n in (7, 8, 15, 16, 40, 64, 100)] == [0, 1, 1, 2, 3, 4, 4]
