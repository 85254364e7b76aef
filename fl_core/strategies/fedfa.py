"""FedFa: the model is the mean of the K newest client models, renewed at every arrival.

Xu, Zhang, Di, Liu, Alharthi, Cao: FedFa: a fully asynchronous training paradigm for federated learning.
IJCAI 2024. The window starts filled with the first model. FedFa-Delta (`form: delta`) has a window of the K
newest differences instead, zeros at first, and every arrival is a step of their mean: x ← x + (1/K) Σ Δ. No
formula of that form was available; this one is our reading.
"""

from typing import Annotated, ClassVar, Literal

from fl_core.strategies.toolkit import Count, Server, Strategy, Tune, Update


class FedFa(Strategy):
    """FedFa, the mean of a sliding window of client models (Xu et al., IJCAI 2024)."""

    name: ClassVar[str] = "fedfa"
    title: ClassVar[str] = "FedFa"

    window: Annotated[Count, Tune(1, 32)] = 5  # K, newest models averaged
    form: Literal["param", "delta"] = "param"  # what the window holds: models, or their differences

    @property
    def refuses_optimizer(self) -> str | None:
        return "its model is a mean of models; form: delta has a direction" if self.form == "param" else None

    def begin(self, server: Server) -> None:
        filled = self.form == "param"
        server.memory.window = (server.model if filled else server.zeros()).repeat(self.window, 1)  # [K, d]
        server.memory.oldest = 0

    def receive(self, server: Server, update: Update) -> None:
        memory = server.memory
        old = memory.window[memory.oldest].clone()
        memory.window[memory.oldest] = update.model if self.form == "param" else update.delta
        memory.oldest = (memory.oldest + 1) % self.window
        if self.form == "param":
            server.step(self.server_lr * (update.model - old) / self.window)
        else:
            server.step(self.server_lr * memory.window.mean(0))
