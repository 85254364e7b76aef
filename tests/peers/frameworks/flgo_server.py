"""FLGo: the servers of FedAsync and FedBuff (flgo/algorithm)."""

from types import SimpleNamespace
from typing import Any

import protocol
import torch

protocol.bare_package("flgo", "flgo.benchmark", "flgo.simulator")
from flgo.algorithm import fedasync, fedbuff  # noqa: E402
from flgo.utils import fmodule  # noqa: E402


class Model(fmodule.FModule):
    """A vector as FLGo wants its models."""

    length = 0

    def __init__(self, vector: protocol.Array | None = None) -> None:
        super().__init__()
        empty = torch.zeros(Model.length, dtype=torch.float64)
        self.w = torch.nn.Parameter(empty if vector is None else torch.from_numpy(vector.copy()))


class Server(protocol.Server):
    """The server object without its data and clock; arrivals one by one."""

    def __init__(self, model: protocol.Array, options: dict[str, Any]) -> None:
        Model.length = len(model)
        module = {"FedAsync": fedasync, "FedBuff": fedbuff}[options["algorithm"]]
        self.server = object.__new__(module.Server)
        self.buffered = module is fedbuff
        clients = [SimpleNamespace(datavol=10 * (client + 1)) for client in range(options["clients"])]
        state = {"option": {"algo_para": None}, "clients": clients, "num_clients": len(clients), "buffer": []}
        state |= {"model": Model(model), "current_round": 1, "aggregation_option": "uniform"}
        vars(self.server).update(state | options["attributes"])

    def receive(self, arrival: protocol.Arrival) -> None:
        sent = Model(arrival.delta if self.buffered else arrival.model)
        sent._round = arrival.version + 1
        self.server.received_clients = [arrival.client]
        if self.server.package_handler({"model": [sent], "__cid": [arrival.client]}):
            self.server.current_round += 1

    def model(self) -> protocol.Array:
        return self.server.model.w.detach().numpy()


if __name__ == "__main__":
    protocol.run(Server)
