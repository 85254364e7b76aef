"""Daisy: FedAsync.aggregate_fit (daisyflcocdrlib/operator/strategy/fedasync.py)."""

from typing import Any

import protocol

protocol.bare_package("daisyflcocdrlib", "daisyflcocdrlib.operator", "daisyflcocdrlib.operator.strategy")
from daisyflcocdrlib.common import (  # noqa: E402
    CURRENT_ROUND,
    FitRes,
    ndarrays_to_parameters,
    parameters_to_ndarrays,
)
from daisyflcocdrlib.operator.strategy.fedasync import FedAsync  # noqa: E402


class Server(protocol.Server):
    """The staleness function is the caller's."""

    def __init__(self, model: protocol.Array, options: dict[str, Any]) -> None:
        power = options["power"]
        scaled = lambda alpha, staleness: alpha * (1 + staleness) ** -power  # noqa: E731
        self.strategy = FedAsync(alpha=options["alpha"], staleness_fn=scaled)
        self.parameters, self.version = ndarrays_to_parameters([model]), 0

    def receive(self, arrival: protocol.Arrival) -> None:
        sent = ndarrays_to_parameters([arrival.model])
        result = FitRes(status=None, parameters=sent, config={CURRENT_ROUND: arrival.version})
        result.prime = self.parameters  # the newest model, where aggregate_fit looks for it
        self.parameters, _ = self.strategy.aggregate_fit(self.version, [(None, result)], [])
        self.version += 1

    def model(self) -> protocol.Array:
        return parameters_to_ndarrays(self.parameters)[0]


if __name__ == "__main__":
    protocol.run(Server)
