"""APPFL: its virtual-time simulator with its agents, scheduler and trainer, on random points."""

import random
from pathlib import Path
from typing import Any

import numpy as np
import protocol
import torch

protocol.bare_package("appfl", "appfl.misc")
protocol.stub("wandb", run=None)
protocol.stub_anything("lz4", "appfl.misc.data_readiness")
protocol.stub_anything(*(f"appfl.misc.data_readiness.{name}" for name in ("report", "metrics", "plots")))
from appfl.agent import SimClientAgent, SimServerAgent  # noqa: E402
from appfl.vsim import AsyncSimDriver, ClientProfile  # noqa: E402

NETWORK = """
import torch

class Network(torch.nn.Linear):
    def __init__(self):
        super().__init__(20, 4)

def accuracy(labels, scores):
    return (scores.argmax(axis=1) == labels).mean()
"""
NAMES = [f"client{number}" for number in range(5)]


def configuration(options: dict[str, Any]) -> dict[str, Any]:
    """Return the configuration of an example of the repository, for the network above."""
    Path("network.py").write_text(NETWORK)
    network = {"model_path": "network.py", "model_name": "Network"}
    training = {"trainer": "VanillaTrainer", "mode": "step", "num_local_steps": 5, "train_batch_size": 8}
    training |= {"optim": "SGD", "optim_args": {"lr": 0.1}, "device": "cpu"}
    training |= {"loss_fn": "CrossEntropyLoss", "metric_path": "network.py"}
    quick = {"optimize_memory": False}  # which collects garbage several times an update
    training |= quick
    aggregator = {**quick, "alpha": 0.6, "staleness_fn": "polynomial", "staleness_fn_kwargs": {"a": 0.5}}
    if options["algorithm"] == "FedBuff":
        aggregator |= {"K": 3}
    server = {"num_clients": len(NAMES), "num_global_epochs": 20, "scheduler": "AsyncScheduler"}
    server |= {"scheduler_kwargs": {"num_clients": len(NAMES), **quick}, "aggregator_kwargs": aggregator}
    server |= {"aggregator": f"{options['algorithm']}Aggregator", **quick}
    clients = {"model_configs": network, "train_configs": {**training, "metric_name": "accuracy"}, **quick}
    return {"client_configs": clients, "server_configs": server}


def example(options: dict[str, Any]) -> tuple[protocol.Array, list[int]]:
    """Run FedAsync or FedBuff for 20 arrivals of five clients, of which three work."""
    random.seed(0)
    np.random.seed(0)  # noqa: NPY002 - one of its generators
    torch.manual_seed(0)
    server = SimServerAgent(configuration(options))
    data = [torch.utils.data.TensorDataset(torch.randn(40, 20), torch.randint(4, (40,))) for _ in NAMES]
    clients = [
        SimClientAgent(configuration(options)["client_configs"], client_id=name, client_dataset=each)
        for name, each in zip(NAMES, data, strict=True)
    ]
    profiles = {name: ClientProfile(compute_factor=1 + place) for place, name in enumerate(NAMES)}
    step = options.get("base_step_time")
    driver = AsyncSimDriver(server, clients, profiles, 3, server.logger, seed=0, base_step_time=step)
    driver.run()
    arrivals = [NAMES.index(each["cid"]) for each in driver.history]
    return protocol.vector(server.model), arrivals


protocol.run_example(example)
