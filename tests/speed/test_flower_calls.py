"""The cost of calling a Flower app, beside what Flower's own conversions of the arrays take.

In an environment of its own: tox run -e flower. Milliseconds: python tests/speed/flower_calls.py.
"""

from pathlib import Path
from statistics import median
from time import process_time

import numpy as np
import pytest
import torch

pytest.importorskip("flwr")

from flower_calls import MODELS, milliseconds, problem
from flwr.app import ArrayRecord

from fl_core.problems.flower_apps.generators import seeded

pytestmark = pytest.mark.slow
torch.set_num_threads(1)
REPEATS = 30


def conversion_milliseconds(numbers: int, arrays: int) -> float:
    """Return the median time of arrays to a record and back, at server and client, and of seeding."""
    values, times = [np.ones(numbers // arrays, np.float32) for _ in range(arrays)], []
    for _ in range(REPEATS):
        began = process_time()
        for _ in range(2):
            ArrayRecord(values).to_numpy_ndarrays()
        with seeded(0, "client_app", 0, 0):
            pass
        times.append(process_time() - began)
    return 1000 * median(times)


@pytest.mark.parametrize("size", MODELS.values(), ids=MODELS)
def test_a_call_costs_little_more_than_its_conversions(size: tuple[int, int], tmp_path: Path) -> None:
    assert milliseconds(problem(tmp_path, *size)) < 2 * conversion_milliseconds(*size)
