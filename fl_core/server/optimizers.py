"""Server optimisers: how the server turns the step of a strategy into a new model.

`Server.step` calls the optimiser in the strategy's field `server`; a suite chooses it by name.
Reddi, Charles, Zaheer, Garrett, Rush, Konečný, Kumar, McMahan: Adaptive federated optimization. ICLR 2021,
Algorithm 2: Δ of a round is a negative gradient, x ← x + η m/(√v + τ) with m ← β1 m + (1 − β1) Δ from m = 0
and v from τ². No bias is corrected. Here Δ is the direction of any strategy's step, and η its `server_lr`.

Fixed: names, fields and defaults (keys of runs), and the arithmetic of a step. `rates` and `usual` are the
default search space of `asyncfl tune`.
"""

from typing import ClassVar, Literal

import torch
from torch import Tensor

from fl_core.parts import Part, Rate, Share, Tune
from fl_core.tuning_ranges import ADAPTIVE_RATES, MOMENTUM_RATES

Moments = dict[str, Tensor]  # what an optimiser remembers, each [d]; empty before the first step


class ServerOptimizer(Part):
    """Base of rules that replace a strategy's step, η_g times a direction Δ, by another step."""

    homes: ClassVar[tuple[str, ...]] = ("fl_core.server.optimizers",)
    linear: ClassVar[Literal[True] | str] = True  # if steps are linear in Δ; else the reason why not
    usual: ClassVar[float | None] = None  # `server_lr` where none is written; None: the strategy's default
    rates: ClassVar[Tune | None] = None  # the range in which `server_lr` is tuned; None: the strategy's

    def step(self, delta: Tensor, lr: float, moments: Moments) -> Tensor:
        """Return the step [d] in the place of `delta`.

        Args:
            delta: η_g Δ, the strategy's step [d]; never written to.
            lr: η_g.
            moments: The optimiser's memory from step to step, written to.
        """
        raise NotImplementedError


class ServerSGD(ServerOptimizer):
    """The strategy's own step: x ← x + η_g Δ."""

    name: ClassVar[str] = "sgd"

    def identity(self) -> dict[str, object]:
        return {}  # the default adds nothing to the keys of experiments

    def step(self, delta: Tensor, lr: float, moments: Moments) -> Tensor:
        return delta


class Momentum(ServerOptimizer):
    """Heavy-ball momentum, FedAvgM with FedAvg: v ← β v + η_g Δ, x ← x + v (Hsu et al., 2019)."""

    name: ClassVar[str] = "momentum"
    rates: ClassVar[Tune | None] = MOMENTUM_RATES

    beta: Share = 0.9  # β, the share of the last step kept

    def step(self, delta: Tensor, lr: float, moments: Moments) -> Tensor:
        moments["v"] = self.beta * moments.get("v", 0) + delta
        return moments["v"]


class Nesterov(ServerOptimizer):
    """Nesterov's momentum, the outer optimiser of DiLoCo: v ← β v + η_g Δ, x ← x + β v + η_g Δ.

    Douillard et al.: DiLoCo: distributed low-communication training of language models. arXiv 2311.08105,
    2023; as `torch.optim.SGD` with `nesterov=True`. Rate and β are those of that paper.
    """

    name: ClassVar[str] = "nesterov"
    usual: ClassVar[float | None] = 0.7
    rates: ClassVar[Tune | None] = MOMENTUM_RATES

    beta: Share = 0.9  # β, the share of the last velocity kept

    def step(self, delta: Tensor, lr: float, moments: Moments) -> Tensor:
        moments["v"] = self.beta * moments.get("v", 0) + self.weight * delta
        return self.beta * moments["v"] + delta

    @property
    def weight(self) -> float:
        """The weight of a new Δ in the velocity."""
        return 1.0


class LookAhead(Nesterov):
    """Momentum look-ahead, Nesterov with a mean as velocity: v ← β v + (1 − β) η_g Δ, x ← x + β v + η_g Δ.

    Ajanthan et al.: Momentum look-ahead for asynchronous distributed low-communication training. MCDC at ICLR
    2025. Read in the abstract and in two implementations by others, which agree.
    """

    name: ClassVar[str] = "look_ahead"
    rates: ClassVar[Tune | None] = None  # a steady Δ is followed 1 + β times as fast

    @property
    def weight(self) -> float:
        return 1 - self.beta


class Adam(ServerOptimizer):
    """Adam at the server, FedAdam with FedAvg: v ← β2 v + (1 − β2) Δ² (Reddi et al., ICLR 2021)."""

    name: ClassVar[str] = "adam"
    linear: ClassVar[str] = (
        "an adaptive server divides by the root of squared steps: it is not linear in them"
    )
    usual: ClassVar[float | None] = 0.01
    rates: ClassVar[Tune | None] = ADAPTIVE_RATES

    beta1: Share = 0.9  # β1, of the mean
    beta2: Share = 0.99  # β2, of the squares
    epsilon: Rate = 1e-3  # τ, added to the root: how adaptive it is, the smaller the more

    def step(self, delta: Tensor, lr: float, moments: Moments) -> Tensor:
        m, root = self.moments(delta / lr, moments)
        return lr * (m / (root + self.epsilon))

    def moments(self, direction: Tensor, moments: Moments) -> tuple[Tensor, Tensor]:
        """Return m and the root of v, each [d], after another direction Δ [d]."""
        if not moments:
            moments["m"] = torch.zeros_like(direction)
            moments["v"] = torch.full_like(direction, self.epsilon**2)
        moments["m"] = self.beta1 * moments["m"] + (1 - self.beta1) * direction
        moments["v"] = self.second(moments["v"], direction**2)
        return moments["m"], moments["v"].sqrt()

    def second(self, v: Tensor, square: Tensor) -> Tensor:
        """Return the new v [d] from the last v and Δ² [d]."""
        return self.beta2 * v + (1 - self.beta2) * square


class Yogi(Adam):
    """Yogi at the server: v ← v − (1 − β2) Δ² sign(v − Δ²), slow to forget (Reddi et al., ICLR 2021)."""

    name: ClassVar[str] = "yogi"

    def second(self, v: Tensor, square: Tensor) -> Tensor:
        return v - (1 - self.beta2) * square * torch.sign(v - square)


class AMSGrad(Adam):
    """AMSGrad at the server, as in FADAS: the root of the largest v so far (Wang et al., ICML 2024).

    v starts from 0, not from τ².
    """

    name: ClassVar[str] = "amsgrad"

    def moments(self, direction: Tensor, moments: Moments) -> tuple[Tensor, Tensor]:
        if not moments:
            zeros = torch.zeros_like(direction)
            moments |= {"m": zeros, "v": zeros, "v_max": zeros}
        m, _ = super().moments(direction, moments)
        moments["v_max"] = torch.maximum(moments["v_max"], moments["v"])
        return m, moments["v_max"].sqrt()
