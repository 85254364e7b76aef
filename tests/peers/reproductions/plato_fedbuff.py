import asyncio
from types import SimpleNamespace

import torch
from plato.algorithms.fedavg import Algorithm
from plato.servers.strategies.aggregation.fedbuff import FedBuffAggregationStrategy
from plato.servers.strategies.base import ServerContext

context = ServerContext()
context.trainer = SimpleNamespace(model=None, zeros=torch.zeros)
algorithm, model = Algorithm(context.trainer), {"w": torch.zeros(1)}
for sent in ({"w": torch.ones(1)}, {"w": torch.ones(1)}):  # both started from 0 and moved by 1
    deltas = algorithm.compute_weight_deltas(model, [sent])
    step = asyncio.run(FedBuffAggregationStrategy().aggregate_deltas([], deltas, context))
    model = {"w": model["w"] + step["w"]}
    print(model["w"].item())  # the paper, at rate 1 and without scaling: 1, 2
