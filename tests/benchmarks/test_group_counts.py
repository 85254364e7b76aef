"""What is counted once a run has a mean over seeds, whichever of them have any."""

import pandas as pd
import pytest

from benchmarks.tracking.mlflow_entities import spread
from fl_core.schema import Total

WITHOUT = {Total.STALENESS_MAX: 4.0}
CURVE = pd.DataFrame({"loss": [0.5]})


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("count", [Total.NON_FINITE, Total.MISREAD])
def test_counts_that_are_recorded_above_zero_alone_are_zero_elsewhere(count: Total, first: bool) -> None:
    seeds = [{**WITHOUT, count: 3.0}, WITHOUT]
    assert dict(spread(seeds if first else seeds[::-1], CURVE)) == {Total.STALENESS_MAX: 4.0, count: 1.5}


def test_no_seed_counted_any() -> None:
    assert dict(spread([WITHOUT, WITHOUT], CURVE)) == WITHOUT


@pytest.mark.parametrize("first", [True, False])
def test_what_a_seed_lacks_otherwise_has_no_mean(first: bool) -> None:
    seeds = [{**WITHOUT, "diagnostics/x": 1.0}, WITHOUT]
    assert dict(spread(seeds if first else seeds[::-1], CURVE)) == WITHOUT
