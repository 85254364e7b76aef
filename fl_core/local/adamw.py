"""AdamW at the client (Loshchilov & Hutter, "Decoupled weight decay regularization", ICLR 2019)."""

from typing import Any, ClassVar

import torch
from pydantic import Field
from torch import Tensor

from fl_core.local.work import LocalWork
from fl_core.parts import Rate, Share


class AdamW(LocalWork):
    """AdamW, moments anew in every job or kept by the client (Loshchilov & Hutter, ICLR 2019, Algorithm 2).

    With `keep_state` a client's job begins with the moments and the count of steps that its latest update
    left, as the workers of DiLoCo do (Douillard et al., arXiv 2311.08105, 2023). A job that was dismissed
    leaves none.
    """

    name: ClassVar[str] = "adamw"
    linear: ClassVar[str] = "AdamW divides by the root of squared gradients: its steps are not linear in them"

    beta1: Share = 0.9  # β1, of the mean gradient
    beta2: Share = 0.999  # β2, of its squares
    epsilon: Rate = 1e-8  # ε, added to the root
    weight_decay: float = Field(0.01, ge=0)  # decoupled from the gradient
    keep_state: bool = False  # whether moments stay with the client between jobs

    def moments(self, model: Tensor) -> dict[str, Tensor]:
        if not self.keep_state:
            return {}
        steps = torch.zeros(1, dtype=torch.float64, device=model.device)  # 1 − β2^k is small: in float64
        return {"k": steps, "m": torch.zeros_like(model), "v": torch.zeros_like(model)}

    def move(self, y: Tensor, g: Tensor, lr: float | Tensor, state: dict[str, Any]) -> Tensor:
        k = state["k"] = state.get("k", 0) + 1
        m = state["m"] = self.beta1 * state.get("m", 0) + (1 - self.beta1) * g
        v = state["v"] = self.beta2 * state.get("v", 0) + (1 - self.beta2) * g * g
        of_mean, of_squares = 1 - self.beta1**k, 1 - self.beta2**k
        if isinstance(k, Tensor):
            of_mean, of_squares = of_mean.to(g.dtype), of_squares.to(g.dtype)
        unbiased = m / of_mean / ((v / of_squares).sqrt() + self.epsilon)
        return y - lr * (unbiased + self.weight_decay * y)
