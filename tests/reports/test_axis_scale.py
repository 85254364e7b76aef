"""Axes: which kind they are, that they hold what is drawn, that their numbers stand apart."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.figure import Figure

from reports.figures.axis_scale import Scale

SHARES = st.lists(st.floats(0, 1), min_size=1, max_size=20).map(np.array)


@given(SHARES, st.sampled_from([True, False, None]), st.booleans())
def test_everything_finite_lies_on_the_axis(values: np.ndarray, higher: bool | None, share: bool) -> None:
    scale = Scale.around(values, higher=higher, share=share)
    assert scale.low < scale.high
    inside = values[values < 1] if scale.kind == "error" else values
    assert (scale.low <= inside).all() and (inside <= scale.high).all()
    assert scale.clip(values) == pytest.approx(np.clip(values, scale.low, scale.high))


@pytest.mark.parametrize(
    ("values", "higher", "share", "kind"),
    [
        ([0.1, 0.8], True, True, "linear"),
        ([0.1, 0.95], True, True, "error"),
        ([1.0, 1.0], True, True, "linear"),
        ([0.1, 0.95], True, False, "linear"),
        ([2.3, 0.3], False, False, "linear"),
        ([2.3, 0.003], False, False, "log"),
        ([2.3, 0.0], False, False, "linear"),
        ([2.3, 0.003], None, False, "linear"),
    ],
)
def test_which_kind(values: list[float], higher: bool | None, share: bool, kind: str) -> None:
    assert Scale.around(np.array(values), higher=higher, share=share).kind == kind


def test_nothing_finite_and_what_lies_outside() -> None:
    assert Scale.around(np.array([np.nan, np.inf])) == Scale(0.0, 1.0)
    assert Scale(0.0, 2.0).clip(np.array([np.nan, np.inf, -np.inf, 1.0])) == pytest.approx([0, 2, 0, 1])


def test_places_are_those_of_the_axis() -> None:
    for low, middle, high, kind in ((0, 2, 4, "linear"), (1, 10, 100, "log"), (0.9, 0.99, 0.999, "error")):
        places = [Scale(low, high, kind).place(value) for value in (low, middle, high)]
        assert places == pytest.approx([0, 0.5, 1])


def test_numbers_of_an_error_axis() -> None:
    axes = Figure().add_subplot()
    Scale.around(np.array([0.2, 0.5, 0.97]), higher=True, share=True).apply(axes)
    assert [round(float(at), 3) for at in axes.get_yticks()] == [0.2, 0.5, 0.7, 0.8, 0.9, 0.95, 0.97]
    heights = axes.transData.transform([(0, at) for at in (0.2, 0.9, 0.95)])[:, 1]
    nines = -np.log10(1 - np.array([0.2, 0.9, 0.95]))
    assert np.diff(heights)[0] / np.diff(heights)[1] == pytest.approx(np.diff(nines)[0] / np.diff(nines)[1])
