"""`asyncfl tune` as a user types it: the plan, what came out, and mistakes in one line with exit code 2."""

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import broken
import pytest
from shell import asyncfl
from small import Write

from benchmarks.mlflow_store.store import Store

Typed = Callable[..., subprocess.CompletedProcess[str]]


def test_the_plan_is_shown_and_nothing_is_made(write: Write, tmp_path: Path, typed: Typed) -> None:
    done = typed("tune", str(write()), "--dry-run", "--trials", "7", "--seeds", "4")
    assert done.returncode == 0, done.stderr
    assert "Simulations: 1 study, 7 trials × 4 seeds = 28" in done.stdout
    assert "seeds 1001, 1002, 1003, 1004; each simulation 20 client updates" in done.stdout
    assert [path.name for path in tmp_path.iterdir()] == ["small.yaml"]


def test_sizes_are_sums_over_studies_of_different_size(write: Write, typed: Typed) -> None:
    space = {"local_lr": [0.01, 0.1, 1.0], "fedbuff.buffer": [1, 2]}
    design = {"sampler": "grid", "seeds": 1, "space": space, "again": {"share": 0.5, "seeds": 2}}
    said = typed("tune", str(write(strategies=["asgd", "fedbuff"], tuning=design)), "--dry-run").stdout
    assert "Simulations: 2 studies, 9 trials × 1 seed + 5 trials × 2 seeds = 19\n" in said
    assert "seeds 1001, and 1002, 1003 for the best 50 % of each study; " in said


def test_another_file_is_not_overwritten(write: Write, typed: Typed) -> None:
    """Tuned values may be found anew; a suite whose name is given by mistake is still there."""
    suite = str(write())
    said = f"Error: {suite}: another file of this name exists. Delete it, or choose another name\n"
    assert typed("tune", suite, "--dry-run", "--out", suite).stderr == said


@pytest.mark.slow
def test_tuned_and_then_run_with_what_was_found(write: Write, store: Store, tmp_path: Path) -> None:
    suite, folder = str(write()), str(store.folder)
    missing = asyncfl(tmp_path, "run", suite, "--tuned", "--store", folder)
    assert missing.returncode == 2 and missing.stdout == ""
    assert missing.stderr.startswith("Error: small is not tuned: ") and "Traceback" not in missing.stderr

    tuned = asyncfl(tmp_path, "tune", suite, "--store", folder, "--quiet")
    assert tuned.returncode == 0, tuned.stderr
    assert "small: 1 study, 6 trials in " in tuned.stdout
    assert f"Tuned values: {tmp_path / 'tuned-small.yaml'}" in tuned.stdout
    page = Path(folder) / "reports" / "small.html"
    assert f"Report: {page}" in tuned.stdout and 'id="tuning"' in page.read_text()
    (following,) = [line for line in tuned.stdout.splitlines() if line.startswith("Next: ")]
    assert following == f"Next: asyncfl run {suite} --tuned --store {folder}"
    assert tuned.stderr == ""

    run = asyncfl(tmp_path, "run", suite, "--tuned", "--store", folder, "--quiet", "--no-report")
    assert run.returncode == 0, run.stderr
    assert "small-tuned: 2 runs" in run.stdout
    report = asyncfl(tmp_path, "report", "small-tuned", "--store", folder)
    assert report.returncode == 0, report.stderr
    assert 'href="small.html#tuning"' in page.with_name("small-tuned.html").read_text()

    before = (tmp_path / "tuned-small.yaml").read_bytes()
    changed = ["--set", "budget.updates=12", "--store", str(tmp_path / "other")]
    other = asyncfl(tmp_path, "tune", suite, *changed, "--trials", "2", "--quiet")
    assert other.returncode == 0, other.stderr
    assert (tmp_path / "tuned-small.yaml").read_bytes() == before
    found = str(tmp_path / "other" / "tuned-small.yaml")
    assert f"Next: asyncfl run {suite} --tuned-from {found} --set budget.updates=12" in other.stdout
    run = asyncfl(tmp_path, "run", suite, "--tuned-from", found, *changed, "--quiet", "--no-report")
    assert run.returncode == 0, run.stderr

    elsewhere = asyncfl(tmp_path, "run", suite, "--tuned", "--store", folder, "--set", "budget.updates=21")
    assert elsewhere.returncode == 2 and "not of 21 client updates" in elsewhere.stderr


