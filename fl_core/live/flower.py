"""Flower: the ServerApp and the ClientApp of an experiment, and the transport between both.

`asyncfl/flower.py` exports them for a Flower project, in Flower's deployment or simulation; needs flwr. A
SuperNode takes one message at a time, so a job at work can neither be stopped nor collected: a dismissed job
is computed to its end and then ignored, and strategies that collect jobs are refused.

Fixed: both functions, their parameters and the keys of the configuration, which users' projects name.
"""

from collections import deque
from dataclasses import fields, replace
from functools import lru_cache
from logging import INFO, WARNING
from pathlib import Path
from time import monotonic, sleep, time
from typing import Any, TypeVar

from flwr.app import ArrayRecord, ConfigRecord, Context, Message, RecordDict
from flwr.clientapp import ClientApp
from flwr.common.logger import log
from flwr.serverapp import Grid, ServerApp
from torch import Tensor

from fl_core.experiment import Experiment
from fl_core.live.client import train
from fl_core.live.real_time import PULSE
from fl_core.live.run import LiveRun, SavedRun, refuses
from fl_core.live.transport import JobMessage, LostClients, RefusedError, UpdateMessage
from fl_core.loop.simulation import Event
from fl_core.problems.flower import Flower
from fl_core.problems.flower_apps.world import AppError, FlowerWorld
from fl_core.problems.problem import Problem, World

PLAIN = "plain"  # the record of numbers and strings
WHOLE = "whole"  # the only array of a record that is one tensor
UNKNOWN_PARTITIONS = (
    "importance: the clients' weights belong to partitions, and Flower does not say which partition a "
    "SuperNode has, so they may go to other nodes. Leave out importance, unless all weights are about equal"
)
COLLECTS = "it collects jobs, and a SuperNode at work cannot be asked for one"

M = TypeVar("M", JobMessage, UpdateMessage)


def records(message: JobMessage | UpdateMessage) -> RecordDict:
    """Return a message as Flower's records: tensors as arrays, equal arrays stored once by SuperLink."""
    content = RecordDict({PLAIN: ConfigRecord()})
    for field in fields(message):
        value = getattr(message, field.name)
        if isinstance(value, Tensor):
            content[field.name] = ArrayRecord({WHOLE: value})
        elif isinstance(value, dict):
            arrays = all(isinstance(item, Tensor) for item in value.values())
            content[field.name] = ArrayRecord(dict(value)) if arrays else ConfigRecord(value)
        else:
            content[PLAIN][field.name] = value
    return content


def message_of(kind: type[M], content: RecordDict) -> M:
    """Return the message from Flower's records."""
    values: dict[str, Any] = dict(content[PLAIN])
    for name, record in content.items():
        if isinstance(record, ArrayRecord):
            tensors = record.to_torch_state_dict()
            values[name] = tensors.pop(WHOLE, tensors)
        elif name != PLAIN:
            values[name] = dict(record)
    return kind(**values)


class SuperNodes:
    """A transport to Flower's nodes: client i is the i-th node, by identifier."""

    def __init__(self, grid: Grid, clients: int) -> None:
        log(INFO, "Waiting for %d SuperNodes", clients)
        while len(nodes := sorted(grid.get_node_ids())) < clients:
            sleep(PULSE)
        self.grid, self.nodes = grid, nodes
        self.clients: dict[str, int] = {}  # identifier of a message without an answer → client
        self.received: deque[UpdateMessage | LostClients] = deque()

    def send(self, message: JobMessage) -> None:
        """Push a job to a node.

        Raises:
            RefusedError: The strategy is to collect the job.
        """
        if message.waits:
            raise RefusedError(COLLECTS)
        self.clients[self._push(message)] = message.client

    def dismiss(self, client: int, index: int) -> None:
        """Let the node continue: the server ignores the answer."""

    def collect(self, client: int, index: int) -> None:
        """Raise RefusedError."""
        raise RefusedError(COLLECTS)

    def poll(self, timeout: float) -> UpdateMessage | LostClients | None:
        """Return the next answer of any node."""
        if not self.received and self.clients:
            answers = self.grid.pull_messages([*self.clients])
            self.received += map(
                self._receive, sorted(answers, key=lambda answer: answer.metadata.created_at)
            )
        if not self.received:
            sleep(timeout)
        return self.received.popleft() if self.received else None

    def stop(self) -> None:
        """Leave the nodes to other apps."""

    def _push(self, message: JobMessage) -> str:
        """Push a job to a node; return the message's identifier."""
        content = Message(self._content(message), self.nodes[message.client], "train")
        [identifier] = self.grid.push_messages([content])
        return str(identifier)

    def _content(self, message: JobMessage) -> RecordDict:
        """Return a job as expected by the node's app."""
        return records(message)

    def _update(self, answer: Message) -> UpdateMessage:
        """Return the update in a node's answer."""
        return message_of(UpdateMessage, answer.content)

    def _receive(self, answer: Message) -> UpdateMessage | LostClients:
        """Return the update in an answer; a client with an error is lost."""
        client = self.clients.pop(answer.metadata.reply_to_message_id)
        if answer.has_error():
            log(WARNING, "client %d is lost: %s", client, answer.error.reason)
            return LostClients([client])
        try:
            return self._update(answer)
        except AppError as error:
            log(WARNING, "client %d is lost: %s", client, error)
            return LostClients([client])


