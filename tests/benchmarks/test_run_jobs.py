"""One task computed in this process: what it leaves behind, how it goes on, what becomes of an error."""

import json
from pathlib import Path

import pytest
from in_process import InProcess, compute, curve_of, result_of
from recorded import write_suite

from benchmarks.mlflow_store.outbox import Outbox
from benchmarks.runs import progress, run_jobs
from benchmarks.runs.messages import Advanced, Finished, Notice
from benchmarks.runs.run_jobs import job_of
from benchmarks.suite.suite import PlannedRun, PooledTask, Task, load, tasks
from fl_core.recorded_names import Tag
from fl_core.recording import recorder as measure


@pytest.fixture
def outbox(tmp_path: Path) -> Outbox:
    return Outbox(tmp_path / "outbox")


def suite_tasks(folder: Path, **suite: object) -> list[Task]:
    return tasks(load(str(write_suite(folder, **suite))).runs())  # type: ignore[arg-type]


def one_run(folder: Path, **suite: object) -> PlannedRun:
    return next(task for task in suite_tasks(folder, **suite) if isinstance(task, PlannedRun))


def done(folder: Path, outbox: Outbox) -> PlannedRun:
    """A run of the suite as it stands, computed."""
    task = one_run(folder)
    compute(task, outbox, {})
    return task


def stopped_after(events: int, task: Task, outbox: Outbox) -> dict[str, Finished]:
    """Compute the task until so many events have happened; how it ended by then."""
    asked = iter([False] * (events - 1) + [True])
    worker = InProcess(stopping=lambda: next(asked))
    job_of(task, outbox, {}).compute(worker)
    return worker.finished


def test_a_record_says_what_the_simulation_says(tmp_path: Path, outbox: Outbox) -> None:
    task = one_run(tmp_path)
    finished = compute(task, outbox, {Tag.VERSION: "7"})
    truth = measure.run(task.experiment)
    result = result_of(outbox, task)
    assert curve_of(outbox, task) == truth.curve
    description = (outbox.artifacts(result) / "description.json").read_bytes()
    assert json.loads(description) == task.experiment.model_dump(mode="json")
    assert (result.status, result.key, result.tags[Tag.VERSION]) == ("done", task.key, "7")
    assert result.metrics["staleness/mean"] == pytest.approx(sum(truth.arrivals["staleness"]) / 60)
    assert result.metrics["local_steps"] == truth.local_steps > 0
    assert len(result.evaluated) == len(truth.curve) and result.evaluated == sorted(result.evaluated)
    assert result.start_time <= result.evaluated[0] <= result.evaluated[-1] <= result.end_time
    assert finished.value == truth.curve[-1]["distance"]


@pytest.mark.parametrize("non_finite", ["end", "refuse"])
def test_updates_that_are_not_finite_are_counted(tmp_path: Path, outbox: Outbox, non_finite: str) -> None:
    """Rates so large that models overflow: such an update ends the run, or the next evaluation."""
    suite = load(str(write_suite(tmp_path)), ["lr=1e200", f"non_finite={non_finite}"])
    task = next(task for task in tasks(suite.runs()) if isinstance(task, PlannedRun))
    compute(task, outbox, {})
    result, truth = result_of(outbox, task), measure.run(task.experiment)
    assert result.status == "diverged" and ("update" in result.reason) == (non_finite == "end")
    assert result.metrics["non_finite_updates"] == truth.non_finite
    assert (truth.non_finite == 1) == (non_finite == "end")
    assert "non_finite_updates" not in result_of(outbox, done(tmp_path, outbox)).metrics


@pytest.mark.parametrize("events", [1, 17, 59])
def test_a_run_that_left_goes_on_bit_for_bit(tmp_path: Path, outbox: Outbox, events: int) -> None:
    task = one_run(tmp_path)
    assert stopped_after(events, task, outbox) == {}
    assert outbox.get(task.suite, task.key) is None
    left = outbox.checkpoint(task.suite, task.key)
    assert left.exists()

    worker = InProcess()
    job_of(task, outbox, {}).compute(worker)
    shares = [message.share for _, message in worker.told if isinstance(message, Advanced)]
    truth = measure.run(task.experiment)
    result = result_of(outbox, task)
    assert curve_of(outbox, task) == truth.curve
    assert result.metrics["local_steps"] == truth.local_steps
    assert shares[0] >= events / 60  # it did not begin again
    assert len(result.evaluated) == len(truth.curve)
    assert list(left.parent.iterdir()) == [outbox.folder / task.suite / task.key]  # no checkpoint is left


