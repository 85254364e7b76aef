"""numpyexample: linear regression by hand, each client with an optimum of its own."""

import numpy as np

D = 3


def load_data(partition_id: int, num_partitions: int) -> tuple[np.ndarray, np.ndarray]:
    """Make a client's data: its optimum is (i, 1, −1)."""
    rng = np.random.default_rng(partition_id)
    x = rng.normal(size=(20, D))
    return x, x @ np.array([partition_id / num_partitions, 1.0, -1.0])


def initial_arrays() -> list[np.ndarray]:
    """Return the first model."""
    return [np.zeros(D)]
