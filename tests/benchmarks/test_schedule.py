"""The number of updates in a schedule, counted without data, against runs in full."""

from typing import Any

import pytest

from benchmarks.runs import estimate
from fl_core.experiment import Experiment
from fl_core.recording.recorder import run
from fl_core.scenario import Budget, Scenario


@pytest.mark.parametrize(
    ("strategy", "budget"),
    [
        ("asgd", {"time": 20}),
        ({"name": "fedbuff", "buffer": 3}, {"iterations": 20, "updates": 10_000}),
        ("fedavg", {"time": 20}),
        ("fedavg", {"updates": 150}),
    ],
)
def test_updates_are_those_of_a_run_in_full(
    strategy: Any, budget: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Counted to the end, and extrapolated after a few arrivals."""
    scenario = Scenario.model_validate(
        {
            "problem": {"name": "digits", "clients": 10},
            "timing": {"durations": "fx"},
            "budget": Budget(**budget),
            "evaluations": 1,
        }
    )
    experiment = Experiment.model_validate({"scenario": scenario, "strategy": strategy})
    received = run(experiment).curve[-1]["updates"]
    monkeypatch.setattr(estimate, "MIN_ARRIVALS", 1e6)
    assert estimate.updates(experiment) == received
    monkeypatch.setattr(estimate, "MIN_ARRIVALS", 50)
    assert estimate.updates(experiment) == pytest.approx(received, rel=0.3)
