"""The example app on Flower's engines: SuperLink and SuperNodes as processes of this machine, or simulated.

In an environment of its own: tox run -e flower.
"""

import json
import os
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

from fl_core.live.saved import SavedRun
from fl_core.loop.events import Kind
from fl_core.schema import Name

pytest.importorskip("flwr")
pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]

ROOT = Path(__file__).parents[3]
EXAMPLE = ROOT / "examples" / "flower"
BIN = Path(sys.executable).parent
CLIENTS = 3
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
            "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT),
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
            self.start("flower-supernode", *node, "--port", free_port())
            for _ in range(0 if simulated else CLIENTS)
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
        for _ in range(300):
            with socket.socket() as probe:
                if probe.connect_ex((host, int(port))) == 0:
                    return
            time.sleep(0.2)
        pytest.fail("SuperLink did not start")

    def run(self, updates: int, lose_one_after: int | None = None, **changed: Any) -> SavedRun:
        """Run the example with another description; a SuperNode is killed after so many arrivals."""
        app = self.folder / f"app-{updates}"
        shutil.copytree(EXAMPLE, app, ignore=shutil.ignore_patterns("__pycache__"))
        description = json.loads((app / "description.json").read_text())
        scenario = description["scenario"] | {"budget": {"updates": updates}}
        description["strategy"] = changed.pop("strategy", description["strategy"])
        (app / "description.json").write_text(json.dumps(description | {"scenario": scenario | changed}))
        run = subprocess.Popen(
            ["flwr", "run", app, "here", "--stream", "--run-config", f"folder='{app / 'run'}'"],
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert run.stdout is not None
        arrived, lines = 0, []
        for line in run.stdout:
            lines.append(line)
            arrived += "arrival" in line
            if arrived == lose_one_after:
                os.killpg(self.nodes[0].pid, signal.SIGKILL)
        (app / "log").write_text("".join(lines))
        assert run.wait(60) == 0 and (app / "run").exists(), "".join(lines)
        return SavedRun.unpack((app / "run" / "run.live").read_bytes())

    def stop(self) -> None:
        for process in self.groups:
            for way in (signal.SIGTERM, signal.SIGKILL):
                try:
                    os.killpg(process.pid, way)
                    process.wait(5)
                except (ProcessLookupError, subprocess.TimeoutExpired):
                    continue


@pytest.fixture
def federation(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Federation]:
    federation = Federation(tmp_path, simulated=request.param)
    yield federation
    federation.stop()


@pytest.mark.parametrize("federation", [False], indirect=True)
def test_replay_equals_what_flower_ran(federation: Federation, monkeypatch: pytest.MonkeyPatch) -> None:
    """The example as it is, with its LightningModule."""
    run = federation.run(12)
    monkeypatch.syspath_prepend(EXAMPLE)
    assert run.replay().bit_for_bit
    assert run.events[Name.KIND] == [Kind.ARRIVAL] * 12


@pytest.mark.parametrize("federation", [False], indirect=True)
def test_a_run_goes_on_without_a_supernode_that_was_killed(federation: Federation) -> None:
    run = federation.run(48, 9, strategy={"name": "ace"}, problem=QUADRATIC)
    assert run.replay().bit_for_bit
    kinds = run.events[Name.KIND]
    assert kinds.count(Kind.LOST) == 1 and kinds.count(Kind.ARRIVAL) == 48
    assert set(run.events[Name.CLIENT][kinds.index(Kind.LOST) + 1 :]) < set(range(CLIENTS))


@pytest.mark.parametrize("federation", [True], indirect=True)
def test_flowers_simulation_runs_the_same_app(federation: Federation) -> None:
    run = federation.run(12, strategy={"name": "ace"}, problem=QUADRATIC)
    assert run.replay().bit_for_bit
    assert run.events[Name.KIND] == [Kind.ARRIVAL] * 12
