"""FLSim: its AsyncTrainer on its letters of the alphabet, with random starts and durations."""

from typing import Any

import hydra.utils  # noqa: F401 - before data classes change
import numpy as np
import protocol
import torch
from flsim_dataclasses import hashable_dataclasses

protocol.stub_anything("torch.utils.tensorboard")
operators = protocol.declare_torchvision_operators()
with hashable_dataclasses():
    from flsim.clients.base_client import ClientConfig
    from flsim.optimizers import async_aggregators as aggregators
    from flsim.optimizers.local_optimizers import LocalOptimizerSGDConfig
    from flsim.trainers.async_trainer import AsyncTrainer, AsyncTrainerConfig
    from flsim.utils.async_trainer import async_staleness_weights as weights
    from flsim.utils.async_trainer import training_event_generator as events
    from flsim.utils.async_trainer.async_weights import AsyncWeightConfig
    from flsim.utils.sample_model import DummyAlphabetFLModel
    from flsim.utils.test_utils import FakeMetricReporter
    from flsim.utils.tests.helpers.test_async_trainer_utils import get_fl_data_provider
    from flsim.utils.timing.training_duration_distribution import PerUserGaussianDurationDistributionConfig
from omegaconf import OmegaConf  # noqa: E402


def example(options: dict[str, Any]) -> tuple[protocol.Array, list[int]]:
    """Run FedAsync or FedBuff for three epochs with 13 clients."""
    np.random.seed(0)  # noqa: NPY002 - the generator of FLSim
    torch.manual_seed(0)
    model = DummyAlphabetFLModel()
    aggregator = {
        "FedAsync": aggregators.FedAvgWithLRAsyncAggregatorConfig(lr=0.5),
        "FedBuff": aggregators.FedAvgWithLRFedBuffAggregatorConfig(lr=0.5, buffer_size=3),
    }[options["algorithm"]]
    generator = events.AsyncTrainingEventGeneratorConfig(
        training_start_time_distribution=events.PoissonAsyncTrainingStartTimeDistrConfig(training_rate=5),
        duration_distribution_generator=PerUserGaussianDurationDistributionConfig(
            training_duration_mean=1, training_duration_sd=0.5
        ),
    )
    settings = AsyncTrainerConfig(
        aggregator=aggregator,
        client=ClientConfig(epochs=1, optimizer=LocalOptimizerSGDConfig(lr=0.1)),
        epochs=3,
        training_event_generator=generator,
        async_weight=AsyncWeightConfig(
            staleness_weight=weights.PolynomialStalenessWeightConfig(exponent=0.5)
        ),
        always_keep_trained_model=True,
    )
    trainer = AsyncTrainer(model=model, cuda_enabled=False, **OmegaConf.structured(settings))
    versions: list[int] = []
    original = trainer.on_training_end

    def on_training_end(client: Any) -> None:
        versions.append(client.model_seqnum)
        original(client)

    trainer.on_training_end = on_training_end
    data = get_fl_data_provider(52, 13, examples_per_user=4, batch_size=2, model=model)
    trainer.train(data, FakeMetricReporter(), num_total_users=13)
    return protocol.vector(trainer.aggregator.global_model.fl_get_module()), versions


protocol.run_example(example)
