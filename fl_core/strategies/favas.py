"""FAVAS, first called FAVANO: clients are polled at any point of work, and reweighted.

Leconte, Nguyen, Moulines: FAVANO: federated averaging with asynchronous nodes. arXiv 2305.16099, 2023: s
clients are polled, w ← (w + Σ w_i^unb)/(s + 1) with w_i^unb = w_i^init + (w_i − w_i^init)/α_i, and they
continue from the new w. E_i is the number of steps that client i has made since its last poll, at most K;
α_i is P(E_i > 0) E_i (`alpha: stochastic`) or E[E_i] (`expected`).

Only the abstract was available; the rule is as reported elsewhere, polling at fixed intervals and the default
values are ours. How the paper obtains P and E is not known: here they are frequencies over the client's polls
so far, including this one.
"""

from typing import ClassVar, Literal

from torch import Tensor

from fl_core.strategies.polling import Polling
from fl_core.strategies.toolkit import Server, Update


class FAVAS(Polling):
    """FAVAS, polled clients send what they have, made unbiased (Leconte et al., arXiv 2305.16099, 2023)."""

    name: ClassVar[str] = "favas"
    title: ClassVar[str] = "FAVAS"

    alpha: Literal["stochastic", "expected"] = "stochastic"  # how a client's work is made unbiased: α_i

    def begin(self, server: Server) -> None:
        super().begin(server)
        server.memory.polls = [0] * server.n
        server.memory.worked = [0] * server.n  # polls with E_i > 0
        server.memory.steps = [0] * server.n  # Σ E_i

    def answer(self, server: Server, update: Update) -> Tensor:
        memory, i = server.memory, update.client
        memory.polls[i] += 1
        if not update.steps:
            return update.start
        memory.worked[i] += 1
        memory.steps[i] += update.steps
        if self.alpha == "expected":
            alpha = memory.steps[i] / memory.polls[i]  # E[E_i]
        else:
            alpha = memory.worked[i] / memory.polls[i] * update.steps  # P(E_i > 0) E_i
        return update.start + update.delta / alpha
