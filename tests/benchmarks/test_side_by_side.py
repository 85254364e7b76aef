"""Runs side by side, in one process and in workers: each leaves what it leaves alone, whatever befalls."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from in_process import InProcess, curve_of, result_of
from recorded import runs, write_suite
from test_session import session

from benchmarks.mlflow_store.outbox import Outbox
from benchmarks.mlflow_store.store import Store
from benchmarks.pool.job import Capacity, Died
from benchmarks.runs import progress
from benchmarks.runs.messages import Advanced
from benchmarks.runs.progress import Progress, TaskMessage
from benchmarks.runs.run_jobs import RunJob
from benchmarks.suite.suite import PlannedRun, load, tasks
from fl_core.execution.auto import Auto
from fl_core.execution.execution import ComputeRequest
from fl_core.execution.stacked import AllInFlight
from fl_core.recorded_names import Tag
from fl_core.recording import recorder as measure

STRATEGIES = "fedbuff, asgd, ace, fedavg, {name: asgd, local: {name: scaffold}}"


@pytest.fixture
def outbox(tmp_path: Path) -> Outbox:
    return Outbox(tmp_path / "outbox")


def grid(
    folder: Path, strategies: str = STRATEGIES, *, execution: str = "all_in_flight", **suite: Any
) -> list[PlannedRun]:
    """Runs of a suite that may go on side by side."""
    path = shared(write_suite(folder, strategies, **suite), execution)
    return [task for task in tasks(load(str(path)).runs()) if isinstance(task, PlannedRun)]


def shared(path: Path, execution: str = "all_in_flight") -> Path:
    """A suite with an execution that shares calls."""
    path.write_text(path.read_text() + f"execution: {execution}\n")
    return path


def together(
    outbox: Outbox, found: Iterable[PlannedRun], stopping: Callable[[], bool] = lambda: False
) -> InProcess:
    """All of them side by side, the way a worker does it; the worker."""
    first, *companions = (RunJob(task, outbox, {}) for task in found)
    worker = InProcess(companions, stopping)
    first.compute(worker)
    return worker


def capacities(worker: InProcess) -> list[int]:
    """How many runs could go on side by side, as far as that was told."""
    return [message.jobs for _, message in worker.told if isinstance(message, Capacity)]


def assert_as_alone(outbox: Outbox, task: PlannedRun) -> None:
    """Its record has the clocks of the run alone exactly, and all that is measured to 1e-10."""
    truth, curve = measure.run(task.experiment), curve_of(outbox, task)
    assert len(curve) == len(truth.curve)
    for row, other in zip(curve, truth.curve, strict=True):
        for clock in ("iteration", "updates", "time", "uploads_bytes"):
            assert row[clock] == other[clock]
        assert row == pytest.approx(other, rel=1e-10, abs=1e-10)
    staleness = sum(truth.arrivals["staleness"]) / len(truth.arrivals["staleness"])
    assert result_of(outbox, task).metrics["staleness/mean"] == pytest.approx(staleness)


def test_each_leaves_what_it_leaves_alone(tmp_path: Path, outbox: Outbox) -> None:
    """Seeds and strategies of a grid, some with another kind of local work."""
    found = grid(tmp_path)
    ended = together(outbox, found).finished
    assert len(ended) == len(found) == 10
    assert {one.result.status for one in ended.values()} == {"done"}
    for task in found:
        assert_as_alone(outbox, task)
    said = [result_of(outbox, task).tags[Tag.EXECUTION] for task in found]
    assert said[:8] == ["all in flight, up to 32 together, 8 runs side by side"] * 8
    folder = outbox.folder / "small"
    assert sorted(path.name for path in folder.iterdir()) == sorted(ended)  # no checkpoint is left


def test_their_times_add_up_to_the_time_of_the_process(
    tmp_path: Path, outbox: Outbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a clock that only a slow server and shared calls move: each run pays for its server and its jobs."""
    now, pause, each = [0.0], 5.0, 1.0  # seconds: of the slow server for an update, of a call for a job
    plain = AllInFlight.execute

    def execute(self: AllInFlight, requests: list[ComputeRequest]) -> list[int]:
        computed = plain(self, requests)
        now[0] += each * sum(computed)
        return computed

    def sleep(seconds: float) -> None:
        now[0] += seconds

    monkeypatch.setattr(AllInFlight, "execute", execute)
    monkeypatch.setattr("fl_core.recording.interleave.perf_counter", lambda: now[0])
    monkeypatch.setattr("time.sleep", sleep)
    short = grid(tmp_path, "asgd, fedavg", name="short", seeds=1, updates=30)
    slow = grid(tmp_path, f"{{name: 'sluggish:Slow', pause: {pause}}}", name="slow", seeds=1, updates=120)
    together(outbox, [*short, *slow])
    *shorter, longer = (result_of(outbox, task).seconds for task in (*short, *slow))
    assert shorter[0] + shorter[1] + longer == pytest.approx(now[0])
    # Three clients: three jobs at most are computed and not used.
    assert all(30 * each <= seconds <= 33 * each for seconds in shorter)
    assert 120 * (pause + each) <= longer <= 120 * (pause + each) + 3 * each


