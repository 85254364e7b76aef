import torch
from appfl.algorithm.aggregator import FedQueueAggregator
from omegaconf import OmegaConf

settings = {"staleness_fn": "exponential", "staleness_fn_kwargs": {"beta": 0.5}}
aggregator = FedQueueAggregator(torch.nn.Linear(1, 1), OmegaConf.create(settings))
model = torch.nn.Linear(1, 1).state_dict()
try:
    aggregator.aggregate({"a": model}, staleness={"a": 1}, local_steps={"a": 1})
except TypeError as error:
    print(error)
