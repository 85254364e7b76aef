"""A thousand updates beside other simulators: logistic regression, 100 clients at work, no evaluation."""

from pathlib import Path
from time import process_time
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from pytest_benchmark.fixture import BenchmarkFixture
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from workloads import Noise, endless

from benchmarks.runs.run_jobs import EXECUTIONS
from benchmarks.speed import simulations

pytestmark = [
    pytest.mark.slow,
    pytest.mark.benchmark(timer=process_time),
    pytest.mark.parametrize("steps", [1, 10]),
]

CLIENTS, BATCH, BUFFER, UPDATES, ROUNDS = 100, 64, 10, 1_000, 3
STRATEGIES = {
    "fedbuff": {"name": "fedbuff", "concurrency": CLIENTS, "buffer": BUFFER},
    "fedavg": {"name": "fedavg"},
}


@pytest.mark.parametrize("execution", ["auto", "one_by_one"])
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_this_simulator(benchmark: BenchmarkFixture, strategy: str, execution: str, steps: int) -> None:
    local = {"name": "sgd", "steps": steps, "batch": BATCH}
    experiment = endless(Noise(clients=CLIENTS), {**STRATEGIES[strategy], "local_lr": 0.01, "local": local})
    compute = simulations([experiment], EXECUTIONS[execution]())
    benchmark.pedantic(compute, (UPDATES,), rounds=ROUNDS)


def test_flgo_fedbuff(
    benchmark: BenchmarkFixture, steps: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TQDM_DISABLE", "1")  # its bars cost more than its training
    flgo = pytest.importorskip("flgo")
    from flgo.algorithm import fedbuff
    from flgo.experiment.logger import BasicLogger

    class Silent(BasicLogger):  # type: ignore[misc]
        """Neither evaluates nor writes."""

        def log_once(self, *_: Any, **__: Any) -> None:
            """At the start, after each round, at the end."""

    class Enough(Exception):  # noqa: N818 - no error
        """All updates are made."""

    class Client(fedbuff.Client):  # type: ignore[misc]
        """Stops the run after as many updates as the others make."""

        left = 0

        def reply(self, package: Any) -> Any:
            """One update."""
            if not Client.left:
                raise Enough
            Client.left -= 1
            return super().reply(package)

    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    config = str(Path(__file__).with_name("flgo_data.py"))
    data = flgo.gen_benchmark_from_file("noise", config, data_type="general", task_type="general")
    partitioner = {"name": "IIDPartitioner", "para": {"num_clients": CLIENTS}}
    flgo.gen_task({"benchmark": data, "partitioner": partitioner}, "task")
    option = {
        "num_rounds": UPDATES,  # more than there are
        "num_steps": steps,
        "batch_size": BATCH,
        "learning_rate": 0.01,
        "sample": "uniform",
        "proportion": 1.0,
        "train_holdout": 0.0,
        "algo_para": [BUFFER / CLIENTS, 1.0],
        "responsiveness": "UNI-5-15",
        "eval_interval": -1,
        "no_log_console": True,
        "parallel_type": "",
    }

    def new() -> tuple[tuple[Any, ...], dict[str, Any]]:
        Client.left = UPDATES
        algorithm = SimpleNamespace(__name__="fedbuff", Server=fedbuff.Server, Client=Client)
        return (flgo.init("task", algorithm, option, Logger=Silent),), {}

    def run(runner: Any) -> None:
        with pytest.raises(Enough):
            runner.run()

    benchmark.pedantic(run, setup=new, rounds=ROUNDS)


class Logistic(nn.Module):
    """Logistic regression as pfl wants it."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(784, 10)

    def loss(self, inputs: Tensor, labels: Tensor, eval: bool = False) -> Tensor:  # noqa: A002 - its name there
        return cross_entropy(self.linear(inputs), labels)

    def metrics(self, inputs: Tensor, labels: Tensor, eval: bool = True) -> dict[str, Any]:  # noqa: A002
        from pfl.metrics import Weighted

        return {"loss": Weighted(float(self.loss(inputs, labels)) * len(labels), len(labels))}


def test_pfl_fedavg(benchmark: BenchmarkFixture, steps: int) -> None:
    pytest.importorskip("pfl")
    from pfl.aggregate.simulate import SimulatedBackend
    from pfl.algorithm.base import NNAlgorithmParams
    from pfl.algorithm.federated_averaging import FederatedAveraging
    from pfl.data.dataset import Dataset
    from pfl.data.federated_dataset import FederatedDataset
    from pfl.data.sampling import get_user_sampler
    from pfl.hyperparam import NNEvalHyperParams, NNTrainHyperParams
    from pfl.internal.ops import pytorch_ops
    from pfl.internal.ops.selector import set_framework_module
    from pfl.model.pytorch import PyTorchModel

    set_framework_module(pytorch_ops)
    np.random.seed(0)  # noqa: NPY002 - what it draws from
    size = (CLIENTS, steps * BATCH)
    held = list(zip(torch.randn((*size, 784)), torch.randint(0, 10, size), strict=True))
    data = FederatedDataset(
        lambda client: Dataset(raw_data=held[client], user_id=str(client)),
        get_user_sampler("minimize_reuse", list(range(CLIENTS))),
    )
    parameters = NNAlgorithmParams(
        central_num_iterations=UPDATES // CLIENTS,
        evaluation_frequency=UPDATES,
        train_cohort_size=CLIENTS,
        val_cohort_size=0,
    )
    training = NNTrainHyperParams(local_num_epochs=1, local_learning_rate=0.01, local_batch_size=BATCH)
    evaluation = NNEvalHyperParams(local_batch_size=None)

    def new() -> tuple[tuple[Any, ...], dict[str, Any]]:
        network = Logistic()
        model = PyTorchModel(network, torch.optim.SGD, torch.optim.SGD(network.parameters(), lr=1.0))
        backend = SimulatedBackend(training_data=data, val_data=data)
        return (parameters, backend, model, training, evaluation), {}

    benchmark.pedantic(lambda *given: FederatedAveraging().run(*given), setup=new, rounds=ROUNDS)
