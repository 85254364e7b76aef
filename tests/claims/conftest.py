"""The shipped claims and their readings, made once for all tests."""

import pytest

from benchmarks.claims.files import Paper
from reports.claims.main_results import Outcome, outcomes
from reports.claims.readings import Reading, all_of
from tests.papers.theorems import PAPERS


@pytest.fixture(scope="session")
def all_papers() -> dict[str, Paper]:
    """Shipped papers by name."""
    return PAPERS


@pytest.fixture(scope="session")
def all_readings(all_papers: dict[str, Paper]) -> list[Reading]:
    """Readings of all shipped papers."""
    return all_of(all_papers.values())


@pytest.fixture(scope="session")
def main_results(all_readings: list[Reading]) -> list[Outcome]:
    """Main results of all shipped papers."""
    return outcomes(all_readings)
