"""Claims of kind theorem, as parameters of the tests that they name."""

from collections.abc import Callable
from inspect import getfile
from pathlib import Path
from typing import Any

import pytest

from benchmarks.claims.comparisons import Theorem
from benchmarks.claims.files import papers
from reports.claims.rules import flat
from reports.claims.verdicts import judge

ROOT = Path(__file__).parents[2]
PAPERS = papers()
THEOREMS = [
    claim for paper in PAPERS.values() for claim in paper.claims.values() if isinstance(claim, Theorem)
]
RELATIVE_ERROR = 1e-6  # of a result on another machine


def theorem(test: Callable[[Theorem], None]) -> Any:
    """Parametrize a test by the claims that name it; all but the first are slow."""
    name = f"{Path(getfile(test)).relative_to(ROOT).as_posix()}::{test.__name__}"
    mine = [claim for claim in THEOREMS if claim.test == name]
    return pytest.mark.parametrize(
        "claim",
        [
            pytest.param(claim, id=claim.id, marks=pytest.mark.slow if place else ())
            for place, claim in enumerate(mine)
        ],
    )(test)


def assert_found(claim: Theorem, result: Any) -> None:
    """Check that a result is the recorded one, and that the claim has the same verdict by it."""
    assert flat(result) == pytest.approx(flat(claim.found), rel=RELATIVE_ERROR, abs=1e-12)
    assert judge(claim.model_copy(update={"found": result}), {}).word == judge(claim, {}).word