def test_time_spent_before_counts(tmp_path: Path, outbox: Outbox) -> None:
    task = one_run(tmp_path, strategies="'sluggish:Slow'")
    stopped_after(50, task, outbox)
    compute(task, outbox)
    assert result_of(outbox, task).seconds >= 0.06  # 60 updates of a millisecond and more


def test_long_runs_are_saved_on_the_way(
    tmp_path: Path, outbox: Outbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_jobs, "SAVE_SECONDS", 0.0)
    monkeypatch.setattr(run_jobs, "MAX_SAVE_FRACTION", 1.0)
    task = one_run(tmp_path)
    saved = outbox.checkpoint(task.suite, task.key)
    seen: set[bool] = set()
    job_of(task, outbox, {}).compute(InProcess(stopping=lambda: bool(seen.add(saved.exists()))))
    assert seen == {False, True} and not saved.exists()


@pytest.mark.parametrize("damage", ["empty", "a flipped bit"])
def test_a_damaged_checkpoint_is_begun_again(tmp_path: Path, outbox: Outbox, damage: str) -> None:
    task = one_run(tmp_path)
    stopped_after(17, task, outbox)
    saved = outbox.checkpoint(task.suite, task.key)
    flipped = bytearray(saved.read_bytes())
    flipped[len(flipped) // 2] ^= 1
    saved.write_bytes(b"" if damage == "empty" else flipped)
    worker = InProcess()
    job_of(task, outbox, {}).compute(worker)
    assert curve_of(outbox, task) == measure.run(task.experiment).curve
    first = worker.told[0][1]
    assert isinstance(first, Notice)
    assert list(saved.parent.iterdir()) == [outbox.folder / task.suite / task.key]
    assert f"{saved} is damaged" in first.text


def test_what_cannot_be_saved_is_an_error_that_names_it(
    tmp_path: Path, outbox: Outbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When it is first saved, not when the run is taken up again."""
    monkeypatch.setattr(run_jobs, "SAVE_SECONDS", 0.0)
    task = one_run(tmp_path, strategies="'sluggish:Hoarding'")
    finished = compute(task, outbox)
    assert finished.result.status == "error"
    assert finished.result.reason.startswith("TypeError: server.memory.seen['newest'] is a ")


@pytest.mark.parametrize("display", [progress.Progress(), progress.Lines(1), progress.Bars(1)])
def test_notices_are_seen_in_the_terminal(
    display: progress.Progress, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """However little a user wants to see."""
    with display:
        display.see((one_run(tmp_path), Notice.of_restart(ValueError("x is damaged"))))
    assert "x is damaged" in " ".join("".join(capsys.readouterr()).split())


def test_a_record_that_is_there_is_not_computed_again(tmp_path: Path, outbox: Outbox) -> None:
    task = one_run(tmp_path)
    compute(task, outbox)
    before = outbox.files(task.suite, task.key)
    assert compute(task, outbox).result.status == "done"
    assert before and outbox.files(task.suite, task.key) == before


def test_one_baseline_for_each_problem_on_the_first_seeds(tmp_path: Path, outbox: Outbox) -> None:
    pooled = [task for task in suite_tasks(tmp_path, seeds=4) if isinstance(task, PooledTask)]
    assert [task.seed for task in pooled] == [0, 1, 2]  # for two strategies
    assert len({task.key for task in pooled}) == 3
    compute(pooled[0], outbox)
    result = result_of(outbox, pooled[0])
    assert (result.kind, result.status) == ("pooled", "done")
    assert result.seconds == pytest.approx(float(result.tags["asyncfl.wall_seconds"]), abs=1e-3)
    del result.metrics["wall_seconds"]
    assert result.metrics == pooled[0].problem.pooled(0)


def test_tasks_come_seed_by_seed(tmp_path: Path) -> None:
    found = [task for task in suite_tasks(tmp_path, seeds=3) if isinstance(task, PlannedRun)]
    assert [task.seed for task in found] == [0, 0, 1, 1, 2, 2]
    assert [task.strategy for task in found] == ["FedBuff", "ASGD"] * 3
