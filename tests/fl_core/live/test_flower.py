"""The example app on Flower's engines: SuperLink and SuperNodes as processes of this machine, or simulated.

In an environment of its own: tox run -e flower.
"""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fl_core.experiment import Experiment
from fl_core.live.run import SavedRun
from fl_core.loop.events import EventKind
from fl_core.recorded_names import Name

pytest.importorskip("flwr")
pytestmark = [pytest.mark.slow, pytest.mark.timeout(3600)]

ROOT = Path(__file__).parents[3]
EXAMPLE = ROOT / "examples" / "flower"
BIN = Path(sys.executable).parent
CLIENTS, UPDATES = 3, 60  # as in the description
QUADRATIC = {
    "name": "quadratic",
    "clients": CLIENTS,
    "centres": [[-1.0], [0.0], [2.0]],
}  # imports no Lightning


def free_port() -> str:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return str(probe.getsockname()[1])


class Federation:
    """SuperLink and SuperNodes, each with all that it starts in a process group of its own."""

    def __init__(self, folder: Path, *, simulated: bool = False) -> None:
        self.folder, self.address = folder, f"127.0.0.1:{free_port()}"
        self.groups: list[subprocess.Popen[bytes]] = []
        self.environment = os.environ | {
            "FLWR_HOME": str(folder / "flower"),
            "FLWR_TELEMETRY_ENABLED": "0",
            "FLWR_DISABLE_UPDATE_CHECK": "1",
            "FLWR_SUPEREXEC_TASK_POLL_INTERVAL": "0.2",  # seconds, instead of 1
            "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT),
            "PYTHONUNBUFFERED": "1",  # `flwr run` prints what it streams without flushing
        }
        (folder / "flower").mkdir()
        (folder / "flower" / "config.toml").write_text(
            f'[superlink.here]\naddress = "{self.address}"\ninsecure = true\n'
            + f"options.num-supernodes = {CLIENTS}\n" * simulated
        )
        link = ["--insecure", "--disable-runtime-dependency-installation", *["--simulation"] * simulated]
        self.start("flower-superlink", *link, "--port", self.address.rpartition(":")[2])
        self.wait_for_the_link()
        node = ["--insecure", "--superlink", self.address]
        self.nodes = [
            self.start(
                *("flower-supernode", *node, "--port", free_port()),
                *("--node-config", f"partition-id={partition} num-partitions={CLIENTS}"),
            )
            for partition in range(0 if simulated else CLIENTS)
        ]

    def start(self, program: str, *arguments: str) -> subprocess.Popen[bytes]:
        with (self.folder / f"{program}-{len(self.groups)}.log").open("w") as log:
            process = subprocess.Popen(
                [BIN / program, *arguments],
                cwd=self.folder,
                env=self.environment,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.groups.append(process)
        return process

    def wait_for_the_link(self) -> None:
        host, _, port = self.address.partition(":")
        for _ in range(3000):  # ten minutes, as machines differ
            with socket.socket() as probe:
                if probe.connect_ex((host, int(port))) == 0:
                    return
            time.sleep(0.2)
        pytest.fail("SuperLink did not start")

    def run(self, name: str, lose_one_after: int | None = None, **changed: Any) -> Path:
        """Run the example with another description; a SuperNode is killed after so many arrivals."""
        app = self.folder / name
        shutil.copytree(EXAMPLE, app, ignore=shutil.ignore_patterns("__pycache__"))
        description = json.loads((app / "description.json").read_text())
        description["scenario"] |= changed.pop("scenario", {})
        (app / "description.json").write_text(json.dumps(description | changed))
        return self.run_app(app, lose_one_after)

    def run_app(self, app: Path, lose_one_after: int | None = None) -> Path:
        """Run the app in a folder; a SuperNode is killed after so many arrivals."""
        run = subprocess.Popen(
            ["flwr", "run", app, "here", "--stream", "--run-config", f"folder='{app / 'run'}'"],
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert run.stdout is not None
        arrived = 0
        with (app / "log").open("w") as log:
            for line in run.stdout:
                log.write(line)
                arrived += "arrival" in line
                if arrived == lose_one_after:
                    os.killpg(self.nodes[0].pid, signal.SIGKILL)
        assert run.wait(600) == 0
        return app

    def stop(self) -> None:
        for process in self.groups:
            for way in (signal.SIGTERM, signal.SIGKILL):
                try:
                    os.killpg(process.pid, way)
                    process.wait(5)
                except (ProcessLookupError, subprocess.TimeoutExpired):
                    continue


@pytest.fixture(scope="module")
def federation(
    tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[Federation]:
    federation = Federation(tmp_path_factory.mktemp("federation"), simulated=request.param)
    yield federation
    federation.stop()


deployed = pytest.mark.parametrize("federation", [False], indirect=True)
simulated = pytest.mark.parametrize("federation", [True], indirect=True)


def recorded(app: Path) -> SavedRun:
    assert (app / "run").exists(), (app / "log").read_text()
    return SavedRun.unpack((app / "run" / "run.live").read_bytes())


@deployed
def test_what_cannot_run_ends_in_a_line(federation: Federation) -> None:
    log = (
        federation.run("refused", strategy={"name": "favas"}, scenario={"problem": QUADRATIC}) / "log"
    ).read_text()
    assert "CannotRunError: favas cannot run in Flower: it collects jobs" in log
    assert "Traceback" not in log and "Waiting" not in log


@deployed
def test_replay_equals_what_supernodes_ran(federation: Federation, monkeypatch: pytest.MonkeyPatch) -> None:
    """The example as it is but for its budget: each message takes seconds to import Lightning."""
    run = recorded(federation.run("example", scenario={"budget": {"updates": 6}}))
    monkeypatch.syspath_prepend(EXAMPLE)
    assert run.replay().bit_for_bit
    assert run.events[Name.KIND] == [EventKind.ARRIVAL] * 6


@deployed
def test_replay_equals_a_long_run(federation: Federation) -> None:
    """FedBuff."""
    run = recorded(federation.run("fedbuff", scenario={"problem": QUADRATIC}))
    assert run.replay().bit_for_bit
    assert run.events[Name.KIND] == [EventKind.ARRIVAL] * UPDATES


NUMPY_APP = ROOT / "tests" / "fl_core" / "flower_apps" / "numpy"
PAGE = ROOT / "docs" / "how-to" / "flower.md"
EVALUATE = """

def evaluate(server_round, arrays):
    (w,) = arrays.to_numpy_ndarrays()
    return {"loss": float(((w[1:] - np.array([1, -1])) ** 2).sum())}
"""


@deployed
def test_an_app_of_the_users_is_deployed_as_its_page_says(federation: Federation) -> None:
    """Its ClientApp runs on SuperNodes with parts and states of their own, under the strategy chosen."""
    app = Path(shutil.copytree(NUMPY_APP, federation.folder / "own"))
    (app / "numpyexample" / "task.py").open("a").write(EVALUATE)
    problem = {
        "name": "flower",
        "app": str(app),
        "clients": CLIENTS,
        "initial": "numpyexample.task:initial_arrays",
        "evaluate": "numpyexample.task:evaluate",
        "metric": "test/loss",
    }
    chosen = Experiment.model_validate(
        {
            "scenario": {"problem": problem, "budget": {"updates": 9}},
            "strategy": {"name": "fedasync", "local": "client_app", "local_lr": 0.1},
        }
    )
    (app / "description.json").write_text(chosen.model_dump_json())
    (deployed,) = re.findall(r"```python\n# my-app/deployed.py\n(.*?)```", PAGE.read_text(), re.DOTALL)
    (app / "deployed.py").write_text(deployed)
    project = (app / "pyproject.toml").read_text()
    project = re.sub('serverapp = ".*"', 'serverapp = "deployed:server"', project)
    (app / "pyproject.toml").write_text(f'{project}folder = "deployed"\nunit = 60.0\n')
    run = recorded(federation.run_app(app))
    assert run.events[Name.KIND] == [EventKind.ARRIVAL] * 9
    assert run.curve[-1]["test/loss"] < 0.5 * run.curve[0]["test/loss"]


@deployed
def test_a_run_goes_on_without_a_supernode_that_was_killed(federation: Federation) -> None:
    """The last one here, as the SuperNode is gone."""
    run = recorded(federation.run("ace", 9, strategy={"name": "ace"}, scenario={"problem": QUADRATIC}))
    assert run.replay().bit_for_bit
    kinds = run.events[Name.KIND]
    assert kinds.count(EventKind.LOST) == 1 and kinds.count(EventKind.ARRIVAL) == UPDATES
    assert set(run.events[Name.CLIENT][kinds.index(EventKind.LOST) + 1 :]) < set(range(CLIENTS))


@simulated
def test_flowers_simulation_runs_the_example_as_it_is(
    federation: Federation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """FedBuff, in processes that stay."""
    run = recorded(federation.run("example"))
    monkeypatch.syspath_prepend(EXAMPLE)
    assert run.replay().bit_for_bit
    assert run.events[Name.KIND] == [EventKind.ARRIVAL] * UPDATES
