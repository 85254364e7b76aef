"""HeLoCo: the direction of an update in conflict with the server's momentum is corrected.

Al Asif, Diem, Muñoz, Wolf, Jannesari, Mazaheri: HeLoCo: efficient asynchronous low-communication training
under data and device heterogeneity. arXiv 2606.00271, 2026. For each tensor of the model, c is the cosine
between update Δ and momentum m, and conf = ‖Δ‖/(‖Δ‖ + κ‖m‖). With c ≥ c_ok Δ stays. With c < 0 its part along
m shrinks: Δ − β (Δ·m̂) m̂, β = min(−k_s c conf, β_max). Else it turns towards m and keeps its length, along
(1 − λ) Δ̂ + λ m̂, λ = min(k_d (1 − c) conf, 1). Then m ← μ m + (1 − μ) Δ and x ← x + η (Δ + μ m).

Read in the abstract and in formulas that others published; the values of c_ok, κ, k_s, β_max, k_d are ours.
"""

from typing import Annotated, ClassVar

import torch
from pydantic import Field
from torch import Tensor

from fl_core.server.optimizers import LookAhead
from fl_core.strategies.toolkit import Rate, Server, Share, Strategy, Tune, Update


class HeLoCo(Strategy):
    """HeLoCo, updates corrected by the server's momentum (Al Asif et al., arXiv 2606.00271, 2026)."""

    name: ClassVar[str] = "heloco"
    title: ClassVar[str] = "HeLoCo"
    refuses_optimizer: ClassVar[str] = "it has a momentum of its own"
    linear: ClassVar[str] = (
        "HeLoCo turns updates by their angle to the momentum: its step is not linear in them"
    )

    server_lr: Annotated[Rate, Tune(0.1, 10)] = 0.7  # η, the server's learning rate
    momentum: Share = 0.9  # μ, of the server
    aligned: float = Field(0.5, ge=-1, le=1)  # c_ok, the cosine from which an update stays as it is
    confidence: Annotated[Rate, Tune(0.1, 10)] = 1.0  # κ, the weight of the momentum's length in conf
    shrinkage: Rate = 1.0  # k_s, of the part against the momentum
    most: Share = 1.0  # β_max, the largest share of that part that is taken away
    turn: Rate = 1.0  # k_d, towards the momentum

    def begin(self, server: Server) -> None:
        server.memory.moments = {}

    def receive(self, server: Server, update: Update) -> None:
        moments = server.memory.moments
        delta = self.server_lr * update.delta
        if moments:
            pairs = zip(
                *(torch.split(vector, server.blocks) for vector in (delta, moments["v"])), strict=True
            )
            delta = torch.cat([self.corrected(block, m) for block, m in pairs])
        server.step(LookAhead(beta=self.momentum).step(delta, self.server_lr, moments))

    def corrected(self, delta: Tensor, m: Tensor) -> Tensor:
        """Return an update of a tensor [size], corrected by the tensor's momentum m [size]."""
        size, reference = float(delta.norm()), float(m.norm())
        if not size or not reference:
            return delta
        unit, direction = delta / size, m / reference
        cosine = float(unit @ direction)
        if cosine >= self.aligned:
            return delta
        conf = size / (size + self.confidence * reference)
        if cosine < 0:
            share = min(-self.shrinkage * cosine * conf, self.most)
            return delta - share * cosine * size * direction
        angle = min(self.turn * (1 - cosine) * conf, 1)
        turned = (1 - angle) * unit + angle * direction
        return size * turned / turned.norm()
