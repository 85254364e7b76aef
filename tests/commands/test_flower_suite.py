"""A suite of a Flower app by the commands: run, compare, check, tune; what fails is recorded, and no more.

In an environment of its own: tox run -e flower.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

pytest.importorskip("flwr")
pytestmark = [pytest.mark.slow, pytest.mark.timeout(7200)]

ROOT = Path(__file__).parents[2]
APP = ROOT / "tests" / "fl_core" / "flower_apps" / "numpy"
SUITE = {
    "name": "mine",
    "seeds": 3,
    "problem": {
        "name": "flower",
        "app": "app",
        "clients": 4,
        "initial": "numpyexample.task:initial_arrays",
        "metric": "test/loss",
        "target": 0.5,
    },
    "timing": {"durations": {"name": "two_speed", "share": 0.25, "slow": 5}},
    "budget": {"updates": 16},
    "evaluations": 4,
    "lr": 0.05,
    "strategies": ["fedavg", {"name": "fedbuff", "buffer": 2}, "fedasync"],
    "tuning": {"trials": 2, "seeds": [100]},
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    shutil.copytree(APP, tmp_path / "app")
    (tmp_path / "mine.yaml").write_text(yaml.safe_dump(SUITE))
    return tmp_path


def asyncfl(folder: Path, line: str, code: int = 0) -> str:
    done = subprocess.run(
        [sys.executable, "-c", "from asyncfl.__main__ import main; main()", *line.split()],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=3600,
        check=False,
    )
    assert done.returncode == code, line + done.stdout + done.stderr
    return done.stdout + done.stderr


def test_commands_work_on_an_app(folder: Path) -> None:
    assert "9" in asyncfl(folder, "show mine.yaml")
    said = asyncfl(folder, "run mine.yaml --workers 2")
    assert "9 done" in said
    assert "FedBuff" in asyncfl(folder, "compare fedbuff fedavg --suite mine")
    asyncfl(folder, "check mine.yaml --write --baseline baseline.json")
    asyncfl(folder, "check mine.yaml --baseline baseline.json")
    asyncfl(folder, "tune mine.yaml --workers 2")
    tuned = yaml.safe_load((folder / "tuned-mine.yaml").read_text())
    assert "FedBuff" in str(tuned)


def test_runs_that_fail_are_recorded_and_the_others_done(folder: Path) -> None:
    """Client 2 fails where the rate is 0.5, and returns NaN where it is 0.4."""
    code = folder / "app" / "numpyexample" / "client_app.py"
    fault = (
        '    rate, client = msg.content["config"]["lr"], context.node_config["partition-id"]\n'
        '    if rate == 0.5 and client == 2:\n        raise RuntimeError("no such file")\n'
        "    if rate == 0.4 and client == 2:\n        w = w * np.nan\n"
    )
    lines = code.read_text()
    place = "    w = w.copy()\n"
    code.write_text(lines.replace(place, place + fault))
    rates = {"fedavg": 0.05, "fedbuff": 0.4, "fedasync": 0.5}
    (folder / "mine.yaml").write_text(yaml.safe_dump({**SUITE, "lr": rates}))
    asyncfl(folder, "run mine.yaml --no-report", code=1)
    table = asyncfl_results(folder)
    assert table == {"FedAvg": {"done"}, "FedBuff": {"diverged"}, "FedAsync": {"error"}}


def test_a_cluster_computes_the_same_numbers(folder: Path) -> None:
    """Workers of Ray import the app from its folder."""
    cluster_utils = pytest.importorskip("ray.cluster_utils")
    suite = {**SUITE, "seeds": 1, "strategies": ["fedavg", {"name": "fedbuff", "buffer": 2}]}
    (folder / "mine.yaml").write_text(yaml.safe_dump(suite))
    local = losses(folder, "run mine.yaml --no-report --workers 1 --store local", "local")
    cluster = cluster_utils.Cluster(
        initialize_head=True, head_node_args={"num_cpus": 2, "include_dashboard": False}
    )
    try:
        address = f"--engine ray --address {cluster.address}"
        assert losses(folder, f"run mine.yaml --no-report {address} --store there", "there") == local
    finally:
        cluster.shutdown()
    assert len(local) == 2


def losses(folder: Path, line: str, store: str) -> dict[str, float]:
    """The last losses of strategies, after a command."""
    asyncfl(folder, line)
    return printed(
        folder,
        f"import asyncfl, json; t = asyncfl.results('mine', store={store!r});"
        "print(json.dumps(t.set_index('strategy')['test/loss'].to_dict()))",
    )


def asyncfl_results(folder: Path) -> dict[str, set[str]]:
    """The states of the recorded runs of each strategy."""
    states = printed(
        folder,
        "import asyncfl, json; t = asyncfl.results('mine');"
        "print(json.dumps(t.groupby('strategy').status.agg(lambda s: sorted(map(str, set(s)))).to_dict()))",
    )
    return {name.partition(" (")[0]: set(status) for name, status in states.items()}


def printed(folder: Path, script: str) -> Any:
    """What a script prints last, as JSON."""
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=3600,
        check=True,
    )
    return json.loads(done.stdout.splitlines()[-1])
