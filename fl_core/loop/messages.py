"""Coding of models and updates on their way, and the bytes of each message (docs/rules.md, rules 21, 22).

`Dispatch` uses it for each model sent, `Simulation` for each update received.

Fixed: the bytes, which end runs with a budget of bytes and are stored on the leaderboard.
"""

from torch import Tensor

from fl_core.compression import bytes_of
from fl_core.loop.state import RunState
from fl_core.server.jobs import Update
from fl_core.server.state import tensor_bytes
from fl_core.strategies.strategy import Strategy
from fl_core.streams import stream


class Messages:
    """Models to clients and updates to the server; the memories of error feedback are in the state."""

    def __init__(self, strategy: Strategy, state: RunState, seed: int, message: int | None = None) -> None:
        self.uplink, self.downlink = strategy.uplink, strategy.downlink
        self._message = message  # bytes of a whole model, in place of the simulated one's
        self._sends, self._state, self._seed = strategy.sends, state, seed
        # Sizes of the last job by direction, reused while jobs have the same broadcast
        self._sizes: dict[str, int] = {}
        self._broadcast: dict[str, Tensor] | None = None

    def begin(self, n: int) -> None:
        """Tell all n clients the first model, where codings send differences to known vectors."""
        if self.downlink is not None and self.downlink.feedback == "ef21":
            self._state.downlink = dict.fromkeys(range(n), self._state.model)

    def sizes(self, start: Tensor, version: int) -> dict[str, int]:
        """Return the bytes of a job in each direction: a model and a version's broadcast, an update (22)."""
        broadcast = self._state.broadcasts.get(version)
        if broadcast is None or broadcast is not self._broadcast:
            down = bytes_of(start, self.downlink) + tensor_bytes(broadcast)
            self._sizes = {"down": down, "up": bytes_of(start, self.uplink)}
            if self._message is not None:
                model_size = bytes_of(start, None)
                self._sizes = {
                    way: -(-size * self._message // model_size) for way, size in self._sizes.items()
                }
            self._broadcast = broadcast
        return self._sizes

    def model(self, model: Tensor, client: int, *message: int) -> Tensor:
        """Return the model [d] received by a client (21); `message` are numbers of the random stream."""
        if self.downlink is None or not self._sends:
            return model
        rng, remembered = stream(self._seed, "downlink", client, *message), self._state.downlink
        received, memory = self.downlink.send(model, remembered.get(client), rng)
        if memory is not None:
            remembered[client] = memory
        return received

    def update(self, update: Update, client: int, index: int) -> None:
        """Replace a client's update by the update received at the server (21)."""
        if self.uplink is None or not self._sends:
            return
        rng, remembered = stream(self._seed, "uplink", client, index), self._state.uplink
        received, memory = self.uplink.send(getattr(update, self._sends), remembered.get(client), rng)
        setattr(update, self._sends, received)
        if memory is not None:
            remembered[client] = memory
