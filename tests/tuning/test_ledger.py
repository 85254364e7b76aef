"""Trials of processes that come, go and die: never too many, never lost, none done twice."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from small import RATE, Make

from benchmarks.errors import UserError
from tuning.ledger import LOST, ORIGIN, Ledger, TrialResult
from tuning.storage import Storage, open_storage


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    return open_storage(str(tmp_path / "tuning.journal"))


def tell_all(ledger: Ledger, trials: list) -> None:
    for trial in trials:
        assert ledger.tell(trial, "complete", trial.params["local_lr"], TrialResult((0.0, 0.0)), None)


def test_two_processes_share_what_is_planned(make: Make, storage: Storage) -> None:
    (study,) = make().studies
    one, other = Ledger(storage, study, "one"), Ledger(storage, study, "other")
    with storage.locks.held("worker one"), storage.locks.held("worker other"):
        taken = [one.take(4), other.take(4)]
        assert [len(trials) for trials in taken] == [4, 2] and one.take(4) == []
        for ledger, trials in zip((one, other), taken, strict=True):
            tell_all(ledger, trials)
    assert len(one.ended()) == study.trials == len(one.trials())
    assert len({str(trial.params) for trial in one.trials()}) == study.trials


def test_what_a_dead_process_left_is_taken_up_with_its_parameters(make: Make, storage: Storage) -> None:
    (study,) = make().studies
    with storage.locks.held("worker first"):
        left = Ledger(storage, study, "first").take(4)
    second = Ledger(storage, study, "second")
    with storage.locks.held("worker second"):
        taken = second.take(study.trials)
        tell_all(second, taken)
        assert second.take(1) == []
    lost = [one for one in second.trials() if LOST in one.user_attrs]
    assert sorted(one.number for one in lost) == [trial.number for trial in left]
    again = [one.params for one in second.ended() if one.user_attrs[ORIGIN] == "retry"]
    assert again == [trial.params for trial in left]
    assert len(second.ended()) == study.trials


def test_who_dies_while_asking_leaves_what_was_queued(make: Make, storage: Storage) -> None:
    (study,) = make().studies
    dead = Ledger(storage, study, "dead")
    asked = [dead.study.ask() for _ in [*study.first, "a fresh one"]]  # of no name and no parameter yet
    second = Ledger(storage, study, "second")
    with storage.locks.held("worker second"):
        taken = second.take(study.trials)
        tell_all(second, taken)
    lost = [one for one in second.trials() if LOST in one.user_attrs]
    assert [one.number for one in lost] == [one.number for one in asked]
    assert not any(one.params for one in lost)
    assert len(second.ended()) == study.trials and len(second.trials()) == study.trials + len(lost)
    again = [one.params for one in second.ended() if one.user_attrs[ORIGIN] == "retry"]
    assert again == [dict(values) for _, values in study.first]


def test_the_living_keep_their_trials(make: Make, storage: Storage) -> None:
    (study,) = make().studies
    first, second = Ledger(storage, study, "first"), Ledger(storage, study, "second")
    with storage.locks.held("worker first"), storage.locks.held("worker second"):
        mine = first.take(3)
        assert len(second.take(10)) == 3
        tell_all(first, mine)
    assert not [one for one in first.trials() if LOST in one.user_attrs]


def test_who_was_thought_dead_is_not_heard(make: Make, storage: Storage) -> None:
    (study,) = make().studies
    first, second = Ledger(storage, study, "first"), Ledger(storage, study, "second")
    (trial,) = first.take(1)  # without holding the lock of its name, as if the connection had broken
    with storage.locks.held("worker second"):
        tell_all(second, second.take(study.trials))
    assert not first.tell(trial, "complete", 1.0, TrialResult(), None)
    assert len(second.ended()) == study.trials


def test_a_trial_outlives_any_number_of_processes(make: Make, storage: Storage) -> None:
    """On machines that are taken away again and again, none is given up."""
    (study,) = make(tuning={"trials": 1, "space": RATE}).studies
    for victim in range(6):
        (trial,) = Ledger(storage, study, f"victim {victim}").take(1)
        assert trial.params == {"local_lr": 0.01}
    survivor = Ledger(storage, study, "survivor")
    with storage.locks.held("worker survivor"):
        tell_all(survivor, survivor.take(1))
    (complete,) = survivor.ended()
    assert complete.state.name == "COMPLETE" and complete.params == {"local_lr": 0.01}
    assert len(survivor.trials()) == 1 + 6


@settings(max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_any_order_of_taking_telling_and_dying_ends_with_what_was_planned(
    make: Make, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    storage = open_storage(str(tmp_path_factory.mktemp("any") / "tuning.journal"))
    (study,) = make(tuning={"trials": 5, "space": RATE}).studies
    for process in range(data.draw(st.integers(0, 2))):
        ledger = Ledger(storage, study, f"process {process}")
        with storage.locks.held(f"worker process {process}"):
            trials = ledger.take(data.draw(st.integers(1, 4)))
            tell_all(ledger, trials[: data.draw(st.integers(0, 4))])  # the rest dies with it
            assert len(ledger.counted()) <= study.trials
    last = Ledger(storage, study, "last")
    with storage.locks.held("worker last"):
        while trials := last.take(2):
            tell_all(last, trials)
    complete = [one for one in last.trials() if one.state.name == "COMPLETE"]
    assert len(complete) == study.trials and all(one.state.is_finished() for one in last.trials())
    assert len({str(one.params) for one in complete}) == study.trials
    assert {"local_lr": 0.01} in [one.params for one in complete]  # the suite's own, whoever died over it


def test_the_same_history_asks_for_the_same(make: Make, tmp_path: Path) -> None:
    (study,) = make(tuning={"trials": 14, "space": RATE}).studies
    asked = []
    for name in ("a", "b"):
        ledger = Ledger(open_storage(str(tmp_path / name)), study, name)
        while trials := ledger.take(3):
            tell_all(ledger, trials)
        asked.append([one.params for one in ledger.trials()])
    assert asked[0] == asked[1]


@pytest.mark.parametrize(
    ("changed", "what"),
    [
        ({"tuning": {"trials": 6, "seeds": 3, "space": {"local_lr": [0.1, 0.2]}}}, "space and another seeds"),
        ({"budget": {"updates": 21}}, "scenario or strategy"),
    ],
)
def test_a_study_made_with_something_else_is_left_alone(
    make: Make, storage: Storage, changed: dict, what: str
) -> None:
    (study,) = make().studies
    before = len(Ledger(storage, study, "one").trials())
    (other,) = make(**changed).studies
    with pytest.raises(UserError, match=f"was made with another {what}: go on with that"):
        Ledger(storage, other, "other")
    assert len(Ledger(storage, study, "one").trials()) == before
