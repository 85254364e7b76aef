"""A run whose budget has a target ends soon after that is met, and is as without one until then (12)."""

from __future__ import annotations

from pathlib import Path

import pytest
from worlds import recorded, scenario

from fl_core.experiment import Experiment
from fl_core.loop.simulation import Simulation, simulate
from fl_core.loop.stopping import EXTRA_TIME_AFTER_TARGET
from fl_core.recorded_names import TIME, Reason, Status
from fl_core.recording import checkpoint
from fl_core.recording.recorder import Recorder
from fl_core.scenario import Scenario
from fl_core.strategies.asgd import ASGD

TIMES = [1, 1.5, 2.5]
TARGET = 0.5  # of a distance that falls from 1 to 0.28


def where(**budget: float) -> Scenario:
    return scenario(TIMES, evaluations=50, **{"time": 40, **budget})


@pytest.mark.parametrize("limits", [{}, {"updates": 60}])
def test_it_ends_a_tenth_of_its_time_after_the_first_evaluation_as_good(limits: dict[str, float]) -> None:
    strategy = ASGD(local_lr=0.05)
    whole = recorded(strategy, where(**limits)).record
    metric = where().problem.metric
    met = next(row[TIME] for row in whole.curve if row[metric] <= TARGET)
    ended = recorded(strategy, where(**limits, target=TARGET)).record
    assert (ended.status, ended.reason) == (Status.DONE, Reason.TARGET)
    *before, last = ended.curve
    assert before == whole.curve[: len(before)]
    assert met in [row[TIME] for row in ended.curve]
    assert met <= last[TIME] <= (1 + EXTRA_TIME_AFTER_TARGET) * met
    late = [time for time in whole.arrivals[TIME] if time <= (1 + EXTRA_TIME_AFTER_TARGET) * met]
    assert list(ended.arrivals[TIME]) == late


def test_a_target_that_is_not_met_changes_nothing() -> None:
    strategy = ASGD(local_lr=0.05)
    assert recorded(strategy, where(target=0.01)).record == recorded(strategy, where()).record


def test_in_its_tail_it_is_resumed_bit_for_bit(tmp_path: Path) -> None:
    experiment = Experiment(scenario=where(target=TARGET), strategy=ASGD(local_lr=0.05))
    plain = recorded(experiment.strategy, experiment.scenario)
    first = Recorder(Simulation(experiment))
    first.start()
    for event in simulate(first.simulation):
        first.see(event)
        if first.simulation.ends.at_deadline == Reason.TARGET:
            break
    checkpoint.save(first, tmp_path / "run")
    second = Recorder(Simulation(experiment))
    checkpoint.load(second, tmp_path / "run")
    for event in simulate(second.simulation):
        second.see(event)
    assert second.finish() == plain.record


def test_a_run_goes_on_until_several_evaluations_meet_the_target() -> None:
    strategy = ASGD(local_lr=0.05)
    metric = where().problem.metric
    values = [row[metric] for row in recorded(strategy, where()).record.curve]
    single = where(target=TARGET)
    problem = single.problem.model_copy(update={"target_marks": 3})
    ended = recorded(strategy, single.model_copy(update={"problem": problem})).record
    met = next(at for at in range(len(values)) if sum(values[at : at + 3]) / 3 <= TARGET)
    assert ended.reason == Reason.TARGET and len(ended.curve) > met + 2
    assert len(ended.curve) >= len(recorded(strategy, single).record.curve)
    assert (
        ended.curve[met + 2][TIME]
        <= ended.curve[-1][TIME]
        <= (1 + EXTRA_TIME_AFTER_TARGET) * ended.curve[met + 2][TIME]
    )
