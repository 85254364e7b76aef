import numpy as np
from golf_federated.server.process.strategy.aggregation.function import fedasync

model = fedasync(
    client_id=["a"],
    weight={"a": [np.ones(1)]},
    staleness="Hinge",
    current_weight=[np.zeros(1)],
    current_round=6,
    client_round={"a": 0},
    alpha=0.5,
    beta=4,
)
print(f"{model[0][0]:.4f}")  # the paper: 0.5/(0.5 (6 − 4) + 1) = 0.25
