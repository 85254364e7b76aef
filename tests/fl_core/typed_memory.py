"""Strategies as authors write them whose memory has types; mypy checks this file (pyproject.toml)."""

from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import ClassVar, assert_type

from torch import Tensor

from asyncfl import Server, Strategy, Update


@dataclass
class Velocity:
    """The last step, and how many steps there were."""

    last: Tensor
    steps: int = 0


class Typed(Strategy):
    """Asynchronous SGD with momentum 1/2 that keeps a dataclass."""

    title: ClassVar[str] = "Typed"
    kept_by_clients: ClassVar[tuple[str, ...]] = ("last",)

    def begin(self, server: Server[Velocity]) -> None:
        server.memory = Velocity(server.zeros())

    def receive(self, server: Server[Velocity], update: Update) -> None:
        memory = server.memory
        assert_type(memory.last, Tensor)
        memory.last = 0.5 * memory.last + update.delta
        memory.steps += 1
        server.step(self.server_lr * memory.last)


@dataclass(frozen=True, slots=True)
class Fixed:
    """The same, never written to."""

    last: Tensor
    steps: int = 0


class Frozen(Strategy):
    """Asynchronous SGD with momentum 1/2 that replaces a frozen dataclass."""

    title: ClassVar[str] = "Frozen"

    def begin(self, server: Server[Fixed]) -> None:
        server.memory = Fixed(server.zeros())

    def receive(self, server: Server[Fixed], update: Update) -> None:
        last = 0.5 * server.memory.last + update.delta
        server.memory = replace(server.memory, last=last, steps=server.memory.steps + 1)
        server.step(self.server_lr * last)


class Names(SimpleNamespace):
    """The same in a namespace whose names have types."""

    last: Tensor
    steps: int


class Named(Strategy):
    """Asynchronous SGD with momentum 1/2 that keeps a namespace of its own."""

    title: ClassVar[str] = "Named"

    def begin(self, server: Server[Names]) -> None:
        server.memory = Names(last=server.zeros(), steps=0)

    def receive(self, server: Server[Names], update: Update) -> None:
        memory = server.memory
        memory.last = 0.5 * memory.last + update.delta
        memory.steps += 1
        server.step(self.server_lr * memory.last)


class Untyped(Strategy):
    """Asynchronous SGD with momentum 1/2 that keeps what every strategy is given."""

    title: ClassVar[str] = "Untyped"

    def begin(self, server: Server) -> None:
        server.memory.last, server.memory.steps = server.zeros(), 0

    def receive(self, server: Server, update: Update) -> None:
        memory = server.memory
        memory.last = 0.5 * memory.last + update.delta
        memory.steps += 1
        server.step(self.server_lr * memory.last)
