"""FedML: AsyncFedAVGAggregator.add_local_trained_result (fedml/simulation/mpi/async_fedavg)."""

from typing import Any

import protocol
import torch

protocol.bare_package(
    "fedml", "fedml.simulation", "fedml.simulation.mpi", "fedml.simulation.mpi.async_fedavg"
)
protocol.bare_package("fedml.core")
protocol.stub_anything("wandb", "fedml.core.security", "fedml.core.security.fedml_defender")
protocol.stub_anything("fedml.core.schedule", "fedml.core.schedule.runtime_estimate")
protocol.stub_anything("fedml.simulation.mpi.async_fedavg.utils")
module = "fedml.simulation.mpi.async_fedavg.AsyncFedAVGAggregator"
AsyncFedAVGAggregator = protocol.attribute(f"{module}:AsyncFedAVGAggregator")


class Server(protocol.Server):
    """The aggregator with its weights and nothing else; rounds as its manager counts them."""

    def __init__(self, model: protocol.Array, options: dict[str, Any]) -> None:
        self.aggregator, self.version = object.__new__(AsyncFedAVGAggregator), 0
        self.aggregator.model_weights = {"w": torch.from_numpy(model)}
        self.aggregator.model_dict, self.aggregator.client_running_status = {}, []

    def receive(self, arrival: protocol.Arrival) -> None:
        sent = {"w": torch.from_numpy(arrival.model)}
        now, then = self.version + 1, arrival.version
        self.aggregator.add_local_trained_result(arrival.client, sent, arrival.samples, now, then)
        self.version += 1

    def model(self) -> protocol.Array:
        return self.aggregator.model_weights["w"].numpy()


if __name__ == "__main__":
    protocol.run(Server)
