"""ServerApp and ClientApp over nodes that are threads: Flower's messages and apps, without its processes."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from time import monotonic
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest

from fl_core.experiment import Experiment
from fl_core.live.run import RUN, SavedRun, refuses
from fl_core.live.transport import JobMessage
from fl_core.problems.flower import Flower
from fl_core.scenario import Budget, Scenario
from fl_core.server.jobs import Update
from fl_core.server.server import Server
from fl_core.strategies.strategy import Strategy
from fl_core.testing.check_experiments import CLIENTS, changed, experiment, scenario

pytest.importorskip("flwr")
from flwr.app import Context, Message, RecordDict
from flwr.clientapp import ClientApp
from flwr.supercore.task_identity import TaskIdentity

from fl_core.live import flower

UNIT = 0.004  # seconds
UPDATES = 20
FIELDS = {"mindflayer": {"allotted": 1000}}  # on a slow machine all trials may be late


class Nodes:
    """A grid whose nodes are threads, each at work on one message at a time, as SuperNodes are."""

    def __init__(self, app: ClientApp) -> None:
        self.app = app
        self.nodes = [ThreadPoolExecutor(1) for _ in range(CLIENTS)]
        self.answers: dict[str, Future[Message]] = {}

    def get_node_ids(self) -> list[int]:
        return list(range(CLIENTS))

    def push_messages(self, messages: Iterable[Message]) -> list[str]:
        identifiers = []
        for message in messages:
            identifiers.append(identifier := f"message {len(self.answers)}")
            message.metadata.__dict__["_message_id"] = identifier
            node = self.nodes[message.metadata.dst_node_id]
            self.answers[identifier] = node.submit(self.app, message, context())
        return identifiers

    def pull_messages(self, identifiers: Iterable[str]) -> list[Message]:
        return [self.answers[name].result() for name in identifiers if self.answers[name].done()]


def context(**config: Any) -> Any:
    return SimpleNamespace(run_config=config)


def served(experiment: Experiment, folder: Path) -> SavedRun:
    """A run in Flower; clients wait for the lengths of their jobs."""
    nodes: Any = Nodes(flower.client_app(experiment, waits=True))
    flower.server_app(experiment)(nodes, context(unit=UNIT, folder=str(folder)))
    return SavedRun.unpack((folder / RUN).read_bytes())


@pytest.fixture(autouse=True)
def in_a_process_of_flower(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run has a number, answers are looked for more often, and each message builds its world."""
    TaskIdentity.run_id = TaskIdentity.node_id = TaskIdentity.task_id = 1
    monkeypatch.setattr("fl_core.live.real_time.PULSE", UNIT)
    monkeypatch.setattr(flower, "_world", lambda problem, seed: problem.world(seed))


@pytest.mark.parametrize("name", sorted(Strategy.members()))
def test_every_strategy_runs_and_is_replayed_or_is_refused(name: str, tmp_path: Path) -> None:
    chosen = experiment(
        scenario(updates=UPDATES), changed(Strategy.members()[name](), **FIELDS.get(name, {}))
    )
    if chosen.strategy.collects or refuses(chosen):
        with pytest.raises(flower.CannotRunError, match=f"^{name} cannot run in Flower: "):
            served(chosen, tmp_path)
        return
    run = served(chosen, tmp_path)
    end = run.curve[-1]
    assert end["updates"] == UPDATES
    assert end["downloads_bytes"] >= end["uploads_bytes"] > 0  # every update was made from a model
    assert run.replay().bit_for_bit


def test_a_client_waits_for_the_rest_of_its_length() -> None:
    chosen = experiment(scenario())
    job = JobMessage(
        client=1, index=0, version=0, start=chosen.scenario.problem.world(1).initial(), broadcast={},
        client_state={}, moments={}, steps=2, lr=0.1, reports=False, seconds=0.5, waits=False,
    )  # fmt: skip
    deltas = []
    for waits in (True, False):
        began = monotonic()
        answer = flower.client_app(chosen, waits=waits)(
            Message(flower.records(job), 1, "train"),
            context(),
        )
        assert not waits or monotonic() - began >= job.seconds
        deltas.append(flower.message_of(flower.UpdateMessage, answer.content).delta.tolist())
    assert deltas[0] == deltas[1] != [0.0, 0.0]


