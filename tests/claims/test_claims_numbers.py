"""How a claim's numbers are read off recorded runs, on runs whose curves are known."""

import json
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextvars import copy_context
from pathlib import Path
from threading import Thread
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from test_claims_files import CLAIM, written

from benchmarks.claims import stored_numbers
from benchmarks.claims.plan import ClaimPlan
from benchmarks.errors import UserError
from benchmarks.mlflow_store.run_result import Files, RunResult
from fl_core.import_guard import ALLOWED
from fl_core.recorded_names import Status, Tag
from reports.claims.measured import measured, other_accuracy, slowest_accuracy, unusable_share

CURVES: Mapping[str, Sequence[float]] = {"a": [0.9, 0.5, 0.7, 0.3], "b": [0.8, 0.6, 0.4]}


@pytest.fixture(autouse=True)
def _code_is_allowed() -> Iterator[None]:
    """As --allow-code does: these claims name functions of the standard library."""
    token = ALLOWED.set(True)
    yield
    ALLOWED.reset(token)


def recorded(
    key: str, seed: int, distances: Sequence[float], status: str = "done", data: str = ""
) -> RunResult:
    """A run evaluated every 10 updates, an iteration every fifth update, time 2 and 3 joules an update."""
    at = np.arange(len(distances))
    curve = {"iteration": 2 * at, "updates": 10 * at, "time": 20.0 * at, "distance": np.array(distances)}
    curve["energy"] = 30.0 * at
    tags: dict[str, str] = {
        Tag.KEY: key, Tag.SEED: str(seed), Tag.STATUS: status, Tag.METRIC: "distance",
        Tag.HIGHER_IS_BETTER: "false", Tag.COMMIT: "abc", Tag.VERSIONS: '{"torch": "2"}', Tag.DATA: data,
    }  # fmt: skip
    return RunResult(
        "r", "1", "FINISHED", 0, 0, "", tags, metrics={"staleness/mean": 1.5}, files=Files(curve)
    )


def numbers(folder: Path, status: str = "done", **change: Any) -> dict[str, float]:
    """The numbers of the claim, so changed, for its first seed."""
    paper = written(folder, {**CLAIM, "higher": False, **change})
    claim, plan = paper.claims["T-row/case"], ClaimPlan(paper, "small", ())
    runs = {
        run.key: recorded(
            run.key, seed, [value + seed for value in CURVES[name]], status if name == "b" else "done"
        )
        for name, of in plan.picked(claim).items()
        for seed, [run] in of.items()
    }
    found = measured(plan, claim, runs)
    assert {one.seed for one in found} == {0, 1, 2}
    return {one.sample: one.value for one in found if one.seed == 0}


@pytest.mark.parametrize(
    ("change", "a", "b"),
    [
        ({}, 0.7, 0.4),  # what both have reached: 20 updates
        ({"clock": "time"}, 0.7, 0.4),
        ({"at": "end"}, 0.3, 0.4),
        ({"at": 10}, 0.5, 0.6),
        ({"at": 19}, 0.5, 0.6),  # between two evaluations the earlier one holds
        ({"at": 3, "clock": "iterations"}, 0.5, 0.6),
        ({"at": "end", "along": "mean"}, 0.6, 0.6),
        ({"along": "min"}, 0.5, 0.4),
        ({"along": "max"}, 0.9, 0.8),
        ({"at": "end", "along": "std"}, np.std([0.9, 0.5, 0.7, 0.3]), np.std([0.8, 0.6, 0.4])),
        ({"at": "end", "along": "step_std"}, np.std([-0.4, 0.2, -0.4]), np.std([-0.2, -0.2])),
        ({"reach": 0.5}, 10, 20),
        ({"reach": 0.5, "clock": "time"}, 20, 40),
        ({"reach": 0.5, "clock": "energy", "scenario": "powered"}, 30, 60),
        ({"reach": 0.35}, 30, np.inf),
        ({"metric": "staleness/mean"}, 1.5, 1.5),
        ({"metric": "diverged"}, 0, 0),
        ({"metric": "updates", "at": "end"}, 30, 20),
        ({"metric": "builtins:len"}, 1, 1),  # a function of the runs of a seed
    ],
)
def test_readings(tmp_path: Path, change: dict[str, Any], a: float, b: float) -> None:
    assert numbers(tmp_path, **change) == pytest.approx({"a": a, "b": b})


def test_a_run_that_diverged_has_no_value_and_sets_no_end(tmp_path: Path) -> None:
    found = numbers(tmp_path, "diverged")
    assert found["a"] == pytest.approx(0.3) and np.isnan(found["b"])
    assert numbers(tmp_path, "diverged", metric="diverged") == {"a": 0, "b": 1}


def test_seeds_that_are_not_finished_are_left_out(tmp_path: Path) -> None:
    paper = written(tmp_path, CLAIM)
    claim, plan = paper.claims["T-row/case"], ClaimPlan(paper, "small", ())
    runs = [(seed, run) for of in plan.picked(claim).values() for seed, [run] in of.items()]
    there = {
        run.key: recorded(run.key, seed, [1.0], "running" if seed == 2 else "done") for seed, run in runs[1:]
    }
    assert {one.seed for one in measured(plan, claim, there)} == {1}  # 0 is missing, 2 goes on


