"""Claims of kind theorem, as parameters of the tests that they name."""

from collections.abc import Callable
from inspect import getfile
from pathlib import Path
from typing import Any

import pytest

from benchmarks.claims.files import papers
from benchmarks.claims.kinds import Theorem
from reports.claims.verdicts import flat, judge

ROOT = Path(__file__).parents[2]
PAPERS = papers()
THEOREMS = [
    claim for paper in PAPERS.values() for claim in paper.claims.values() if isinstance(claim, Theorem)
]
RELATIVE_ERROR = 1e-6  # of a result on another machine


def theorem(function: Callable[..., Any], *, slow: bool = False) -> Callable[[Theorem], None]:
    """Return the test of the claims that name it: a function gives the recorded result and verdict.

    In the paper's file it is called test_ and the function's name. All claims but the first are slow.
    """
    name = f"tests/papers/test_{Path(getfile(function)).name}::test_{function.__name__}"
    mine = [claim for claim in THEOREMS if claim.test == name]

    def test(claim: Theorem) -> None:
        result = function(**claim.arguments)
        assert flat(result) == pytest.approx(flat(claim.found), rel=RELATIVE_ERROR, abs=1e-12)
        assert judge(claim.model_copy(update={"found": result}), {}).word == judge(claim, {}).word

    claims = [
        pytest.param(claim, id=claim.id, marks=pytest.mark.slow if slow or place else ())
        for place, claim in enumerate(mine)
    ]
    return pytest.mark.parametrize("claim", claims)(test)
