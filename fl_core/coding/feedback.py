"""Error feedback: what a message leaves out is made good by later ones of the same sender.

An unbiased coding C is used as C/(1 + ω), which brings every vector nearer: E‖C(v)/(1 + ω) − v‖² ≤
(1 − 1/(1 + ω)) ‖v‖² (Richtárik, Sokolov, Fatkhullin, NeurIPS 2021, §2.1). Random-k then sends the numbers
as they are.
"""

from typing import ClassVar, Self

import numpy as np
from pydantic import SerializeAsAny, model_validator
from torch import Tensor

from fl_core.coding.coding import Coding
from fl_core.coding.sparse import TopK
from fl_core.parts import FieldError


class Feedback(Coding):
    """Base of codings that remember what was left out."""

    coding: SerializeAsAny[Coding] = TopK()  # of what is sent

    @model_validator(mode="after")
    def _once(self) -> Self:
        if isinstance(self.coding, Feedback):
            raise FieldError("coding", f"{self.reference()} of {self.coding.reference()}: choose one of them")
        return self

    def label(self) -> str:
        return f"{self.reference()} {self.coding.label()}"

    def bytes(self, entries: int, word: int) -> int:
        return self.coding.bytes(entries, word)

    def code(self, vector: Tensor, rng: np.random.Generator) -> Tensor:
        """Return what is received of a vector [d] where nothing is remembered."""
        return self.coding.code(vector, rng) / (1 + self.coding.variance(len(vector)))


class EF14(Feedback):
    """Error feedback: e is what was left out so far, and C(v + e) is sent (Stich et al., NeurIPS 2018)."""

    name: ClassVar[str] = "ef14"

    def send(self, vector: Tensor, memory: Tensor | None, rng: np.random.Generator) -> tuple[Tensor, Tensor]:
        whole = vector if memory is None else vector + memory
        received = self.code(whole, rng)
        return received, whole - received


class EF21(Feedback):
    """EF21: both ends keep g, and C(v − g) is sent, g ← g + C(v − g) (Richtárik et al., NeurIPS 2021)."""

    name: ClassVar[str] = "ef21"
    receiver_keeps: ClassVar[bool] = True

    def send(self, vector: Tensor, memory: Tensor | None, rng: np.random.Generator) -> tuple[Tensor, Tensor]:
        if memory is None:
            received = self.code(vector, rng)
        else:
            received = memory + self.code(vector - memory, rng)
        return received, received.clone()  # whoever receives it may write into it
