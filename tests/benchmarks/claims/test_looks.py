"""Looks at growing numbers of seeds, and a campaign of claims under the whole procedure."""

from functools import cache

import numpy as np
import pytest
from scipy import special

from benchmarks.claims.claim import Better
from benchmarks.claims.verdicts.looks import SEEDS, Looks
from benchmarks.claims.verdicts.verdicts import verdicts
from fl_core.streams import stream

CAMPAIGNS, MARGIN = 8000, 0.5


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


# True effects in standard deviations, and the verdicts that would be false: 1 ahead, 2 behind, 3 equal.
NOTHING = (0.0, {1, 2})
AT_MARGIN = (MARGIN, {2, 3})
SMALL = (0.2, {2})
LARGE = (3.0, {2, 3})


@pytest.mark.parametrize(
    "truths",
    [
        [NOTHING] * 10,
        [AT_MARGIN] * 10,
        [NOTHING] * 4 + [AT_MARGIN] * 4 + [SMALL] * 2,
        [NOTHING] * 5 + [LARGE] * 5,  # what is soon decided leaves the others more of the 5 %
    ],
    ids=["no effects", "effects of the margin", "mixed", "half of them large"],
)
@pytest.mark.parametrize("shared", [0.0, 0.8], ids=["apart", "one baseline"])
@pytest.mark.parametrize("margin", [MARGIN, None], ids=["with margins", "without"])
def test_false_verdicts_in_five_per_cent_of_rows_at_most(
    truths: list[tuple[float, set[int]]], shared: float, margin: float | None
) -> None:
    """Looks, Holm within a row and equality, all at work: any false verdict counts against its whole row."""
    differences = campaigns(np.array([effect for effect, _ in truths]), shared)
    words = decided(differences, margin)
    false = [np.isin(words[:, test], list(wrong)) for test, (_, wrong) in enumerate(truths)]
    assert np.any(false, axis=0).mean() <= 0.05


def test_what_is_large_and_what_is_nothing_is_found() -> None:
    words = decided(campaigns(np.array([2.0, 0.0, -2.0]), 0.0), MARGIN)
    assert ((words == [1, 3, 2]).mean(0) > [0.99, 0.7, 0.99]).all()


def test_the_procedure_is_that_of_verdicts() -> None:
    """What is simulated here is what claims go through: the same words for 40 rows."""
    effects = np.array([0.0, 0.0, 0.3, MARGIN, 1.0])
    differences = campaigns(effects, 0.5)[:40]
    keys = {"place": "§1", "statement": "A is better.", "clock": "updates", "rates": "stated", "higher": True}
    entry = {"kind": "better", "scenario": "s", "metric": "m", "a": {}, "b": {}, "margin": MARGIN, **keys}
    claims = {
        f"T-row/{at}": Better.model_validate({"id": f"T-row/{at}", **entry}) for at in range(len(effects))
    }
    names = {0: "undecided", 1: "confirmed", 2: "refuted", 3: "equal"}
    for row, words in zip(differences, decided(differences, MARGIN), strict=True):
        values = {
            id_: {"a": dict(enumerate(found.tolist())), "b": dict.fromkeys(range(SEEDS[-1]), 0.0)}
            for id_, found in zip(claims, row, strict=True)
        }
        found = [one.word for one in verdicts(claims, values).values()]
        assert found == [names[word] for word in words.tolist()]


def campaigns(effects: np.ndarray, shared: float) -> np.ndarray:
    """Normal differences [campaigns, tests, seeds] of standard deviation 1 about their effects."""
    noise, common = normal(len(effects)), normal(1)
    return np.asarray(effects[:, None] + np.sqrt(1 - shared) * noise + np.sqrt(shared) * common)


@cache
def normal(tests: int) -> np.ndarray:
    """Standard normal numbers [campaigns, tests, seeds]."""
    return stream(7, "campaigns", tests).normal(size=(CAMPAIGNS, tests, SEEDS[-1]))


def decided(differences: np.ndarray, margin: float | None) -> np.ndarray:
    """The procedure once more, for many rows at a time: verdicts [rows, tests] on [rows, tests, seeds]."""
    words = np.zeros(differences.shape[:2], int)
    # p-values of two hypotheses: no difference, and one of the margin at least.
    least = np.full((1 if margin is None else 2, *words.shape), np.inf)
    ahead = np.zeros(words.shape, bool)
    before = 0
    for n in SEEDS:
        share, before = (n - before) / SEEDS[-1], n
        seen, still = differences[..., :n], words == 0
        mean, error = seen.mean(-1), seen.std(-1, ddof=1) / np.sqrt(n)
        p = [2 * special.stdtr(n - 1, -np.abs(mean) / error) / share]
        if margin is not None:
            p.append(2 * special.stdtr(n - 1, (np.abs(mean) - margin) / error) / share)
        ahead = np.where(still & (p[0] < least[0]), mean > 0, ahead)
        least = np.where(still, np.minimum(least, p), least)
        passed = rejected(least)
        words = np.where(still & passed[-1], 3, words) if margin is not None else words
        words = np.where(still & passed[0], np.where(ahead, 1, 2), words)
    return words


def rejected(p: np.ndarray) -> np.ndarray:
    """Which of p [hypotheses, rows, tests] fall, the 5 % shared by tests of which a hypothesis is left."""
    falls = np.zeros(p.shape, bool)
    while True:
        smallest = np.where(falls, np.inf, p).min((0, 2))
        passing = smallest <= 0.05 / np.maximum(1, (~falls).any(0).sum(-1))
        if not passing.any():
            return falls
        falls |= passing[:, None] & (p == smallest[:, None])
