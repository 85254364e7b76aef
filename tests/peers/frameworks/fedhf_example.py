"""FedHF: its simulated asynchronous coordinator with its MLP, on random images in place of MNIST."""

from types import SimpleNamespace
from typing import Any

import protocol

operators = protocol.declare_torchvision_operators()
import fedhf  # noqa: E402
from fedhf.core.coordinator import SimulatedAsyncCoordinator  # noqa: E402
from fedhf.core.server.simulated_server import SimulatedServer  # noqa: E402
from fedhf.dataset import RandomDataset, dataset_factory  # noqa: E402


def images(args: Any) -> SimpleNamespace:
    """Return a data set as `MNISTDataset` has it, without the download."""
    train, test = (RandomDataset(args, length, (1, 28, 28), 10) for length in (200, 50))
    return SimpleNamespace(trainset=train, testset=test)


def example(options: dict[str, Any]) -> tuple[protocol.Array, list[int]]:
    """Run FedAsync for three rounds with five clients."""
    dataset_factory["mnist"] = images
    settings = {"algor": "fedasync", "scheme": "async", "model": "mlp", "num_clients": 5, "num_rounds": 3}
    args = fedhf.init(**settings, num_epochs=1, seed=0)
    coordinator = SimulatedAsyncCoordinator(args)
    versions: list[int] = []
    original = SimulatedServer.update

    def update(server: Any, model: Any, **versions_of: int) -> None:
        versions.append(versions_of["client_model_version"])
        original(server, model, **versions_of)

    SimulatedServer.update = update
    coordinator.run()
    return protocol.vector(coordinator.server.model), versions


protocol.run_example(example)