@pytest.mark.slow
def test_progress_is_written_where_there_is_no_terminal(write: Write, store: Store, tmp_path: Path) -> None:
    out = tmp_path / "found.yaml"
    words = ("--store", str(store.folder), "--out", str(out), "--set", "budget.updates=9")
    done = asyncfl(tmp_path, "tune", str(write()), *words)
    assert done.returncode == 0, done.stderr
    told = [line.partition("]")[0] for line in done.stderr.splitlines() if line.startswith("[")]
    assert told[-1] == "[6/6" and len(told) == len(set(told))
    assert f"--tuned-from {out} --set budget.updates=9" in done.stdout


@pytest.mark.slow
def test_what_failed_in_trials_is_said_once(write: Write, store: Store, tmp_path: Path) -> None:
    """By `tune`, and by `evidence`, which runs nothing then."""
    (tmp_path / "mine.py").write_text(Path(broken.__file__).read_text())
    suite = str(
        write(
            problem={"name": "digits", "clients": 2, "target": 0.5},
            budget={"time": 20},
            strategies=[{"name": "fedavg", "label": "FedAvg"}],
            tuning={"trials": 1, "seeds": 1, "sampler": "sobol", "objective": "time_to_target"},
        )
    )
    words = ("--store", str(store.folder))
    done = asyncfl(tmp_path, "evidence", "mine:Broken", "--suite", suite, "--out", "evidence", *words)
    assert done.returncode == 2 and "Written" not in done.stdout and not [*tmp_path.glob("evidence/*")]
    (refused,) = done.stderr.strip().splitlines()
    assert re.fullmatch(r"Error: Broken .*RuntimeError: it is broken \(mine\.py:\d+\)", refused)
    done = asyncfl(tmp_path, "tune", suite, "--set", "strategies=[mine:Broken]", *words)
    failed = r"Warning: Broken: 1 trial ended in error: RuntimeError: it is broken \(mine\.py:\d+\)"
    assert done.returncode == 1 and len(re.findall(failed, done.stderr)) == 1


@pytest.mark.parametrize(
    ("arguments", "option"),
    [
        (("--storage", "."), "--storage"),
        (("--objective", "auk"), "--objective"),
        (("--set", "tuning.metric=accuracy"), "tuning.metric"),
        (("--set", "tuning.space={}", "--set", "strategies=[fedbuf]"), "--set strategies.0"),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_2(
    write: Write, typed: Typed, arguments: tuple[str, ...], option: str
) -> None:
    done = typed("tune", str(write()), *arguments)
    assert done.returncode == 2 and done.stdout == "" and "Traceback" not in done.stderr
    last = done.stderr.splitlines()[-1]
    assert last.startswith("Error: ") and option in last


@pytest.mark.slow
def test_another_space_in_the_same_storage_loses_nothing(write: Write, store: Store, tmp_path: Path) -> None:
    suite, folder = str(write()), str(store.folder)
    assert asyncfl(tmp_path, "tune", suite, "--store", folder, "--quiet").returncode == 0
    before = (store.folder / "tuning.journal").read_bytes()
    other = asyncfl(tmp_path, "tune", suite, "--store", folder, "--objective", "auc", "--quiet")
    assert other.returncode == 0 and "objective changed, so tuning starts anew" in other.stderr
    assert (store.folder / "tuning.journal").read_bytes().startswith(before)
    again = asyncfl(tmp_path, "tune", suite, "--store", folder)
    assert "all finished already" in again.stdout


def test_a_sampler_whose_package_is_missing(write: Write, typed: Typed) -> None:
    try:
        import cmaes  # noqa: F401
    except ImportError:
        done = typed("tune", str(write()), "--sampler", "cmaes")
        assert done.returncode == 2
        assert done.stderr == "Error: --sampler cmaes: needs the package cmaes: pip install cmaes\n"
    else:
        pytest.skip("cmaes is installed")