@pytest.mark.parametrize(
    ("ends", "expected"), [(("done", "done"), 0.4), (("diverged", "done"), 0.4), (("done", "diverged"), 0.2)]
)
def test_several_points_become_one_number(tmp_path: Path, ends: tuple[str, str], expected: float) -> None:
    paper = written(tmp_path, {**CLAIM, "where": {"problem.noise": 0}, "over": "max", "at": "end"})
    claim, plan = paper.claims["T-row/case"], ClaimPlan(paper, "small", ())
    keys = [run.key for run in plan.picked(claim)["a"][0]]
    runs = {
        key: recorded(key, 0, [0.1 * at, 0.2 * at], end)
        for at, (key, end) in enumerate(zip(keys, ends, strict=True), 1)
    }
    others = [run.key for run in plan.picked(claim)["b"][0]]
    runs |= {key: recorded(key, 0, [0.0, 0.0]) for key in others}
    [a, _] = measured(plan, claim, runs)
    assert (a.value, a.runs.split()) == (pytest.approx(expected), keys)


def test_origins_name_commits_versions_and_data(tmp_path: Path) -> None:
    paper = written(tmp_path, CLAIM)
    claim, plan = paper.claims["T-row/case"], ClaimPlan(paper, "small", ())
    runs = {
        run.key: recorded(run.key, seed, [1.0], data=json.dumps({"data": "89ab", "partition": f"p{seed}"}))
        for of in plan.picked(claim).values()
        for seed, [run] in of.items()
    }
    assert {one.origin for one in measured(plan, claim, runs)} == {"abc, torch 2, data 89ab"}


@pytest.mark.parametrize("metric", ["distanc", "math:hypott"])
def test_an_unknown_metric_is_named(tmp_path: Path, metric: str) -> None:
    with pytest.raises(UserError, match=metric):
        numbers(tmp_path, metric=metric)


def test_numbers_of_two_processes_at_once_are_all_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, write, order = tmp_path / "toy-small.csv", stored_numbers.write, ["T-row/a", "T-row/b"]

    def slow(*arguments: Any) -> None:
        time.sleep(0.1)  # in which the other one would read
        write(*arguments)

    def keep(id_: str) -> None:
        with stored_numbers.changing():
            stored_numbers.merge(file, order, [stored_numbers.Number(id_, "a", 0, 1.0, "key", "", "here")])

    monkeypatch.setattr(stored_numbers, "write", slow)
    both = [Thread(target=copy_context().run, args=(keep, id_)) for id_ in order]
    for process in both:
        process.start()
    for process in both:
        process.join()
    assert [number.claim for number in stored_numbers.read(file)] == order


def test_accuracy_of_the_slowest_by_hand() -> None:
    clients = {"mean_time": np.array([1.0, 3.0, 2.0]), "accuracy": np.array([0.9, 0.5, 0.7])}
    runs = [SimpleNamespace(files=SimpleNamespace(clients=clients))]
    assert slowest_accuracy(runs) == 0.5
    assert other_accuracy(runs) == pytest.approx(0.8)


def test_unusable_share_by_hand() -> None:
    def run(loss: float, status: Status = Status.DONE) -> SimpleNamespace:
        return SimpleNamespace(status=status, files=SimpleNamespace(curve={"fp/loss": np.array([9.0, loss])}))

    assert unusable_share([run(1.0), run(2.0), run(2.1), run(0.9, Status.DIVERGED)]) == 0.5


@pytest.mark.parametrize(
    ("origin", "expected"),
    [
        ("no commit, python 3.11", False),
        ("5640dc7b401369059cef8d6538b8e938a6a79a7f+, python 3.11", False),
        (f"{min(stored_numbers.LOST_COMMITS)}, python 3.11", False),
        ("5640dc7b401369059cef8d6538b8e938a6a79a7f, python 3.11", True),
        (
            "5640dc7b401369059cef8d6538b8e938a6a79a7f 2b706b149633ac7b0e77c3e4a28c59fdea89c5cb+, python 3.11",
            False,
        ),
    ],
)
def test_an_origin_is_traceable_without_changes_in_a_commit_that_exists(origin: str, expected: bool) -> None:
    assert stored_numbers.traceable(origin) is expected


def test_numbers_of_unknown_commits_are_not_stored(tmp_path: Path) -> None:
    def git(*arguments: str) -> str:
        author = ("-c", "user.name=a", "-c", "user.email=a@b.example")
        return subprocess.run(
            ["git", "-C", tmp_path, *author, *arguments], check=True, capture_output=True, text=True
        ).stdout.strip()

    git("init")
    git("commit", "--allow-empty", "-m", "first")
    head = git("rev-parse", "HEAD")
    origins = [f"{head}, python", f"{head}+, python", f"{'0' * 40}, python"]
    numbers = [
        stored_numbers.Number("T/a", "a", seed, 1.0, "key", "", origin) for seed, origin in enumerate(origins)
    ]
    assert stored_numbers.untraceable(numbers, tmp_path) == origins[1:]
