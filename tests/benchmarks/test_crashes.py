"""Killed again and again at random moments, a command leaves the records of one that was never disturbed.

Killed are whole process trees, drivers alone and single workers, in `asyncfl run` here and on Ray, in `tune`,
by one driver and by two at once, and in `claims run`. ASYNCFL_KILLS says how often in each, ASYNCFL_SEED at
which moments; with `--junitxml FILE` the counts are in that file.
"""

import os
import random
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend
from optuna.trial import TrialState
from patience import PATIENCE, eventually
from processes import workers
from recorded import computed, keys, runs, tables, trials, write_campaign, write_suite
from toy_paper import take_numbers, write_claims

from benchmarks.mlflow_store.store import Store

KILLS = int(os.environ.get("ASYNCFL_KILLS", "1"))
SEED = int(os.environ.get("ASYNCFL_SEED", "0"))
SPREAD = 3.0  # seconds from a command's first write, about as long as it takes undisturbed
EARLY = 0.15  # share of kills that come while it starts
LOST_CLUSTER = "Failed to connect to Ray cluster"  # Ray's own processes may go down with a driver
VICTIMS = ("tree", "driver", "worker")
SLOW = (
    "{name: 'sluggish:Slow', pause: 0.004}"  # with 400 updates: longer than from one checkpoint to the next
)

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600 + 60 * KILLS)]

Start = Callable[..., subprocess.Popen[str]]
Tell = Callable[[str, object], None]
Outcome = dict[str, Any]  # what each record holds, by a name that is its identity


@dataclass
class Tally:
    """The outcome of a session."""

    kills: dict[str, int] = field(default_factory=lambda: dict.fromkeys(VICTIMS, 0))
    rounds: int = 0  # stores that were filled, and compared with the reference
    records: int = 0

    @property
    def killed(self) -> int:
        return sum(self.kills.values())


def crash(
    start: Start,
    words: Callable[[], tuple[str, ...]],
    fresh: Callable[[], Store],
    outcome: Callable[[Store], Outcome],
) -> Tally:
    """Kill the command and start it again, in a fresh store whenever it came to its end; compare each."""
    draw, tally, wanted = random.Random(f"{SEED} {words()[0]}"), Tally(), None
    while wanted is None or tally.killed < KILLS:
        store = fresh()
        command = partial(begun, start, words, store)
        if wanted is None:  # the reference
            _, said = to_its_end(command())
            wanted = outcome(store)
        else:
            said = with_kills(command, store, draw, tally)
            assert outcome(store) == wanted, said
            tally.rounds, tally.records = tally.rounds + 1, tally.records + len(wanted)
    return tally


def begun(start: Start, words: Callable[[], tuple[str, ...]], store: Store) -> subprocess.Popen[str]:
    """The command at work on a store."""
    return start(*words(), "--store", str(store.folder))


def with_kills(
    begin: Callable[[], subprocess.Popen[str]], store: Store, draw: random.Random, tally: Tally
) -> str:
    """Start and kill until it ends well, or enough were killed and it is left alone; what it said last."""
    while True:
        began, process = time.time(), begin()
        while tally.killed < KILLS and process.poll() is None:
            wait_for_a_moment(process, store, began, draw)
            victim = draw.choice(VICTIMS)
            tally.kills[victim] += kill(process, victim, draw)
            if victim == "worker":  # one a session: three deaths of a job are an error of the job's
                break
        code, said = to_its_end(process)
        assert code in (0, -signal.SIGKILL) or LOST_CLUSTER in said, said
        if code == 0:
            return said


def wait_for_a_moment(
    process: subprocess.Popen[str], store: Store, began: float, draw: random.Random
) -> None:
    """A random moment since its start, or since it first wrote something."""
    if draw.random() >= EARLY:
        while process.poll() is None and newest(store.folder) <= began:
            time.sleep(0.02)
    with suppress(subprocess.TimeoutExpired):
        process.wait(draw.uniform(0, SPREAD))


