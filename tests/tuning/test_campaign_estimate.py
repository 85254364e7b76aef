"""The estimated time of a campaign."""

from itertools import count
from typing import Any

import pytest
from small import Make

from fl_core.problems.quadratic import QuadraticWorld
from tuning import estimate


def test_nothing_done_yet_does_not_divide_by_zero(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """The server's clock ticks nine times before a client answers; a second passes at every look at ours."""
    ticks = count()
    monkeypatch.setattr("benchmarks.runs.estimate.perf_counter", lambda: float(next(ticks)))
    assert estimate.core_seconds(make(strategies=[{"name": "fedfix", "period": 0.1}]), patience=0.0) > 0


def test_only_what_a_trial_does_takes_time(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten evaluations of a second on test data for each seed of a trial, and none on training data."""
    now = 0.0

    def taking(seconds: float, method: Any) -> Any:
        def timed(*arguments: Any) -> Any:
            nonlocal now
            now += seconds
            return method(*arguments)

        return timed

    monkeypatch.setattr("benchmarks.runs.estimate.perf_counter", lambda: now)
    monkeypatch.setattr(QuadraticWorld, "test", taking(1.0, QuadraticWorld.test))
    monkeypatch.setattr(QuadraticWorld, "losses", taking(100.0, QuadraticWorld.losses))
    tuning = {"trials": 8, "seeds": 2, "batch": 4}
    campaign = make(strategies=["asgd"], evaluations=10, tuning=tuning)
    (study,) = campaign.studies
    wanted = 8 * 2 * (study.tried_on.evaluations + 1)
    assert estimate.core_seconds(campaign, patience=1e9) == pytest.approx(wanted)
    assert estimate.core_seconds(campaign, patience=20.0) == pytest.approx(wanted, rel=0.2)
