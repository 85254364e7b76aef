"""Stochastic gradient descent at the client, plain or with momentum, weight decay and clipping."""

from typing import Any, ClassVar, Literal

from pydantic import Field
from torch import Tensor

from fl_core.local.work import LocalWork, Work
from fl_core.parts import Rate, Share


class SGD(LocalWork):
    """Stochastic gradient descent, y ← y − η_l g (McMahan et al., AISTATS 2017, Algorithm 1).

    Weight decay is added before the norm is clipped; code that clips with torch's `clip_grad_norm_` adds it
    afterwards.
    """

    name: ClassVar[str] = "sgd"

    momentum: Share = 0.0  # of the client: v ← momentum v + g, y ← y − η_l v, with v = 0 at each job's start
    weight_decay: float = Field(0.0, ge=0)  # g ← g + weight_decay y
    clip: Rate | None = None  # the largest norm of a gradient

    @property
    def linear(self) -> Literal[True] | str:
        return True if self.clip is None else "clipped gradients are not linear in the gradients"

    def correct(self, g: Tensor, y: Tensor, job: Work) -> Tensor:
        if self.weight_decay:
            g = g + self.weight_decay * y
        if self.clip is not None:
            g = g * (self.clip / g.norm(dim=-1, keepdim=True)).clamp(max=1)
        return g

    def move(self, y: Tensor, g: Tensor, lr: float | Tensor, state: dict[str, Any]) -> Tensor:
        if self.momentum:
            g = state["v"] = self.momentum * state["v"] + g if state else g
        return y - lr * g
