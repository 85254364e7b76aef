"""Messages between a server and real clients as bytes, and the interface of transports.

Transports are local processes (`processes`) and Flower nodes (`flower`); `real_time` sends and polls.

Fixed: the packed form, since users keep files of `SavedRun` (`run`). Free: fields of messages: both ends run
the same code.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, fields
from math import prod
from struct import Struct
from typing import Any, Protocol, Self

import numpy as np
import torch
from torch import Tensor

from fl_core.keys import digest
from fl_core.server.jobs import Job

LENGTH = Struct("<Q")  # first bytes of a message: the length of its JSON
DTYPE, SHAPE = "dtype", "shape"  # keys in the JSON in the place of a tensor


class Packed:
    """A message as bytes: fields as JSON, followed by the numbers of the tensors, in order."""

    def pack(self) -> bytes:
        """Return the message as bytes."""
        tensors: list[np.ndarray] = []

        def place(tensor: Tensor) -> dict[str, Any]:
            tensors.append(array := tensor.detach().cpu().contiguous().numpy())
            return {DTYPE: array.dtype.str, SHAPE: array.shape}

        values = {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]
        header = json.dumps(values, default=place).encode()
        return b"".join([LENGTH.pack(len(header)), header, *(array.tobytes() for array in tensors)])

    @classmethod
    def unpack(cls, content: bytes) -> Self:
        """Return the original message, with tensors on the CPU."""
        at = LENGTH.size + LENGTH.unpack_from(content)[0]

        def tensor(value: dict[str, Any]) -> Any:
            nonlocal at
            if value.keys() != {DTYPE, SHAPE}:
                return value
            shape, dtype = value[SHAPE], np.dtype(value[DTYPE])
            array = np.frombuffer(content, dtype, prod(shape), at).reshape(shape)
            at += array.nbytes
            return torch.tensor(array)

        return cls(**json.loads(content[LENGTH.size : at], object_hook=tensor))


@dataclass(frozen=True, slots=True, kw_only=True)
class JobMessage(Packed):
    """A job on the way to the client: the model, and all other inputs of the local steps."""

    client: int
    index: int  # the client's index-th job; names its random streams
    version: int
    start: Tensor  # θ_start [d]
    broadcast: dict[str, Tensor]
    client_state: dict[str, Tensor]
    moments: dict[str, Tensor]  # of the client's optimiser; empty if not kept between jobs
    steps: int  # K
    lr: float  # η_l
    reports: bool  # whether the strategy reads training losses
    seconds: float  # the job's length: a client that computed faster waits for the rest
    waits: bool  # whether the client waits until the job is collected

    @classmethod
    def of(cls, job: Job, seconds: float) -> Self:
        """Return the message of a job in service."""
        return cls(**cls._inputs(job), seconds=seconds)

    def job(self) -> Job:
        """Return the job as seen by the client."""
        return Job(**self._inputs(self), sent=0)

    @classmethod
    def _inputs(cls, source: Any) -> dict[str, Any]:
        """Return the fields that a job and its message have in common."""
        return {field.name: getattr(source, field.name) for field in fields(cls) if field.name != "seconds"}

    def finished(self, elapsed: float) -> int:
        """Return the steps finished after some seconds, the length being split evenly over all steps (19)."""
        return min(self.steps, int(self.steps * elapsed / self.seconds)) if self.seconds else self.steps


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateMessage(Packed):
    """A client's result of a job."""

    client: int
    index: int
    version: int  # as received
    received: str  # digest of the received model
    steps: int  # number of steps made
    delta: Tensor  # θ_end − θ_start [d]
    gradient: Tensor  # mean corrected gradient [d]
    new_moments: dict[str, Tensor]  # of the client's optimiser; empty if not kept between jobs
    reported: dict[str, float]  # means of reported losses over the steps
    finite: bool
    began: float  # begin of the job in seconds since 1970, by the client's clock
    computed: float  # seconds of computing

    @classmethod
    def of(cls, job: Job, received: Tensor, *, began: float, computed: float) -> Self:
        """Return the message of a job, computed on the model received by the client."""
        content: dict[str, Any] = {"received": digest_of(received), "began": began, "computed": computed}
        taken = {field.name: getattr(job, field.name) for field in fields(cls) if field.name not in content}
        return cls(**taken, **content)


@dataclass(frozen=True, slots=True)
class LostClients:
    """Clients of a lost process or machine, gone for good with all jobs."""

    clients: Sequence[int]


class RefusedError(RuntimeError):
    """A strategy's request not supported by a transport."""


class Transport(Protocol):
    """Carrier of messages between the server and the clients of a run.

    An update on its way when `dismiss` or `collect` is called may still arrive; the server ignores updates of
    jobs no longer in flight.
    """

    def send(self, message: JobMessage) -> None:
        """Send a job to a client; returns at once."""

    def dismiss(self, client: int, index: int) -> None:
        """Tell a client to stop working on a job; no update is needed."""

    def collect(self, client: int, index: int) -> None:
        """Let a client answer at once with the steps finished by now."""

    def poll(self, timeout: float) -> UpdateMessage | LostClients | None:
        """Return the next message in order of arrival; None if none comes within `timeout` seconds."""

    def stop(self) -> None:
        """End all clients."""


def digest_of(model: Tensor) -> str:
    """Return the digest of a model's numbers."""
    return digest(model.detach().cpu().contiguous().numpy().tobytes())
