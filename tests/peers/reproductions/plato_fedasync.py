import asyncio
from types import SimpleNamespace

from plato.algorithms.fedavg import Algorithm
from plato.servers.strategies.aggregation.fedasync import FedAsyncAggregationStrategy
from plato.servers.strategies.base import ServerContext

context = ServerContext()
context.algorithm = Algorithm(SimpleNamespace(model=None))
context.trainer = context.algorithm.trainer
strategy = FedAsyncAggregationStrategy(mixing_hyperparameter=0.6)
report = SimpleNamespace(staleness=0, report=SimpleNamespace(num_samples=1))
print(asyncio.run(strategy.aggregate_weights([report], {"w": 0.0}, [{"w": 1.0}], context)))  # 0.6 is expected
