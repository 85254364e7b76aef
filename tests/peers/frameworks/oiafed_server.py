"""OiaFed: AsyncTrainer (oiafed/methods/trainers/default.py), which cannot be made."""

from types import SimpleNamespace
from typing import Any

import protocol

protocol.bare_package("oiafed", "oiafed.methods", "oiafed.methods.trainers", "oiafed.core", "oiafed.infra")
quiet = SimpleNamespace(info=lambda *_: None)
protocol.stub("oiafed.infra.logging", get_logger=lambda *_, **__: quiet, get_module_logger=lambda *_: quiet)
protocol.stub("oiafed.registry", trainer=lambda **_: lambda kind: kind)
AsyncTrainer = protocol.attribute("oiafed.methods.trainers.default:AsyncTrainer")


class Server(protocol.Server):
    """The trainer without learners."""

    def __init__(self, model: protocol.Array, options: dict[str, Any]) -> None:
        AsyncTrainer(learners=[], aggregator=None)


if __name__ == "__main__":
    protocol.run(Server)
