import numpy as np
from golf_federated.server.process.strategy.aggregation.function import fedasync

for alpha in (0.6, 0.9):
    model = fedasync(
        client_id=["a"],
        weight={"a": [np.ones(1)]},
        staleness="Polynomial",
        current_weight=[np.zeros(1)],
        current_round=3,
        client_round={"a": 0},
        alpha=alpha,
        beta=0,
    )
    print(f"{model[0][0]:.4f}")
