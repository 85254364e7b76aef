"""The ClientApp of a Flower app as local work."""

from typing import ClassVar, Self

import torch
from pydantic import model_validator
from torch import Tensor

from fl_core.local.work import LocalWork
from fl_core.parts import FieldError
from fl_core.problems.problem import World
from fl_core.server.jobs import Job
from fl_core.server.server import Server

OF_THE_APP = ("batch", "sampling", "epochs")  # fields without effect: the app's own code draws its batches


class ClientAppWork(LocalWork):
    """A Flower app's own training, of problem `flower` (Beutel et al., "Flower", arXiv 2007.14390, 2020)."""

    name: ClassVar[str] = "client_app"
    whole: ClassVar[bool] = True
    linear: ClassVar[str] = "a Flower app trains by its own code, whose steps are not seen"

    @model_validator(mode="after")
    def _is_the_apps(self) -> Self:
        for name in OF_THE_APP:
            if getattr(self, name) != LocalWork.model_fields[name].default:
                raise FieldError(name, "has no effect on a Flower app: set it in the problem's `config`")
        return self

    def client_state(self, server: Server, client: int) -> dict[str, Tensor]:
        return {"server_lr": torch.tensor(server.lr, dtype=torch.float64)}

    def compute(self, job: Job, world: World) -> None:
        world.train(job)