def newest(folder: Path) -> float:
    """When something in it last changed."""
    found = 0.0
    for parent, folders, files in os.walk(folder):  # which passes over a folder that is gone meanwhile
        for name_ in folders + files:
            with suppress(OSError):
                found = max(found, Path(parent, name_).stat().st_mtime)
    return found


def kill(process: subprocess.Popen[str], victim: str, draw: random.Random) -> bool:
    """Whether the victim was there."""
    with suppress(ProcessLookupError):
        if victim == "tree":
            os.killpg(process.pid, signal.SIGKILL)
        elif victim == "driver":
            process.kill()
        elif found := workers(process.pid):
            os.kill(draw.choice(found), signal.SIGKILL)
        else:
            return False
        return process.returncode is None
    return False


def with_two_drivers(
    begin: Callable[[], subprocess.Popen[str]], seconds: float, draw: random.Random, tally: Tally
) -> str:
    """Let two drivers share a campaign until both end well; what they said.

    One or the other is killed, at a moment that is drawn from its start, or from that of its workers, up to
    so many seconds later; none is if they are 0.
    """
    drivers, spoken = [begin(), begin()], ""
    while drivers:
        driver = draw.choice(drivers)
        if seconds and tally.killed < KILLS:
            if draw.random() >= EARLY:
                eventually(lambda driver=driver: driver.poll() is not None or workers(driver.pid))
            with suppress(subprocess.TimeoutExpired):
                driver.wait(draw.uniform(0, seconds))
            victim = draw.choice(("tree", "driver"))
            tally.kills[victim] += kill(driver, victim, draw)
        code, said = to_its_end(driver)
        assert code in (0, -signal.SIGKILL), said
        drivers.remove(driver)
        if code != 0:
            drivers.append(begin())
        spoken += said
    return spoken


def to_its_end(process: subprocess.Popen[str]) -> tuple[int, str]:
    """Its exit code, and what it said; of a killed one nothing, as its workers may still hold the line."""
    if process.wait(PATIENCE) < 0:
        return process.returncode, ""
    said, _ = process.communicate(timeout=PATIENCE)
    return process.returncode, said


@pytest.fixture
def tell(record_testsuite_property: Tell) -> Tell:
    """Keeps the counts of a test in the file of `--junitxml`."""
    return lambda command, tally: record_testsuite_property(command, str(tally))


@pytest.fixture
def fresh(tmp_path: Path, empty_database: Path) -> Callable[[], Store]:
    """Makes one store after the other."""
    made: list[Store] = []

    def _fresh() -> Store:
        made.append(Store(tmp_path / f"results{len(made)}"))
        made[-1].folder.mkdir()
        made[-1].database.write_bytes(empty_database.read_bytes())
        return made[-1]

    return _fresh


def of_suite(path: Path) -> Callable[[Store], Outcome]:
    """What MLflow holds of a suite: the runs that one process computes in one go, each once."""
    wanted = computed(path)

    def outcome(store: Store) -> Outcome:
        assert keys(runs(store)) == sorted(wanted) and tables(store) == wanted
        assert {run.info.status for run in runs(store)} == {"FINISHED"}
        return wanted

    return outcome


def test_run(tmp_path: Path, start: Start, fresh: Callable[[], Store], tell: Tell) -> None:
    path = write_suite(tmp_path, f"asgd, {SLOW}", seeds=3, updates=400)
    words = ("run", path.name, "--workers", "2", "--no-report")
    tell("run", crash(start, lambda: words, fresh, of_suite(path)))


class RayCluster:
    """A Ray cluster with two cores; another one in its place once it has gone down."""

    def __init__(self) -> None:
        self.running: Any = None

    def address(self) -> str:
        """Where it is."""
        if self.running is None or self.running.head_node.dead_processes():
            self.close()
            from ray.cluster_utils import Cluster

            how = {"num_cpus": 2, "include_dashboard": False}
            self.running = Cluster(initialize_head=True, head_node_args=how)
        return str(self.running.address)

    def close(self) -> None:
        """End it."""
        if self.running is not None:
            self.running.shutdown()


