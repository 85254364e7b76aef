"""FlexFL: DecentralizedAsync.on_work_done (flexfl/fl_algos)."""

from typing import Any

import protocol

protocol.bare_package("flexfl", "flexfl.builtins", "flexfl.fl_algos")
protocol.stub_anything(
    "flexfl.builtins.FederatedABC", "flexfl.builtins.WorkerManager", "flexfl.builtins.Logger"
)
from flexfl.fl_algos.DecentralizedAsync import DecentralizedAsync  # noqa: E402


class Server(protocol.Server):
    """The master without its workers."""

    def __init__(self, model: protocol.Array, options: dict[str, Any]) -> None:
        self.master = object.__new__(DecentralizedAsync)
        state = {"weights": model, "penalty": options["da_penalty"], "working": set(), "running": True}
        quiet = {"send_work": lambda: None, "handle_iteration": lambda: None}
        vars(self.master).update(state | quiet)

    def receive(self, arrival: protocol.Arrival) -> None:
        self.master.on_work_done(arrival.client, arrival.model)

    def model(self) -> protocol.Array:
        return self.master.weights


if __name__ == "__main__":
    protocol.run(Server)
