"""sklearnexample: model and data."""

import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import SGDClassifier

FEATURES, CLASSES = 64, 10


def load_data(partition_id: int, num_partitions: int) -> tuple[np.ndarray, ...]:
    """Load partition data."""
    x, y = load_digits(return_X_y=True)
    x, y = x[partition_id::num_partitions] / 16, y[partition_id::num_partitions]
    cut = int(0.8 * len(x))
    return x[:cut], x[cut:], y[:cut], y[cut:]


def create_model(penalty: str, lr: float) -> SGDClassifier:
    """Create a linear classifier whose examples are shuffled by NumPy's global generator."""
    model = SGDClassifier(loss="log_loss", penalty=penalty, learning_rate="constant", eta0=lr, alpha=1e-4)
    model.classes_ = np.arange(CLASSES)
    set_model_params(model, [np.zeros((CLASSES, FEATURES)), np.zeros(CLASSES)])
    return model


def get_model_params(model: SGDClassifier) -> list[np.ndarray]:
    return [model.coef_, model.intercept_]


def set_model_params(model: SGDClassifier, params: list[np.ndarray]) -> SGDClassifier:
    model.coef_, model.intercept_ = np.array(params[0]), np.array(params[1])
    return model


def initial_arrays() -> list[np.ndarray]:
    """Return the first model."""
    return get_model_params(create_model("l2", 0.1))