@pytest.mark.parametrize("events", [3, 190])
def test_those_that_left_go_on_in_other_company(tmp_path: Path, outbox: Outbox, events: int) -> None:
    """Stopped together, then continued alone, or in pairs that never were together."""
    found = grid(tmp_path, "fedbuff, asgd, ace", seeds=2)
    asked = iter([False] * events + [True] * 9)
    together(outbox, found, stopping=lambda: next(asked))
    waiting = [task for task in found if outbox.get(task.suite, task.key) is None]
    assert waiting and any(outbox.checkpoint(task.suite, task.key).exists() for task in waiting)
    for company in (waiting[:1], waiting[1:][::2], waiting[1:][1::2]):
        if company:
            together(outbox, company)
    for task in found:
        assert_as_alone(outbox, task)


def test_an_error_ends_one_run_alone(tmp_path: Path, outbox: Outbox) -> None:
    failing = f"{{name: 'sluggish:Failing', mended: '{tmp_path / 'mended'}'}}"
    found = grid(tmp_path, f"fedbuff, {failing}, ace", seeds=2)
    ended = together(outbox, found).finished
    for task in found:
        if "Failing" in task.strategy:
            assert ended[task.key].result.reason.startswith("RuntimeError: the twentieth update (")
            trace = (outbox.artifacts(result_of(outbox, task)) / "traceback.txt").read_text()
            assert "sluggish.py" in trace
        else:
            assert_as_alone(outbox, task)


