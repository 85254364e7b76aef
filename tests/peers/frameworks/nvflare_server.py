"""NVIDIA FLARE: BuffModelManager (nvflare/edge/assessors). Its first model is version 1."""

import logging
from typing import Any

import numpy as np
import protocol
from nvflare.apis.dxo import DXO, DataKind
from nvflare.apis.fl_context import FLContext
from nvflare.edge.assessors.buff_model_manager import BuffModelManager
from nvflare.edge.mud import ModelUpdate

logging.disable(logging.CRITICAL)


class Server(protocol.Server):
    """No version is pruned; `max_model_history` drops updates that are staler."""

    def __init__(self, model: protocol.Array, options: dict[str, Any]) -> None:
        self.context = FLContext()
        self.manager = BuffModelManager(**options["arguments"])
        self.manager.initialize_model(DXO(DataKind.WEIGHTS, {"w": model}), self.context)
        self.manager.generate_new_model(self.context)
        if options["arguments"].get("max_model_history"):
            self.prune = self.manager.prune_model_versions
        else:
            self.prune = lambda *_: None

    def receive(self, arrival: protocol.Arrival) -> None:
        data = {"dict": {"w": arrival.delta}, "count": 1}
        update = DXO(DataKind.WEIGHT_DIFF, data=data).to_shareable()
        version = arrival.version + 1
        message = {version: ModelUpdate(version, update, {str(arrival.client): 1.0})}
        self.manager.process_updates(message, self.context)
        self.prune(set(self.manager.updates), self.context)

    def model(self) -> protocol.Array:
        return np.array(self.manager.current_model.data["w"])


if __name__ == "__main__":
    protocol.run(Server)
