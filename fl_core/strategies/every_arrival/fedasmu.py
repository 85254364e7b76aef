"""FedASMU: clients merge a fresh model in mid-job, and weights of mixing follow each client's loss.

Liu, Jia, Che, Huo, Ren, Zhou, Dai, Dou: FedASMU: efficient asynchronous federated learning with dynamic
staleness-aware model update. AAAI 2024 (arXiv 2312.05770). An update of version o that arrives at version t
is mixed into the model, w ← (1 − α) w + α w_i, with α = μ_α ξ/(1 + μ_α ξ), ξ = λ_i/(√t (t − o + 1)^σ_i) +
ι_i (eqs. 1, 2). λ_i, σ_i, ι_i descend on the client's loss at the version that its last update made, by
∂F_i/∂α = ⟨∇F_i(w_o), w_i − w⟩ (eq. 3, appendix). Amid its job a client merges the newest model: y ← (1 − β) y
+ β w_g with β = μ_β φ/(1 + μ_β φ), φ = γ/√g (1 − υ/√(g − o + 1)) (eqs. 7, 8). Versions count from 1.

Read in the abstract, and in three implementations that others published and that cite these equations; the
defaults are ours. More is published than is built: γ and υ learn, too (here they are fixed), the time of the
fresh model is chosen by reinforcement learning (here a share of the client's mean time), and the server
triggers m' devices every T (here `concurrency`, as for any strategy).
"""

from collections.abc import Iterable
from fractions import Fraction
from math import log, sqrt
from typing import Annotated, ClassVar, cast

from fl_core.strategies.author import Count, Length, Rate, Server, Share, Strategy, Tune, TuneAmong, Update
from fl_core.timing.clock import MICRO


class FedASMU(Strategy):
    """FedASMU, learned weights of mixing, and fresh models in mid-job (Liu et al., AAAI 2024)."""

    name: ClassVar[str] = "fedasmu"
    title: ClassVar[str] = "FedASMU"
    refreshes: ClassVar[bool] = True
    refuses_arrangement: ClassVar[str] = "it sends fresh models to clients at work"
    refuses_optimizer: ClassVar[str] = "it mixes models, (1 − α) w + α w_i, and steps in no direction"
    linear: ClassVar[str] = "FedASMU's weights depend on the updates: its step is not linear in them"

    server_lr: Annotated[Rate, Tune(0.1, 10)] = (
        1.0  # μ_α, of the weight of an update; λ_i begin at 1, ι_i at 0
    )
    power: Annotated[Rate, Tune(0.1, 2)] = 0.5  # what σ_i begin at, the power of staleness
    control_lr: Share = 0.01  # η of λ_i, σ_i and ι_i; 0: the weights do not learn
    max_staleness: Count | None = None  # t − o + 1 above which an update is discarded; None: never
    fresh: Annotated[Rate, Tune(0.1, 10)] = 1.0  # μ_β γ, of the weight of a fresh model
    discount: Share = 0.5  # υ, less weight for a fresh model that is hardly newer
    # when a client is sent a fresh model, in units of its mean time
    refresh_at: Annotated[Length, TuneAmong(0.25, 0.5, 0.75)] = Fraction(1, 2)

    def times(self) -> tuple[Fraction, ...]:
        return (MICRO,)

    def begin(self, server: Server) -> None:
        memory, unit = server.memory, server.ticks(Fraction(1))  # a unit of virtual time
        memory.controls = [[1.0, self.power, 0.0] for _ in range(server.n)]  # λ_i, σ_i, ι_i
        memory.slopes = [[0.0, 0.0, 0.0] for _ in range(server.n)]  # ∂α/∂(λ, σ, ι) at the last update
        memory.mixed = server.zeros(server.n)  # w_i − w at the last update
        memory.refresh = [max(1, int(self.refresh_at * time * unit)) for time in server.mean_time]

    def receive(self, server: Server, update: Update) -> None:
        t, stale, i = server.version + 1, update.staleness + 1, update.client
        if self.max_staleness is not None and stale > self.max_staleness:
            return
        memory = server.memory
        gradient = -update.delta / (update.lr * update.steps)  # ∇F_i(w_o), as Δ tells it
        slope = float(gradient @ memory.mixed[i])  # ∂F_i/∂α
        memory.controls[i] = [
            max(0.0, control - self.control_lr * slope * d_alpha)
            for control, d_alpha in zip(memory.controls[i], memory.slopes[i], strict=True)
        ]
        lam, sigma, iota = memory.controls[i]
        decay = 1 / (sqrt(t) * stale**sigma)
        xi = lam * decay + iota
        alpha = self.server_lr * xi / (1 + self.server_lr * xi)
        d_xi = self.server_lr / (1 + self.server_lr * xi) ** 2  # ∂α/∂ξ
        memory.slopes[i] = [d_xi * decay, -d_xi * lam * decay * log(stale), d_xi]
        memory.mixed[i] = update.model - server.model
        server.step(alpha * memory.mixed[i])

    def next(self, server: Server) -> list[int]:
        """Send to whom any strategy does, also to a client whose update was discarded."""
        usual = cast(Iterable[int], super().next(server))
        clients = list(server.idle if self.concurrency is None else usual)
        for client in clients:
            server.wake(server.now + server.memory.refresh[client], client)
        return clients

    def tick(self, server: Server) -> None:
        """Send the newest model to the client whose alarm rings."""
        for job in server.jobs:
            if job.client == server.ringing and job.began is not None and job.version < server.version:
                g, newer = server.version + 1, server.version - job.version + 1
                phi = self.fresh / sqrt(g) * (1 - self.discount / sqrt(newer))
                server.refresh(job, phi / (1 + phi))
