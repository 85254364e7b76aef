"""Golf: FedAsync (golf_federated/server/process/strategy/aggregation/asynchronous.py).

The wheel has `golf_federated.server.utils`, and the code imports it as `golf_federated.utils`.
"""

from queue import Queue
from types import SimpleNamespace
from typing import Any

import protocol

base = "golf_federated.server.process.strategy"
protocol.bare_package("golf_federated", "golf_federated.server", "golf_federated.server.process", base)
protocol.bare_package(f"{base}.aggregation")
protocol.stub_anything("golf_federated.utils")
quiet = SimpleNamespace(log=lambda *_: None)
protocol.stub("golf_federated.utils.log", loggerhear=quiet)
protocol.stub("golf_federated.utils.data", deepcopy_list=lambda values: [value.copy() for value in values])
protocol.stub_anything(f"{base}.selection", f"{base}.selection.function", "pandas")
BaseFed = protocol.attribute(f"{base}.aggregation.base:BaseFed")
import sys  # noqa: E402

sys.modules[f"{base}.aggregation"].BaseFed = BaseFed
FedAsync = protocol.attribute(f"{base}.aggregation.asynchronous:FedAsync")


class Server(protocol.Server):
    """A client's round is the version that it started from, as the comments say."""

    def __init__(self, model: protocol.Array, options: dict[str, Any]) -> None:
        self.strategy = FedAsync(min_to_start=1, **options["arguments"])
        self.parameters = [model]

    def receive(self, arrival: protocol.Arrival) -> None:
        queue: Queue[Any] = Queue()
        field = {"clientRound": arrival.version}
        queue.put({"name": arrival.client, "model": [arrival.model], "aggregation_field": field})
        data = {"current_w": self.parameters, "parameter": queue, "record": []}
        self.parameters = self.strategy.aggregate(data)

    def model(self) -> protocol.Array:
        return self.parameters[0]


if __name__ == "__main__":
    protocol.run(Server)