class Curious(Strategy):
    """Collects what it can at each arrival, and does not say so."""

    title: ClassVar[str] = "Curious"

    def receive(self, server: Server, update: Update) -> None:
        for job in list(server.jobs):
            server.collect(job)


def test_what_is_refused_in_mid_run_is_one_line_for_the_user(tmp_path: Path) -> None:
    """As Flower's programs log what a ServerApp raises."""
    with pytest.raises(flower.CannotRunError) as refused:
        served(experiment(scenario(), Curious()), tmp_path)
    record = logging.LogRecord(
        "", 0, "", 0, "raised", None, (refused.type, refused.value, refused.value.__traceback__)
    )
    said = logging.Formatter().format(record).splitlines()
    assert said[0] == "raised" and len(said) == 2
    assert f"CannotRunError: {Curious.__module__}:Curious cannot go on in Flower: it collects" in said[1]
    assert not any(tmp_path.iterdir())


def test_what_cannot_run_in_real_time_is_refused_before_nodes_are_asked(tmp_path: Path) -> None:
    chosen = experiment(scenario(network={"uplink": 1}))
    with pytest.raises(flower.CannotRunError, match="network is simulated"):
        flower.server_app(chosen)(SimpleNamespace(), context())  # type: ignore[arg-type]


NUMPY_APP = Path(__file__).parents[1] / "flower_apps" / "numpy"


class OwnNodes(Nodes):
    """Nodes that run an app of the user's own, each with a partition and a state."""

    def __init__(self, app: ClientApp) -> None:
        super().__init__(app)
        self.contexts = [
            Context(
                1, node, {"partition-id": node, "num-partitions": CLIENTS}, RecordDict(), {"local-steps": 5}
            )
            for node in range(CLIENTS)
        ]

    def push_messages(self, messages: Iterable[Message]) -> list[str]:
        identifiers = []
        for message in messages:
            identifiers.append(identifier := f"message {len(self.answers)}")
            message.metadata.__dict__["_message_id"] = identifier
            node = message.metadata.dst_node_id
            self.answers[identifier] = self.nodes[node].submit(self.app, message, self.contexts[node])
        return identifiers


@pytest.mark.parametrize("importance", ["equal", "data", (2,) + (1,) * (CLIENTS - 1)])
def test_an_app_of_the_users_runs_as_it_is(
    importance: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its messages are its own, its states stay on the nodes, and updates move the server's model.

    Weights by examples belong to partitions, which Flower does not tell: a warning says so.
    """
    warnings = []
    monkeypatch.setattr(
        flower, "log", lambda level, text, *values: warnings.append(values) if level == logging.WARNING else 0
    )
    folder = shutil.copytree(NUMPY_APP, tmp_path / "app")
    (folder / "numpyexample" / "task.py").open("a").write(
        "\n\ndef evaluate(server_round, arrays):\n"
        "    (w,) = arrays.to_numpy_ndarrays()\n"
        "    return {'loss': float(((w[1:] - np.array([1, -1])) ** 2).sum())}\n"
    )
    problem = Flower(
        app=folder,
        clients=CLIENTS,
        initial="numpyexample.task:initial_arrays",
        evaluate="numpyexample.task:evaluate",
        metric="test/loss",
        importance=importance,
        examples=(20,) * CLIENTS,
    )
    strategy = {"name": "fedasync", "local": "client_app", "local_lr": 0.1}
    won = Experiment(scenario=Scenario(problem=problem, budget=Budget(updates=20)), strategy=strategy)
    (folder / "deployed.py").write_text("# what makes the server\n")
    described = Experiment.model_validate_json(won.model_dump_json())
    world = problem.in_folder(folder).world(0)
    nodes: Any = OwnNodes(world.app)
    record = tmp_path / "record"
    flower.server_app(described, folder)(nodes, context(unit=UNIT, folder=str(record)))
    run = SavedRun.unpack((record / RUN).read_bytes())
    assert run.curve[-1]["updates"] == 20
    assert run.curve[-1]["test/loss"] < 0.5 * run.curve[0]["test/loss"]
    assert sum(each.state["counts"]["jobs"] for each in nodes.contexts) >= 20
    assert warnings == [(flower.UNKNOWN_PARTITIONS,)] * (importance != "equal")
