"""Runs of a user's own strategy are computed again once its file was edited, and no others are."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from mlflow import MlflowClient
from recorded import runs, write_suite
from test_evaluate_key import record

from benchmarks.errors import UserError
from benchmarks.mlflow_store.delivery import Delivery
from benchmarks.mlflow_store.outbox import Outbox
from benchmarks.mlflow_store.store import Store
from benchmarks.runs.session import Session
from benchmarks.suite.suite import load
from fl_core.loop.simulation import Simulation
from fl_core.recording import checkpoint
from fl_core.recording.recorder import Recorder
from fl_core.user_code import named
from reports.gate.baseline import take

MODULE = '''
from fl_core.strategies.asgd import ASGD

class Mine(ASGD):
    """A strategy of a user's own."""

    title = "Mine"

    def receive(self, server, update):
        server.step({share} * update.delta)
'''
NAME = "edited_in_a_test"


@pytest.fixture
def suite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A suite with a strategy of the user's own, and one of ours."""
    monkeypatch.syspath_prepend(str(tmp_path))
    write(tmp_path, 1.0)
    yield write_suite(tmp_path, f'"{NAME}:Mine", asgd')
    sys.modules.pop(NAME, None)


def write(folder: Path, share: float) -> None:
    """The strategy's file, as a new process will import it."""
    (folder / f"{NAME}.py").write_text(MODULE.format(share=share))
    sys.modules.pop(NAME, None)


def left(suite: Path, store: Store) -> list[str]:
    """The strategies of the runs that a session would compute."""
    delivery = Delivery(store, Outbox(store.outbox))
    session = Session(load(str(suite)), store, baselines=False)
    found = [task.name.partition(" · ")[0] for task in session._remaining_tasks(delivery)]
    delivery.close()
    return found


def losses(store: Store) -> dict[str, list[float]]:
    """Final losses by strategy."""
    found: dict[str, list[float]] = {}
    for run in runs(store, "small"):
        found.setdefault(run.data.tags["asyncfl.strategy"], []).append(run.data.metrics["fp/loss"])
    return {name: sorted(values) for name, values in found.items()}


def test_only_an_edited_strategy_runs_again_and_its_old_runs_give_way(suite: Path, store: Store) -> None:
    record(suite, store)
    before = losses(store)
    assert before["Mine"] == before["ASGD"] and len(before["Mine"]) == 2
    assert left(suite, store) == []

    assert len(take(store.tracking_uri, load(str(suite)).runs()).runs) == 4

    write(suite.parent, 0.5)
    assert left(suite, store) == ["Mine", "Mine"]
    with pytest.raises(UserError, match="2 of 4 runs"):
        take(store.tracking_uri, load(str(suite)).runs())
    record(suite, store)
    after = losses(store)
    assert after["ASGD"] == before["ASGD"]
    assert len(after["Mine"]) == 2 and after["Mine"] != before["Mine"]
    assert left(suite, store) == []


@pytest.mark.parametrize("damaged", ['{"edited_in_a_test:Mine": "…', '{"a.b:Mine": 3}'])
def test_a_damaged_record_of_the_code_is_as_good_as_none(suite: Path, store: Store, damaged: str) -> None:
    record(suite, store)
    (mine, *_) = [run for run in runs(store, "small") if run.data.tags["asyncfl.strategy"] == "Mine"]
    MlflowClient(store.tracking_uri).set_tag(mine.info.run_id, "asyncfl.code", damaged)
    assert left(suite, store) == ["Mine"]


def test_a_run_is_recorded_with_the_code_that_ran(suite: Path) -> None:
    """Not with what its file says by then: the next session computes it again."""
    (run, *_) = load(str(suite)).runs()
    before = named(run.experiment.description())
    file = suite.with_name(f"{NAME}.py")
    file.write_text(MODULE.format(share=0.5))
    assert named(run.experiment.description()) == before
    sys.modules.pop(NAME)
    (run, *_) = load(str(suite)).runs()
    assert named(run.experiment.description()) != before


def test_a_run_does_not_go_on_from_the_checkpoint_of_other_code(suite: Path, tmp_path: Path) -> None:
    def begun() -> Recorder:
        (run, *_) = load(str(suite)).runs()
        recorder = Recorder(Simulation(run.experiment))
        recorder.start()
        return recorder

    saved = tmp_path / "checkpoint"
    checkpoint.save(begun(), saved)
    checkpoint.load(begun(), saved)
    write(suite.parent, 0.5)
    with pytest.raises(ValueError, match=f"{NAME}:Mine"):
        checkpoint.load(begun(), saved)
