from types import SimpleNamespace

import torch
from flgo.algorithm.fedasync import Server
from flgo.utils.fmodule import FModule


class Model(FModule):
    def __init__(self, value: float = 0.0) -> None:
        super().__init__()
        self.w = torch.nn.Parameter(torch.tensor([value]))


server = object.__new__(Server)
server.clients = [SimpleNamespace(datavol=10), SimpleNamespace(datavol=30)]
server.option, server.num_clients, server.current_round = {"algo_para": None}, 2, 1
server.aggregation_option, server.flag, server.alpha = "weighted_scale", "constant", 0.6
server.model, sent = Model(1.0), Model(1.0)  # a client that sends back the server's model
sent._round = 1
for client in (0, 1):
    server.received_clients = [client]
    server.package_handler({"model": [sent], "__cid": [client]})
    print(f"{server.model.w.item():.2f}")
