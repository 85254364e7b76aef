"""`asyncfl run` as a user types it: interrupted with Ctrl-C, its driver killed, run to its end, run again."""

import os
import re
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from patience import PATIENCE, eventually
from recorded import held, runs, tables, undisturbed, write_suite

from benchmarks.mlflow_store.store import Store

Start = Callable[..., subprocess.Popen[str]]


def group_is_alive(leader: int) -> bool:
    try:
        os.killpg(leader, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.fixture
def newest(store: Store) -> Callable[[], float]:
    """When a checkpoint was last written."""
    return lambda: max(
        (path.stat().st_mtime for path in store.outbox.glob("small/*.checkpoint")), default=0.0
    )


@pytest.mark.slow
def test_ctrl_c_and_going_on(tmp_path: Path, store: Store, start: Start, newest: Callable[[], float]) -> None:
    write_suite(tmp_path, held(tmp_path / "go", at=300), updates=500)
    command = ("run", "small.yaml", "--store", str(store.folder), "--workers", "2")
    first = start(*command)
    assert eventually(lambda: newest() > 0)
    os.killpg(first.pid, signal.SIGINT)  # as a terminal does
    output, _ = first.communicate(timeout=PATIENCE)
    assert first.returncode == 130
    assert output.splitlines()[-1] == f"Resume with: asyncfl {' '.join(command)}"
    assert "Traceback" not in output
    stopped = re.search(r"^Stopped: (\d) of 4 finished", output, re.MULTILINE)
    assert stopped is not None
    before = int(stopped[1])  # baselines, if one worker took both runs side by side
    assert eventually(lambda: not group_is_alive(first.pid))

    (tmp_path / "go").touch()
    second = start(*command, "--quiet", "--no-report")
    output, _ = second.communicate(timeout=PATIENCE)
    assert second.returncode == 0
    assert list(tables(store).values()) == undisturbed(tmp_path, seeds=2, updates=500)
    assert f": {4 - before} done{f', {before} finished before' if before else ''}." in output
    assert "Held" in output and "Report:" not in output

    third = start(*command)
    output, _ = third.communicate(timeout=PATIENCE)
    assert third.returncode == 0
    assert output.startswith(
        "small: 2 runs and 2 centralised baselines, all finished already; nothing to do.\n"
    )
    assert f"Report: {store.reports / 'small.html'}" in output
    assert len(runs(store)) == 2


@pytest.mark.usefixtures("fork_server")
def test_errors_and_mistakes(
    tmp_path: Path, store: Store, typed: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    write_suite(tmp_path, f"{{name: 'sluggish:Failing', mended: '{tmp_path / 'mended'}'}}", seeds=1)
    foreign = typed("run", "small.yaml", "--store", str(tmp_path), "--tracking-uri", "mlruns")
    assert foreign.returncode == 2
    assert foreign.stderr.startswith("Error: --tracking-uri mlruns: must be ")
    assert foreign.stderr.count("\n") == 1

    failed = typed("run", "small.yaml", "--store", str(store.folder), "--no-report")
    output = failed.stdout + failed.stderr
    assert failed.returncode == 1
    assert re.search(r"error: RuntimeError: the twentieth\s+update\s+\(\S*sluggish\.py:\d+\)\n", output)
    assert "1 done, 1 ended in error" in output and "Traceback" not in output
