"""Plato: strategies FedAsync and FedBuff, called as `Server._process_reports` calls them."""

import asyncio
from collections import OrderedDict
from types import SimpleNamespace
from typing import Any

import protocol
import torch

protocol.bare_package("plato", "plato.servers", "plato.servers.strategies")
protocol.bare_package("plato.servers.strategies.aggregation", "plato.algorithms")
protocol.stub_anything("plato.trainers", "plato.trainers.base", "plato.config")
from plato.algorithms.fedavg import Algorithm  # noqa: E402
from plato.servers.strategies.aggregation.fedasync import FedAsyncAggregationStrategy  # noqa: E402
from plato.servers.strategies.aggregation.fedbuff import FedBuffAggregationStrategy  # noqa: E402
from plato.servers.strategies.base import ServerContext  # noqa: E402


class Example(Algorithm):
    """With the method that the example of FedAsync in Plato's repository adds: (1 − α) w + α w_k."""

    async def aggregate_weights(self, baseline_weights: Any, weights_received: Any, **options: Any) -> Any:
        mixing = options.get("mixing", 0.9)
        return OrderedDict(
            (name, weight * (1 - mixing) + weights_received[0][name] * mixing)
            for name, weight in baseline_weights.items()
        )


class Server(protocol.Server):
    """Reports of one client, or of a full buffer; models in float64, sums where `trainer.zeros` puts them."""

    def __init__(self, model: protocol.Array, options: dict[str, Any]) -> None:
        network = torch.nn.Module()
        network.w = torch.nn.Parameter(torch.from_numpy(model))
        trainer = SimpleNamespace(model=network, zeros=torch.zeros)  # as plato/trainers/composable.py
        self.algorithm = (Example if options.get("example") else Algorithm)(trainer)
        self.context = ServerContext()
        self.context.trainer, self.context.algorithm = trainer, self.algorithm
        kind = {"FedAsync": FedAsyncAggregationStrategy, "FedBuff": FedBuffAggregationStrategy}
        self.strategy = kind[options["algorithm"]](**options.get("arguments", {}))
        self.size, self.updates = options.get("buffer", 1), []

    def receive(self, arrival: protocol.Arrival) -> None:
        report = SimpleNamespace(num_samples=arrival.samples)
        payload = OrderedDict(w=torch.from_numpy(arrival.model))
        self.updates.append(SimpleNamespace(report=report, payload=payload, staleness=arrival.staleness))
        if len(self.updates) == self.size:
            asyncio.run(self.process(self.updates))
            self.updates = []

    async def process(self, updates: list[Any]) -> None:
        """Do what `Server._process_reports` does."""
        received = [update.payload for update in updates]
        baseline, weights = self.algorithm.extract_weights(), None
        if hasattr(self.strategy, "aggregate_weights"):
            weights = await self.strategy.aggregate_weights(updates, baseline, received, self.context)
        if weights is None:
            deltas = self.algorithm.compute_weight_deltas(baseline, received)
            weights = self.algorithm.update_weights(
                await self.strategy.aggregate_deltas(updates, deltas, self.context)
            )
        self.algorithm.load_weights(weights)

    def model(self) -> protocol.Array:
        return self.algorithm.model.w.detach().numpy()


if __name__ == "__main__":
    protocol.run(Server)
