import torch
from appfl.algorithm.aggregator import FedBuffAggregator
from omegaconf import OmegaConf

network = torch.nn.Module()
network.w = torch.nn.Parameter(torch.zeros(1))
server = FedBuffAggregator(network, OmegaConf.create({"alpha": 1.0, "K": 1}))
for client in "ab":
    server.get_parameters(client_id=client)  # both start from 0
for client in "ab":
    print(server.aggregate(client, {"w": torch.ones(1)})["w"].item())  # both moved by 1; the paper: 1, 2
