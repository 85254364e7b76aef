"""FLGo: a run as in its README, on its own synthetic regression; clients answer after 5 to 20 ticks."""

from typing import Any

import flgo
import flgo.benchmark.synthetic_regression as synthetic
import protocol
from flgo.algorithm import fedasync, fedbuff


def example(options: dict[str, Any]) -> tuple[protocol.Array, list[int]]:
    """Run FedAsync or FedBuff for 40 rounds with ten clients, of which five work."""
    algorithm = {"FedAsync": fedasync, "FedBuff": fedbuff}[options["algorithm"]]
    clients: list[int] = []
    original = algorithm.Server.package_handler

    def package_handler(server: Any, packages: dict[str, Any]) -> Any:
        clients.extend(packages["__cid"])
        return original(server, packages)

    algorithm.Server.package_handler = package_handler
    benchmark = {"name": synthetic, "para": {"num_clients": 10, "mean_datavol": 60}}
    flgo.gen_task({"benchmark": benchmark}, "task")
    settings = {"num_rounds": 40, "num_epochs": 1, "proportion": 0.5, "responsiveness": "UNI-5-20"}
    runner = flgo.init("task", algorithm, {**settings, "seed": 0, "gpu": [], "no_log_console": True})
    runner.run()
    return protocol.vector(runner.model), clients


protocol.run_example(example)
