"""Synchronous FedAvg in pfl-research: 100 clients in every round, logistic regression.

python pfl_fedavg.py ROUNDS STEPS
"""

from __future__ import annotations

import json
import sys
from importlib.metadata import version
from time import process_time

import numpy as np
import torch
from pfl.aggregate.simulate import SimulatedBackend
from pfl.algorithm.base import NNAlgorithmParams
from pfl.algorithm.federated_averaging import FederatedAveraging
from pfl.data.dataset import Dataset
from pfl.data.federated_dataset import FederatedDataset
from pfl.data.sampling import get_user_sampler
from pfl.hyperparam import NNEvalHyperParams, NNTrainHyperParams
from pfl.internal.ops import pytorch_ops
from pfl.internal.ops.selector import set_framework_module
from pfl.metrics import Weighted
from pfl.model.pytorch import PyTorchModel
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

CLIENTS, BATCH = 100, 64


class Logistic(nn.Module):
    """Logistic regression as pfl wants it."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(784, 10)

    def loss(self, inputs: Tensor, labels: Tensor, eval: bool = False) -> Tensor:  # noqa: A002 - its name there
        """Cross entropy."""
        return cross_entropy(self.linear(inputs), labels)

    def metrics(self, inputs: Tensor, labels: Tensor, eval: bool = True) -> dict[str, Weighted]:  # noqa: A002
        """The same."""
        return {"loss": Weighted(float(self.loss(inputs, labels)) * len(labels), len(labels))}


def main(rounds: int, steps: int) -> None:
    """Write how many updates were made in how many seconds of processor time."""
    torch.set_num_threads(1)
    torch.optim.SGD([torch.zeros(1, requires_grad=True)]).step()  # imports what only the first step does
    set_framework_module(pytorch_ops)
    np.random.seed(0)  # noqa: NPY002 - what it draws from
    random = torch.Generator().manual_seed(0)
    held = {
        str(client): (
            torch.randn((steps * BATCH, 784), generator=random),
            torch.randint(0, 10, (steps * BATCH,), generator=random),
        )
        for client in range(CLIENTS)
    }
    data = FederatedDataset(
        lambda client: Dataset(raw_data=held[client], user_id=client),
        get_user_sampler("minimize_reuse", list(held)),
    )
    network = Logistic()
    model = PyTorchModel(network, torch.optim.SGD, torch.optim.SGD(network.parameters(), lr=1.0))
    parameters = NNAlgorithmParams(
        central_num_iterations=rounds,
        evaluation_frequency=rounds + 1,
        train_cohort_size=CLIENTS,
        val_cohort_size=0,
    )
    training = NNTrainHyperParams(local_num_epochs=1, local_learning_rate=0.01, local_batch_size=BATCH)
    evaluation = NNEvalHyperParams(local_batch_size=None)
    backend = SimulatedBackend(training_data=data, val_data=data)
    began = process_time()
    FederatedAveraging().run(parameters, backend, model, training, evaluation)
    seconds = process_time() - began
    found = {"package": f"pfl {version('pfl')}", "updates": CLIENTS * rounds, "seconds": seconds}
    sys.stdout.write(f"\n{json.dumps(found)}\n")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