def test_an_error_in_a_shared_call_ends_its_run_alone(
    tmp_path: Path, outbox: Outbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who is to blame shows when each is computed by itself; the others go on together."""
    plain = AllInFlight.execute
    guilty: list[object] = []

    def execute(self: AllInFlight, requests: list[ComputeRequest]) -> list[int]:
        guilty[:] = guilty or [requests[1].world] if len(requests) > 3 else guilty
        if any(request.world in guilty for request in requests):
            raise ValueError("a world that cannot be stacked")
        return plain(self, requests)

    monkeypatch.setattr(AllInFlight, "execute", execute)
    found = grid(tmp_path, "asgd", seeds=4)
    ended = together(outbox, found).finished
    assert sorted(one.result.status for one in ended.values()) == ["done", "done", "done", "error"]
    monkeypatch.undo()
    for task in found:
        if ended[task.key].result.status == "done":
            assert_as_alone(outbox, task)


def test_one_by_one_goes_alone(tmp_path: Path, outbox: Outbox) -> None:
    """Nobody is asked for company, and the record is that of the run alone, bit for bit."""
    (task, *others) = grid(tmp_path, "asgd", execution="one_by_one")
    assert RunJob(task, outbox, {}).kind is None
    worker = together(outbox, [task, *others])
    assert list(worker.finished) == [task.key]
    assert curve_of(outbox, task) == measure.run(task.experiment).curve
    assert capacities(worker) == []


def test_runs_are_of_one_kind_where_they_can_share_calls(tmp_path: Path, outbox: Outbox) -> None:
    jobs = [RunJob(task, outbox, {}) for task in grid(tmp_path)]
    assert len({job.kind for job in jobs}) == 2  # SCAFFOLD's local work is another
    assert len({job.kind for job in jobs if job.task.experiment.strategy.local.name == "sgd"}) == 1


@pytest.mark.parametrize(("faster", "told"), [(True, [8]), (False, [])])
def test_auto_asks_for_company_where_stacks_are_faster(
    tmp_path: Path, outbox: Outbox, monkeypatch: pytest.MonkeyPatch, faster: bool, told: list[int]
) -> None:
    """As it measures, here on a clock on which a stack costs as much as one job, or as its square."""
    now = [0.0]
    plain = AllInFlight.execute

    def timed(self: AllInFlight, requests: list[ComputeRequest]) -> int:
        computed = plain(self, requests)
        now[0] += 1.0 if faster else computed**2
        return computed

    monkeypatch.setattr(AllInFlight, "execute", timed)
    monkeypatch.setattr("fl_core.execution.auto.thread_time", lambda: now[0])
    monkeypatch.setattr(Auto, "known", {})
    worker = together(outbox, grid(tmp_path, "fedbuff", execution="auto", seeds=1, updates=300))
    assert capacities(worker) == told


def test_memory_bounds_how_many_there_are(
    tmp_path: Path, outbox: Outbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three clients and one parameter: 12 numbers a run; with room for 40 there are three runs."""
    monkeypatch.setattr("benchmarks.runs.run_jobs.largest", lambda _: 40)
    found = grid(tmp_path, "asgd, fedbuff, ace")
    together(outbox, found)
    said = {result_of(outbox, task).tags[Tag.EXECUTION] for task in found}
    assert said == {"all in flight, up to 32 together, 3 runs side by side"}


def test_a_run_that_cannot_be_saved_costs_its_neighbours_nothing(tmp_path: Path, outbox: Outbox) -> None:
    """On leaving the others write their checkpoints, and it leaves its error."""
    hoarding, plain = grid(tmp_path, "'sluggish:Hoarding', asgd", seeds=1)
    asked = iter([False] * 20 + [True])
    together(outbox, [hoarding, plain], lambda: next(asked))
    assert outbox.checkpoint(plain.suite, plain.key).exists()
    assert not outbox.checkpoint(hoarding.suite, hoarding.key).exists()
    assert result_of(outbox, hoarding).reason.startswith("TypeError: server.memory.seen['newest'] is a")


def test_a_display_names_a_few(tmp_path: Path) -> None:
    found = grid(tmp_path)
    board = Progress(len(found))
    for share in (0.1, 0.2):
        for task in found:
            board.see((task, Advanced(share)))
    shown, more = board.first_active(3)
    assert [task for task, _ in shown] == found[:3] and more == "and 7 more"
    board.see((found[0], Died("killed by SIGKILL")))
    assert [task for task, _ in board.first_active(9)[0]] == found[1:] and not board.first_active(9)[1]
    line = " | ".join(progress.Lines(3)._status_parts())
    assert line == "starting workers"


def test_a_line_that_has_not_changed_is_not_repeated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = [0.0]
    monkeypatch.setattr(progress, "monotonic", lambda: now[0])
    lines = progress.Lines(2)
    for event in (None, None, (grid(tmp_path)[0], Advanced(0.01)), None):
        now[0] += 2 * progress.MAX_SILENCE_SECONDS
        lines.see(event)
    first, second = capsys.readouterr().out.splitlines()
    assert first == "[0/2] starting workers" and second.startswith("[0/2] 0% | ")


def test_the_time_left_counts_nothing_of_earlier_sessions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two tasks, one taken up half done: a quarter of the other in 100 s, and 5/4 are left."""
    old, new = grid(tmp_path)[:2]
    now = [0.0]
    monkeypatch.setattr(progress, "monotonic", lambda: now[0])
    board = Progress(2)
    for task, share in ((old, 0.5), (new, 0.0)):
        board.see((task, Advanced(share)))
    assert board.remaining == ""
    now[0] = 100.0
    board.see((new, Advanced(0.25)))
    assert board.remaining == "about 8 min left"  # 500 s
    ended = Progress(1)  # its process died between the last event and its record
    ended.see((old, Advanced(1.0)))
    assert ended.remaining == ""


@pytest.mark.usefixtures("fork_server")
def test_a_run_that_kills_its_workers_is_given_up_alone(tmp_path: Path, store: Store) -> None:
    """With real processes and a real database."""
    tally = tmp_path / "deaths"
    deadly = f"{{name: 'sluggish:Deadly', deaths: 3, tally: '{tally}'}}"
    path = shared(write_suite(tmp_path, f"fedbuff, asgd, ace, {deadly}, fedavg", seeds=1))
    deaths: list[TaskMessage] = []

    def hear(heard: TaskMessage) -> None:
        if heard is not None and isinstance(heard[1], Died):
            deaths.append(heard)

    found = session(path, store, workers=1, hear=hear)
    assert found.statuses == {"done": 5, "error": 1}  # and a baseline
    (failed,) = [run for run in runs(store) if run.info.status == "FAILED"]
    assert failed.data.tags["asyncfl.reason"].startswith("its worker process died 3 times")
    assert len(deaths) > 2, "it died in company, which was taken up again"
