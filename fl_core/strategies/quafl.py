"""QuAFL: polled clients send their models as they are, and both sides average.

Zakerinia, Talaei, Nadiradze, Alistarh: QuAFL: federated averaging can be both asynchronous and
communication-efficient. arXiv 2206.10032, 2022. Clients make up to K steps on models of their own. In every
round s of them, drawn uniformly, get the server's X and answer at once with Y_i, wherever they are in their
work: X ← (X + Σ Y_i)/(s + 1) at the server and, with the old X, X_i ← (X + s Y_i)/(s + 1) at the client. A
client that joins starts from X.

In the paper all that is sent is quantised: clients receive X near their Y_i, the server each Y_i near its X.
`uplink` and `downlink` say how; `lattice` is the paper's quantiser, without `rotate` as in its code. Messages
that are decoded wrong, since the two models are too far apart, are counted. All clients of a poll share the
random stream of the downlink, as they would decode a single broadcast.

Based on the paper's abstract and overview and on the published code, not on its algorithm; the default values
are ours, and by default nothing is quantised. The code multiplies the clients' rates by (s + 1)/s, as we do
not.
"""

from typing import ClassVar

from torch import Tensor

from fl_core.strategies.polling import Polling
from fl_core.strategies.toolkit import Server, Update


class QuAFL(Polling):
    """QuAFL: the server and polled clients average their models (Zakerinia et al., arXiv, 2022)."""

    name: ClassVar[str] = "quafl"
    title: ClassVar[str] = "QuAFL"
    sends: ClassVar[None] = None
    kept_by_clients: ClassVar[tuple[str, ...]] = ("models",)

    def begin(self, server: Server) -> None:
        super().begin(server)
        server.memory.models = {}  # X_i of the clients that were polled

    def answer(self, server: Server, update: Update) -> Tensor:
        """Return Y_i as the server receives it, and set X_i."""
        s, i, x, y = server.memory.polled, update.client, server.model, update.model
        received, sent = x, y
        if self.downlink:
            received, wrong = self.downlink.send_near(y, x, server.stream("downlink", server.version))
            server.misread += wrong
        if self.uplink:
            sent, wrong = self.uplink.send_near(x, y, server.stream("uplink", i, server.version))
            server.misread += wrong
        server.memory.models[i] = (received + s * y) / (s + 1)
        return sent

    def start(self, server: Server, client: int) -> Tensor | None:
        return server.memory.models.get(client)
