"""Trials of processes that come, go and die: never too many, never lost, none done twice."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from small import RATE, Make

from fl_core.recorded_names import TrialState
from tuning.storage import Storage, open_storage
from tuning.trial_queue import ORIGIN, WORKER, Search


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    return open_storage(str(tmp_path / "tuning.journal"))


def tell_all(search: Search, trials: list) -> None:
    for trial in trials:
        search.tell(trial, TrialState.COMPLETE, trial.params["local_lr"])


def test_what_a_dead_process_left_is_taken_up_as_it_was(make: Make, storage: Storage) -> None:
    (study,) = make().studies
    with storage.locks.held("worker first"):
        left = Search(storage, study, "first").take(4)
    origins = [trial.user_attrs[ORIGIN] for trial in left]
    second = Search(storage, study, "second")
    with storage.locks.held("worker second"):
        taken = second.take(study.trials)
        assert [(trial.number, trial.params) for trial in taken] == [(one.number, one.params) for one in left]
        assert [trial.user_attrs[ORIGIN] for trial in taken] == origins == ["paper"] * 2 + ["sampler"] * 2
        assert {trial.user_attrs[WORKER] for trial in taken} == {"second"}
        tell_all(second, [*taken, *second.take(study.trials)])
        assert second.take(1) == []
    assert len(second.ended()) == len(second.trials()) == study.trials


def test_who_dies_while_asking_leaves_what_was_queued(make: Make, storage: Storage) -> None:
    (study,) = make().studies
    dead = Search(storage, study, "dead")
    asked = [dead.study.ask() for _ in [*study.first, "a fresh one"]]  # of no name and no parameter yet
    second = Search(storage, study, "second")
    with storage.locks.held("worker second"):
        taken = second.take(study.trials)
        tell_all(second, taken)
    assert [trial.number for trial in taken][: len(asked)] == [trial.number for trial in asked]
    assert len(second.ended()) == len(second.trials()) == study.trials
    given = [one.params for one in second.ended() if one.user_attrs[ORIGIN] == "paper"]
    assert given == [dict(values) for _, values in study.first]
    assert len({str(one.params) for one in second.ended()}) == study.trials  # nothing is drawn twice


def test_the_living_keep_their_trials(make: Make, storage: Storage) -> None:
    (study,) = make().studies
    first, second = Search(storage, study, "first"), Search(storage, study, "second")
    with storage.locks.held("worker first"), storage.locks.held("worker second"):
        mine = first.take(3)
        others = second.take(10)
        assert len(others) == 3 and not {one.number for one in mine} & {one.number for one in others}
        tell_all(first, mine)
    assert {one.user_attrs[WORKER] for one in first.ended()} == {"first"}


def test_who_was_thought_dead_is_not_heard(make: Make, storage: Storage) -> None:
    (study,) = make().studies
    first, second = Search(storage, study, "first"), Search(storage, study, "second")
    (trial,) = first.take(1)  # without holding the lock of its name, as if the connection had broken
    with storage.locks.held("worker second"):
        while trials := second.take(study.trials):
            tell_all(second, trials)
    values = [one.value for one in second.ended()]
    first.tell(trial, TrialState.COMPLETE, 1.0)
    assert [one.value for one in second.ended()] == values and len(values) == study.trials


def test_a_trial_outlives_any_number_of_processes(make: Make, storage: Storage) -> None:
    """On machines that are taken away again and again, none is given up."""
    (study,) = make(tuning={"trials": 1, "space": RATE}).studies
    for victim in range(6):
        (trial,) = Search(storage, study, f"victim {victim}").take(1)
        assert trial.params == {"local_lr": 0.01}
    survivor = Search(storage, study, "survivor")
    with storage.locks.held("worker survivor"):
        tell_all(survivor, survivor.take(1))
    (complete,) = survivor.ended()
    assert complete.state.name == "COMPLETE" and complete.params == {"local_lr": 0.01}
    assert len(survivor.trials()) == 1


@settings(max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_any_order_of_taking_telling_and_dying_ends_with_what_was_planned(
    make: Make, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    storage = open_storage(str(tmp_path_factory.mktemp("any") / "tuning.journal"))
    (study,) = make(tuning={"trials": 5, "space": RATE}).studies
    for process in range(data.draw(st.integers(0, 2))):
        search = Search(storage, study, f"process {process}")
        with storage.locks.held(f"worker process {process}"):
            trials = search.take(data.draw(st.integers(1, 4)))
            tell_all(search, trials[: data.draw(st.integers(0, 4))])  # the rest dies with it
            assert len(search.counted()) <= study.trials
    last = Search(storage, study, "last")
    with storage.locks.held("worker last"):
        while trials := last.take(2):
            tell_all(last, trials)
    complete = [one for one in last.trials() if one.state.name == "COMPLETE"]
    assert len(complete) == len(last.trials()) == study.trials
    assert len({str(one.params) for one in complete}) == study.trials
    assert {"local_lr": 0.01} in [one.params for one in complete]  # the suite's own, whoever died over it


@pytest.mark.parametrize("batch", [1, 3])
def test_an_interrupted_history_asks_for_the_same(make: Make, tmp_path: Path, batch: int) -> None:
    """Each process ends at another point: some of its trials are told, others not."""
    (study,) = make(tuning={"trials": 14, "space": RATE}).studies
    whole = Search(open_storage(str(tmp_path / "whole")), study, "undisturbed")
    while trials := whole.take(batch):
        tell_all(whole, trials)
    storage = open_storage(str(tmp_path / "interrupted"))
    for process in range(100):
        search = Search(storage, study, f"process {process}")
        with storage.locks.held(f"worker process {process}"):
            if not (trials := search.take(batch)):
                break
            tell_all(search, trials[: process % (batch + 1)])
            if process % 2:
                tell_all(search, trials[process % (batch + 1) :])
    wanted = [(one.params, one.user_attrs[ORIGIN], one.value) for one in whole.trials()]
    assert [(one.params, one.user_attrs[ORIGIN], one.value) for one in search.trials()] == wanted


def test_who_dies_while_drawing_changes_nothing(make: Make, storage: Storage, tmp_path: Path) -> None:
    (study,) = make(tuning={"trials": 14, "space": RATE}).studies
    whole = Search(open_storage(str(tmp_path / "whole")), study, "undisturbed")
    while trials := whole.take(1):
        tell_all(whole, trials)
    for process in range(study.trials):
        Search(storage, study, "dead").study.ask()  # a trial of no name, and of no parameters unless queued
        search = Search(storage, study, f"process {process}")
        with storage.locks.held(f"worker process {process}"):
            tell_all(search, search.take(1))
    assert [one.params for one in search.trials()] == [one.params for one in whole.trials()]


@pytest.mark.parametrize(
    "changed",
    [
        {"tuning": {"trials": 6, "seeds": 3, "space": {"local_lr": [0.1, 0.2]}}},
        {"budget": {"updates": 21}},
        {"tuning": {"trials": 6, "seeds": 2, "batch": 3, "space": RATE, "objective": "auc"}},
    ],
)
def test_an_edited_plan_is_another_study(make: Make, storage: Storage, changed: dict) -> None:
    (study,) = make().studies
    search = Search(storage, study, "one")
    tell_all(search, search.take(4))
    (other,) = make(**changed).studies
    assert other.identity != study.identity
    assert Search(storage, other, "other").ended() == []
    again = Search(storage, make().studies[0], "one")  # and back
    assert len(again.ended()) == 4


def test_more_trials_belong_to_the_same_study(make: Make) -> None:
    (few,), (many,) = (
        make(tuning={"trials": trials, "seeds": 2, "space": RATE}).studies for trials in (6, 12)
    )
    assert few.identity == many.identity
