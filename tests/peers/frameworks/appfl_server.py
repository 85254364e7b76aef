"""APPFL: FedAsyncAggregator and FedBuffAggregator (appfl/algorithm/aggregator)."""

from typing import Any

import protocol
import torch

protocol.bare_package("appfl", "appfl.misc", "appfl.algorithm", "appfl.algorithm.aggregator")
import appfl.algorithm.aggregator as package  # noqa: E402
from appfl.algorithm.aggregator.base_aggregator import BaseAggregator  # noqa: E402
from omegaconf import OmegaConf  # noqa: E402

package.BaseAggregator = BaseAggregator
from appfl.algorithm.aggregator.fedasync_aggregator import FedAsyncAggregator  # noqa: E402

package.FedAsyncAggregator = FedAsyncAggregator
from appfl.algorithm.aggregator.fedbuff_aggregator import FedBuffAggregator  # noqa: E402


class Server(protocol.Server):
    """Model mode sends models, gradient mode −Δ; `get_parameters` with a client's id records a dispatch."""

    def __init__(self, model: protocol.Array, options: dict[str, Any]) -> None:
        network = torch.nn.Module()
        network.w = torch.nn.Parameter(torch.from_numpy(model))
        kind = {"FedAsync": FedAsyncAggregator, "FedBuff": FedBuffAggregator}[options["algorithm"]]
        self.records = options.get("records_dispatches", True)
        self.gradient = options.get("gradient_based", False)
        self.aggregator = kind(network, OmegaConf.create({"optimize_memory": False, **options["configs"]}))

    def dispatch(self, client: int) -> None:
        if self.records:
            self.aggregator.get_parameters(client_id=client)

    def receive(self, arrival: protocol.Arrival) -> None:
        sent = torch.from_numpy(-arrival.delta if self.gradient else arrival.model)
        self.aggregator.aggregate(client_id=arrival.client, local_model={"w": sent})

    def model(self) -> protocol.Array:
        return self.aggregator.get_parameters()["w"].detach().numpy()


protocol.run(Server)
