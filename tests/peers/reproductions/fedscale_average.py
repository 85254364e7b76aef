from types import SimpleNamespace

import numpy as np
from fedscale.cloud.aggregation.async_aggregator import AsyncAggregator

server = object.__new__(AsyncAggregator)
server.round, server.tasks_round, server.aggregation_denominator = 1, 2, 0
server.client_task_model_version = {"a": 1, "b": 0}  # b started from the version before
server.model_wrapper = SimpleNamespace(set_weights=print)
for server.model_in_update, client in enumerate("ab", 1):
    server.update_weight_aggregation({"client_id": client, "update_weight": [np.ones(1)]})