@pytest.fixture
def cluster() -> Iterator[RayCluster]:
    pytest.importorskip("ray", reason="Ray is not installed")
    found = RayCluster()
    yield found
    found.close()


def test_run_on_ray(
    tmp_path: Path, start: Start, cluster: RayCluster, fresh: Callable[[], Store], tell: Tell
) -> None:
    path = write_suite(tmp_path, f"asgd, {SLOW}", seeds=3, updates=400)
    words = ("run", path.name, "--engine", "ray", "--no-report", "--address")
    tell("run on Ray", crash(start, lambda: (*words, cluster.address()), fresh, of_suite(path)))


def test_tune(tmp_path: Path, start: Start, fresh: Callable[[], Store], tell: Tell) -> None:
    # One trial at a time: a process that dies while it draws several leaves the others to be drawn anew.
    rates = {"local_lr": {"low": 0.01, "high": 0.5}}
    path = write_campaign(tmp_path, SLOW, updates=200, sampler="random", trials=6, batch=1, space=rates)
    file = tmp_path / "tuned.yaml"

    def outcome(store: Store) -> Outcome:
        found, written = trials(store), file.read_text()
        file.unlink()
        assert len(found) == 2 * 6, "a trial is missing"
        assert "before: null" not in written
        return found | {"tuned values": written}

    words = ("tune", path.name, "--workers", "2", "--out", file.name)
    tell("tune", crash(start, lambda: words, fresh, outcome))


def in_journal(path: Path) -> list[tuple[str, str, str]]:
    """Study, number and parameters of each trial that Optuna's storage has, by Optuna itself."""
    storage = JournalStorage(JournalFileBackend(str(path)))
    return [
        (study.user_attrs["plan"], str(trial.number), str(trial.params))
        for study in storage.get_all_studies()
        for trial in storage.get_all_trials(study._study_id)
        if trial.state is TrialState.COMPLETE
    ]


def test_two_drivers(tmp_path: Path, start: Start, fresh: Callable[[], Store], tell: Tell) -> None:
    """Two drivers share a campaign: each trial is complete once in its storage and once in MLflow."""
    rates = {"local_lr": {"low": 0.01, "high": 0.5}}
    path = write_campaign(tmp_path, SLOW, updates=200, sampler="random", trials=16, batch=1, space=rates)
    draw, tally, seconds = random.Random(f"{SEED} two drivers"), Tally(), 0.0
    while tally.killed < KILLS:
        store = fresh()
        journal = store.folder / "studies.journal"
        words = ("tune", path.name, "--workers", "1", "--out", "tuned.yaml", "--storage", str(journal))
        began = time.monotonic()
        said = with_two_drivers(partial(start, *words, "--store", str(store.folder)), seconds, draw, tally)
        seconds = seconds or (time.monotonic() - began) / 2
        optuna = in_journal(journal)
        tags = [run.data.tags for run in runs(store, "small.tuning", "trial")]
        assert len(optuna) == len({rate for *_, rate in optuna}) == 16, said
        assert sorted(
            (tag["asyncfl.study"], tag["asyncfl.trial"], tag["asyncfl.seed"]) for tag in tags
        ) == sorted(
            (study, number, seed)
            for study, number, _ in optuna
            for seed in {tag["asyncfl.seed"] for tag in tags}
        ), said
        assert len(tags) == 2 * 16
        tally.rounds, tally.records = tally.rounds + 1, tally.records + len(tags)
    tell("tune, two drivers", tally)


def test_claims_run(tmp_path: Path, start: Start, fresh: Callable[[], Store], tell: Tell) -> None:
    folder = write_claims(tmp_path)

    def outcome(store: Store) -> Outcome:
        found = tables(store, "claims-toy-small")
        assert len(found) == len(runs(store, "claims-toy-small")) == 6
        return found | take_numbers(folder)

    words = ("claims", "run", "--claims", str(folder), "--allow-code", "--workers", "2")
    tell("claims run", crash(start, lambda: words, fresh, outcome))
