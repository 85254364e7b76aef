"""Step functions and common grids: against slow references and by hand."""

from __future__ import annotations

from math import isnan

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reports.records.seed_summaries import common_grid, value_at

CLOCK = st.lists(st.integers(0, 30), min_size=1, max_size=8).map(sorted)


@given(CLOCK, st.data())
def test_a_step_function_holds_the_last_value_seen(clock: list[int], data: st.DataObject) -> None:
    values = data.draw(st.lists(st.floats(-5, 5), min_size=len(clock), max_size=len(clock)))
    grid = np.arange(-1, 32)
    found = value_at(grid, np.array(clock, float), np.array(values))
    for at, value in zip(grid, found, strict=True):
        seen = [one for when, one in zip(clock, values, strict=True) if when <= at]
        assert value == seen[-1] if seen else isnan(value)


@given(st.lists(CLOCK.map(lambda clock: np.unique(np.array(clock, float))), min_size=1, max_size=4))
def test_on_the_common_grid_no_curve_lags_behind(clocks: list[np.ndarray]) -> None:
    grid = common_grid(clocks)
    assert (np.diff(grid) > 0).all()
    assert grid[-1] == max(clock[-1] for clock in clocks)
    for k in range(max(map(len, clocks))):
        assert any(all((clock <= at).sum() >= min(k + 1, len(clock)) for clock in clocks) for at in grid)
    for at in grid:  # and each mark is some curve's own
        assert any(at in clock for clock in clocks)


def test_shared_marks_are_the_common_grid() -> None:
    marks = np.array([0.0, 5.0, 10.0])
    assert common_grid([marks, marks]) == pytest.approx(marks)
    assert len(common_grid([])) == 0
