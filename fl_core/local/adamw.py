"""AdamW at the client (Loshchilov & Hutter, "Decoupled weight decay regularization", ICLR 2019)."""

from typing import Any, ClassVar

from pydantic import Field
from torch import Tensor

from fl_core.local.work import LocalWork
from fl_core.parts import Rate, Share


class AdamW(LocalWork):
    """AdamW with a fresh state in every job (Loshchilov & Hutter, ICLR 2019, Algorithm 2)."""

    name: ClassVar[str] = "adamw"
    linear: ClassVar[str] = "AdamW divides by the root of squared gradients: its steps are not linear in them"

    beta1: Share = 0.9  # β1, of the mean gradient
    beta2: Share = 0.999  # β2, of its squares
    epsilon: Rate = 1e-8  # ε, added to the root
    weight_decay: float = Field(0.01, ge=0)  # decoupled from the gradient

    def move(self, y: Tensor, g: Tensor, lr: float | Tensor, state: dict[str, Any]) -> Tensor:
        k = state["k"] = state.get("k", 0) + 1
        m = state["m"] = self.beta1 * state.get("m", 0) + (1 - self.beta1) * g
        v = state["v"] = self.beta2 * state.get("v", 0) + (1 - self.beta2) * g * g
        unbiased = m / (1 - self.beta1**k) / ((v / (1 - self.beta2**k)).sqrt() + self.epsilon)
        return y - lr * (unbiased + self.weight_decay * y)
