"""FedProx (Li et al., "Federated optimization in heterogeneous networks", MLSys 2020)."""

from typing import ClassVar

from torch import Tensor

from fl_core.local.work import LocalWork, Work
from fl_core.parts import Rate


class Prox(LocalWork):
    """FedProx: descend L_i(y) + μ/2 ‖y − x‖², x the model received (Li et al., MLSys 2020, Algorithm 2)."""

    name: ClassVar[str] = "prox"
    mu: Rate = 0.1  # μ, the proximal term's weight

    def correct(self, g: Tensor, y: Tensor, job: Work) -> Tensor:
        return g + self.mu * (y - job.start)