class AppNodes(SuperNodes):
    """A transport to nodes with a Flower app of the user's own, with messages of the app."""

    def __init__(self, grid: Grid, world: FlowerWorld) -> None:
        super().__init__(grid, world.n)
        self.world = world
        # Identifier of a message → job, and the times of sending by both clocks
        self.jobs: dict[str, tuple[JobMessage, float, float]] = {}

    def _content(self, message: JobMessage) -> RecordDict:
        rate = message.client_state.get("server_lr")
        return self.world.request(message.start, message.version, message.lr, message.steps, rate)

    def _push(self, message: JobMessage) -> str:
        identifier = super()._push(message)
        self.jobs[identifier] = message, time(), monotonic()
        return identifier

    def _update(self, answer: Message) -> UpdateMessage:
        message, began, clock = self.jobs.pop(answer.metadata.reply_to_message_id)
        job = message.job()
        self.world.finish(job, answer.content)
        job.new_moments = {}  # a node keeps its Context.state
        computed = monotonic() - clock  # Flower's share included
        return UpdateMessage.of(job, message.start, began=began, computed=computed)


class CannotRunError(Exception):
    """An experiment not runnable in Flower; Flower logs a single line, without a traceback."""

    __traceback__ = property(lambda self: None, lambda self, frames: None)


def server_app(experiment: Experiment, app_folder: Path | None = None) -> ServerApp:
    """Return the ServerApp of an experiment: the strategy with a node for each client.

    The run's configuration has `unit`, the seconds in a unit of virtual time, and `folder`, for the results:
    `run.live` for a replay, `jobs.csv` with a row for each job, and `curve.csv` with a row for each
    evaluation. An experiment that cannot run ends with CannotRunError before the first message; or later, at
    the first collected job, if the strategy does not declare that it `collects`.

    Args:
        experiment: Scenario, strategy, seed.
        app_folder: For problem `flower`: the app's present folder, by default the folder in the problem. The
            app's own ClientApp runs on the nodes, unchanged.
    """
    app, name = ServerApp(), experiment.strategy.reference()

    @app.main()  # type: ignore[untyped-decorator]
    def serve(grid: Grid, context: Context) -> None:
        if reason := COLLECTS if experiment.strategy.collects else refuses(experiment):
            raise CannotRunError(f"{name} cannot run in Flower: {reason}")
        problem = experiment.scenario.problem
        if isinstance(problem, Flower):
            problem = problem.in_folder(app_folder or problem.app)
            if problem.evaluate == "clients":
                raise CannotRunError(
                    f"{name} cannot run in Flower: `evaluate` must name a central function, not clients"
                )
            if problem.importance != "equal":
                log(WARNING, "%s", UNKNOWN_PARTITIONS)
        world = problem.world(experiment.seed)
        run = LiveRun(experiment, world, float(context.run_config["unit"]), evaluate="test")
        try:
            nodes = AppNodes(grid, world) if isinstance(world, FlowerWorld) else SuperNodes(grid, world.n)
            for event in run.events(nodes):
                log(INFO, "%s", _line(event))
        except RefusedError as error:
            raise CannotRunError(f"{name} cannot go on in Flower: {error}") from None
        saved = SavedRun.of(run)
        log(INFO, "%s: %s; %s", run.simulation.status, run.simulation.reason, saved.curve[-1])
        saved.write(Path(str(context.run_config["folder"])))

    return app


def client_app(experiment: Experiment, *, waits: bool = False) -> ClientApp:
    """Return the ClientApp of an experiment: the strategy's local work on the problem's data.

    Args:
        experiment: The same as the server's.
        waits: Whether a client waits for the rest of the length that the scenario's law gives a job.
    """
    app = ClientApp()

    @app.train()  # type: ignore[untyped-decorator]
    def answer(message: Message, _context: Context) -> Message:
        began, clock = time(), monotonic()
        job = message_of(JobMessage, message.content)
        world = _world(experiment.scenario.problem, experiment.seed)
        update = replace(train(job, world, experiment.strategy.local), began=began)
        if waits:
            sleep(max(0.0, clock + job.seconds - monotonic()))
        return Message(records(update), reply_to=message)

    return app


@lru_cache(maxsize=1)
def _world(problem: Problem, seed: int) -> World:
    """Return the world of a problem; cached, since in Flower's simulation a process has many jobs."""
    return problem.world(seed)


def _line(event: Event) -> str:
    """Return an event in words."""
    client = "" if event.client is None else f", client {event.client}"
    staleness = "" if event.staleness is None else f", staleness {event.staleness}"
    return f"{event.kind.name.lower()}{client}{staleness}: version {event.version}"
