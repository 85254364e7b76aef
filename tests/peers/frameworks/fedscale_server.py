"""FedScale: AsyncAggregator.update_weight_aggregation (fedscale/cloud/aggregation)."""

from types import SimpleNamespace
from typing import Any

import protocol

protocol.bare_package("fedscale", "fedscale.cloud", "fedscale.cloud.aggregation")
protocol.stub("fedscale.cloud.fllibs", commons=SimpleNamespace(SIMULATION_MODE="simulation"))
aggregator = "fedscale.cloud.aggregation.aggregator"


class Base:
    """The two questions that the base class answers."""

    def _is_first_result_in_round(self) -> bool:
        return self.model_in_update == 1

    def _is_last_result_in_round(self) -> bool:
        return self.model_in_update == self.tasks_round

    create_client_task = tictak_client_tasks = setup_env = update_weight_aggregation = lambda *_: None


protocol.stub(aggregator, Aggregator=Base)
protocol.stub("overrides", overrides=lambda method: method)
AsyncAggregator = protocol.attribute("fedscale.cloud.aggregation.async_aggregator:AsyncAggregator")


class Server(protocol.Server):
    """Rounds of `tasks_round` results; the newest model is read off the wrapper."""

    def __init__(self, model: protocol.Array, options: dict[str, Any]) -> None:
        self.parameters = [model]
        self.server = object.__new__(AsyncAggregator)
        wrapper = SimpleNamespace(set_weights=lambda weights: setattr(self, "parameters", weights))
        state = {"round": 0, "model_in_update": 0, "tasks_round": options["tasks_round"]}
        state |= {"aggregation_denominator": 0, "client_task_model_version": {}, "model_wrapper": wrapper}
        vars(self.server).update(state)

    def receive(self, arrival: protocol.Arrival) -> None:
        server = self.server
        server.client_task_model_version[arrival.client] = arrival.version
        server.model_in_update += 1
        server.update_weight_aggregation({"client_id": arrival.client, "update_weight": [arrival.model]})
        if server.model_in_update == server.tasks_round:
            server.round, server.model_in_update = server.round + 1, 0

    def model(self) -> protocol.Array:
        return self.parameters[0]


if __name__ == "__main__":
    protocol.run(Server)
