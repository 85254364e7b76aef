"""FedHF: FedAsyncAggregator (fedhf/algor/async_/fedasync)."""

import logging
from types import SimpleNamespace
from typing import Any

import numpy as np
import protocol
import torch

protocol.bare_package("fedhf", "fedhf.algor", "fedhf.algor.async_", "fedhf.algor.async_.fedasync")
protocol.bare_package("fedhf.component", "fedhf.model")
from fedhf.algor.async_.fedasync.fedasync_aggregator import FedAsyncAggregator  # noqa: E402

logging.disable(logging.CRITICAL)


class Options(dict[str, Any]):
    """A dictionary whose entries are attributes, too."""

    __getattr__ = dict.__getitem__


class Server(protocol.Server):
    """The aggregator is told the version of the server and that of the client."""

    def __init__(self, model: protocol.Array, options: dict[str, Any]) -> None:
        self.aggregator = object.__new__(FedAsyncAggregator)
        args = Options(algor="fedasync", fedasync=Options(options["arguments"]))
        quiet = SimpleNamespace(info=lambda *_: None)
        base = FedAsyncAggregator.__mro__[2]
        base.__init__ = lambda self, args: vars(self).update(
            args=args, logger=quiet
        )  # its logger wants a folder
        FedAsyncAggregator.__init__(self.aggregator, args)
        self.version, self.parameters = 0, torch.from_numpy(model)

    def receive(self, arrival: protocol.Arrival) -> None:
        versions = {"server_model_version": self.version, "client_model_version": arrival.version}
        result = self.aggregator.agg(self.parameters, torch.from_numpy(arrival.model), **versions)
        self.parameters, self.version = result["param"], result["model_version"]

    def model(self) -> protocol.Array:
        return np.array(self.parameters)


if __name__ == "__main__":
    protocol.run(Server)
