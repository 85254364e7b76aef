"""FedLab: AsyncServerHandler (fedlab/contrib/algorithm/basic_server.py)."""

import logging
from typing import Any

import protocol
import torch

protocol.bare_package(
    "fedlab", "fedlab.contrib", "fedlab.contrib.algorithm", "fedlab.core", "fedlab.core.server"
)
from fedlab.contrib.algorithm.basic_server import AsyncServerHandler  # noqa: E402

logging.disable(logging.CRITICAL)


class Server(protocol.Server):
    """The weight of an update is a tensor of float32 there."""

    def __init__(self, model: protocol.Array, options: dict[str, Any]) -> None:
        network = torch.nn.Module()
        network.w = torch.nn.Parameter(torch.from_numpy(model))
        self.handler = AsyncServerHandler(network, global_round=1000)
        self.handler.setup_optim(**options["arguments"])

    def receive(self, arrival: protocol.Arrival) -> None:
        self.handler.load([torch.from_numpy(arrival.model), torch.Tensor([arrival.version])])

    def model(self) -> protocol.Array:
        return self.handler.model_parameters.detach().numpy()


if __name__ == "__main__":
    protocol.run(Server)
