"""APPFL: the asynchronous aggregators (appfl/algorithm/aggregator)."""

from typing import Any

import protocol
import torch

protocol.bare_package("appfl", "appfl.misc")
from appfl.algorithm import aggregator as aggregators  # noqa: E402
from omegaconf import OmegaConf  # noqa: E402


class Server(protocol.Server):
    """Model mode sends models, gradient mode −Δ; `get_parameters` with a client's id records a dispatch.

    FedCompass and FedQueue receive groups of updates, and the staleness that their schedulers count.
    """

    def __init__(self, model: protocol.Array, options: dict[str, Any]) -> None:
        network = torch.nn.Module()
        network.w = torch.nn.Parameter(torch.from_numpy(model))
        kind = getattr(aggregators, f"{options['algorithm']}Aggregator")
        self.group = options.get(
            "group", 0
        )  # updates given together; 0: each by itself, its staleness counted
        self.received: list[protocol.Arrival] = []
        self.records = options.get("records_dispatches", True)
        self.gradient = options.get("gradient_based", False)
        self.aggregator = kind(network, OmegaConf.create({"optimize_memory": False, **options["configs"]}))

    def dispatch(self, client: int) -> None:
        if self.records:
            self.aggregator.get_parameters(client_id=client)

    def receive(self, arrival: protocol.Arrival) -> None:
        if not self.group:
            self.aggregator.aggregate(client_id=arrival.client, local_model=self.message(arrival))
            return
        self.received.append(arrival)
        if len(self.received) < self.group:
            return
        staleness = {number: each.staleness for number, each in enumerate(self.received)}
        if self.group == 1:
            self.aggregator.aggregate(arrival.client, self.message(arrival), staleness=arrival.staleness)
        else:
            models = {number: self.message(each) for number, each in enumerate(self.received)}
            steps = dict.fromkeys(models, 1)
            self.aggregator.aggregate(local_models=models, staleness=staleness, local_steps=steps)
        self.received = []

    def message(self, arrival: protocol.Arrival) -> dict[str, torch.Tensor]:
        """Return what a client sends."""
        return {"w": torch.from_numpy(-arrival.delta if self.gradient else arrival.model)}

    def model(self) -> protocol.Array:
        return self.aggregator.get_parameters()["w"].detach().numpy()


if __name__ == "__main__":
    protocol.run(Server)
