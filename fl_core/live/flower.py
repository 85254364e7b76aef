"""Flower: a ServerApp and a ClientApp of an experiment, and the transport between them over Flower's grid.

The only module that imports flwr; on the deployment engine clients are SuperNodes, in Flower's simulation its
virtual nodes. A SuperNode takes one message at a time, and starts a process for each. So a job that it works
on can neither be stopped nor asked for: what was dismissed is computed to its end and then ignored, and
strategies that collect jobs are refused.
"""

import functools
from collections import deque
from dataclasses import fields
from logging import WARNING
from time import monotonic, sleep
from typing import Any, TypeVar

from flwr.app import ArrayRecord, ConfigRecord, Context, Message, RecordDict
from flwr.clientapp import ClientApp
from flwr.common.logger import log
from flwr.serverapp import Grid, ServerApp
from torch import Tensor

from fl_core.experiment import Experiment
from fl_core.live.client import train
from fl_core.live.transport import JobMessage, LostClients, UpdateMessage

PLAIN = "plain"  # the record of what is no tensor
POLL = 0.1  # seconds between two looks at what has arrived

M = TypeVar("M", JobMessage, UpdateMessage)


def records(message: JobMessage | UpdateMessage) -> RecordDict:
    """Return a message as Flower's records: each field of tensors as arrays, the others as one record."""
    content = {field.name: getattr(message, field.name) for field in fields(message)}
    tensors = {name: value for name, value in content.items() if isinstance(value, Tensor | dict)}
    plain = {name: value for name, value in content.items() if name not in tensors and value is not None}
    arrays = {
        name: ArrayRecord({**value} if isinstance(value, dict) else {"": value}) for name, value in tensors.items()
    }
    return RecordDict({PLAIN: ConfigRecord(plain), **arrays})


def message_of(kind: type[M], content: RecordDict) -> M:
    """Return the message of which Flower's records were made."""
    values: dict[str, Any] = dict.fromkeys(field.name for field in fields(kind))
    for name, record in content.items():
        if isinstance(record, ArrayRecord):
            tensors = record.to_torch_state_dict()
            values[name] = tensors.pop("", tensors)
        else:
            values |= record
    return kind(**values)


class SuperNodes:
    """Flower's nodes as the clients of a run, in the order in which they registered."""

    def __init__(self, grid: Grid, clients: int) -> None:
        while len(nodes := sorted(grid.get_node_ids())) < clients:
            sleep(POLL)
        self.grid, self.nodes = grid, nodes[:clients]
        self.clients: dict[str, int] = {}  # who answers, by the message's identifier
        self.replies: deque[UpdateMessage | LostClients] = deque()

    def send(self, message: JobMessage) -> None:
        content = Message(records(message), self.nodes[message.client], "train")
        [identifier] = self.grid.push_messages([content])
        self.clients[identifier] = message.client

    def dismiss(self, client: int, index: int) -> None:
        """Do nothing: a SuperNode cannot be stopped, and what it answers is ignored by the server."""

    def collect(self, client: int, index: int) -> None:
        raise NotImplementedError  # strategies that collect are refused

    def poll(self, timeout: float) -> UpdateMessage | LostClients | None:
        until = monotonic() + timeout
        while not self.replies and self.clients:
            replies = self.grid.pull_messages(list(self.clients))
            self.replies += map(self._read, sorted(replies, key=lambda reply: reply.metadata.created_at))
            if self.replies or (left := until - monotonic()) <= 0:
                break
            sleep(min(POLL, left))
        return self.replies.popleft() if self.replies else None

    def _read(self, reply: Message) -> UpdateMessage | LostClients:
        """Return an update; of a node that is gone or failed, the client as lost."""
        client = self.clients.pop(reply.metadata.reply_to_message_id)
        if reply.has_error():
            log(WARNING, "client %d is lost: %s", client, reply.error.reason)
            return LostClients([client])
        return message_of(UpdateMessage, reply.content)

    def stop(self) -> None:
        """Do nothing: SuperNodes go on to serve other apps."""


def client_app(experiment: Experiment, *, waits: bool = False) -> ClientApp:
    """Return the ClientApp of an experiment: the strategy's local work on the problem's data.

    Args:
        experiment: What the server runs.
        waits: Whether a client waits for the rest of the length that the scenario's law gives to its job.
    """
    app = ClientApp()

    @app.train()
    def answer(message: Message, _: Context) -> Message:
        began = monotonic()
        job = message_of(JobMessage, message.content)
        world = experiment.scenario.problem.world(experiment.seed)
        update = train(job, world, experiment.strategy.local)
        if waits:
            sleep(max(0.0, began + job.seconds - monotonic()))
        return Message(records(update), reply_to=message)

    return app
