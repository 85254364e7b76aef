"""FADAS: asynchronous buffered aggregation with an adaptive server, AMSGrad style.

Wang, Wang, Wu, Chen: FADAS: towards federated adaptive asynchronous optimization. ICML 2024: m ← β1 m +
(1−β1) Δ, v ← β2 v + (1−β2) Δ², v̂ ← max(v̂, v), x ← x + η_t m / (√v̂ + ε), where Δ is the mean of M updates
and η_t = η if none of them is staler than τ_c, else min(η, 1/τ_max). `rule: code` is the step of the authors'
code, η_t = η/τ_max beyond τ_c, with Adam's bias corrections in the t-th step: m/(1−β1^t) for m and
√v̂/√(1−β2^t) for √v̂.
"""

from typing import Annotated, ClassVar, Literal

from torch import Tensor

from fl_core.server.optimizers import AMSGrad
from fl_core.strategies.participation import Participation, buffered
from fl_core.strategies.toolkit import Count, Rate, Scenario, Server, Share, Strategy, Tune, Update


class FADAS(Strategy):
    """FADAS, buffered aggregation with a delay-adaptive AMSGrad server (Wang et al., ICML 2024)."""

    name: ClassVar[str] = "fadas"
    title: ClassVar[str] = "FADAS"
    refuses_optimizer: ClassVar[str] = "it is AMSGrad with a rule for delays"
    linear: ClassVar[str] = "FADAS divides by the root of squared updates: its step is not linear in them"

    server_lr: Annotated[Rate, Tune(1e-5, 0.1)] = 0.001  # η, of the adaptive server
    concurrency: Count | None = 50  # jobs kept in flight: half of the paper's 100 clients
    buffer: Annotated[Count, Tune(1, 32)] = 5  # M, updates a step waits for
    delay: Count | None = None  # τ_c, staleness beyond which the step shrinks; None: a constant step
    beta1: Share = 0.9  # β1, of the mean
    beta2: Share = 0.99  # β2, of the squares
    epsilon: Rate = 1e-8  # ε, added to the root
    rule: Literal["paper", "code"] = "paper"  # the paper's step, or that of the authors' code

    def participation(self, scenario: Scenario) -> Participation | None:
        return buffered(self.concurrency, self.buffer, scenario)

    def begin(self, server: Server) -> None:
        memory = server.memory
        memory.total, memory.count, memory.oldest = server.zeros(), 0, 0
        memory.moments = {}  # m, v, v̂

    def receive(self, server: Server, update: Update) -> None:
        memory = server.memory
        memory.total += update.delta
        memory.count += 1
        memory.oldest = max(memory.oldest, update.staleness)  # τ_max
        if memory.count < self.buffer:
            return
        server.step(self.rate(memory.oldest) * self.direction(server, memory.total / self.buffer))
        memory.total, memory.count, memory.oldest = server.zeros(), 0, 0

    def rate(self, oldest: int) -> float:
        """Return η_t if the stalest update of the buffer has staleness `oldest`."""
        if self.delay is None or oldest <= self.delay:
            return self.server_lr
        return self.server_lr / oldest if self.rule == "code" else min(self.server_lr, 1 / oldest)

    def direction(self, server: Server, mean: Tensor) -> Tensor:
        """Return m / (√v̂ + ε) [d], bias-corrected in the authors' code."""
        adaptive = AMSGrad(beta1=self.beta1, beta2=self.beta2, epsilon=self.epsilon)
        m, root = adaptive.moments(mean, server.memory.moments)
        if self.rule == "code":
            t = server.version + 1
            m, root = m / (1 - self.beta1**t), root / (1 - self.beta2**t) ** 0.5
        return m / (root + self.epsilon)
