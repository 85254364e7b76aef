"""FLSim: the asynchronous aggregators (flsim/optimizers/async_aggregators.py) and their weights."""

from typing import Any

import hydra.utils  # noqa: F401 - before data classes change
import protocol
import torch
from flsim_dataclasses import hashable_dataclasses

protocol.bare_package("flsim", "flsim.channels")
with hashable_dataclasses():
    from flsim.interfaces.model import IFLModel
    from flsim.optimizers import async_aggregators as aggregators
    from flsim.reducers.base_round_reducer import ReductionType, RoundReducerConfig
    from flsim.utils.async_trainer import async_staleness_weights as weights
from omegaconf import OmegaConf  # noqa: E402


class Model(IFLModel):
    """A vector as FLSim wants its models."""

    def __init__(self, vector: protocol.Array) -> None:
        self.module = torch.nn.Module()
        self.module.w = torch.nn.Parameter(torch.from_numpy(vector.copy()))

    def fl_get_module(self) -> torch.nn.Module:
        return self.module

    def _unused(self, *_: Any, **__: Any) -> None:
        """Training and evaluation are not compared."""

    fl_forward = fl_create_training_batch = fl_cuda = get_eval_metrics = get_num_examples = _unused


class Server(protocol.Server):
    """Weights by staleness are FLSim's own; what it calls a delta is start − end."""

    def __init__(self, model: protocol.Array, options: dict[str, Any]) -> None:
        self.global_model = Model(model)
        name = options["aggregator"]
        config = {"_target_": f"flsim.optimizers.async_aggregators.{name}", "lr": options["lr"]}
        if "buffer_size" in options:
            config["buffer_size"] = options["buffer_size"]
        if kind := options.get("aggregation_type"):
            config["aggregation_type"] = aggregators.AsyncAggregationType[kind]
        reduction = ReductionType[options.get("reduction", "WEIGHTED_SUM")]
        arguments = {"global_model": self.global_model, **config}
        arguments["reducer"] = OmegaConf.structured(RoundReducerConfig(reduction_type=reduction))
        self.aggregator = getattr(aggregators, name)(**arguments)
        self.epoch, self.received = options.get("epoch"), 0  # arrivals until the end of an epoch
        self.weight = weights.PolynomialStalenessWeight(exponent=0.5, avg_staleness=options["avg_staleness"])

    def receive(self, arrival: protocol.Arrival) -> None:
        self.aggregator.zero_grad()
        # The record has no steps at the ends of epochs, so that its versions are not those of this server
        counted = arrival.staleness if self.epoch else self.aggregator.model_staleness(arrival.version)
        weight = self.weight.weight(counted)
        self.aggregator.on_client_training_end(Model(-arrival.delta), Model(arrival.model), weight)
        self.received += 1
        if self.epoch and self.received % self.epoch == 0:
            self.aggregator.on_training_epoch_end()

    def model(self) -> protocol.Array:
        return self.global_model.module.w.detach().numpy()


if __name__ == "__main__":
    protocol.run(Server)
