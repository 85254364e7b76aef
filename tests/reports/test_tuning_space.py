"""Edges of a space, and the share of it that is near its best, are those of a plain reference."""

from __future__ import annotations

import json
from collections.abc import Sequence
from math import dist

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from synthetic_studies import RATES, one, rate, tried

from reports.records.studies import Parameter, read_parameter, sensitivity, shares

# Edges.


@pytest.mark.parametrize(
    ("local", "distance", "edge"),
    [
        (0.001, 0.0, "lower"),
        (10 ** (-3 + 3 * 0.049), 0.049, "lower"),
        (10 ** (-3 + 3 * 0.051), 0.051, ""),
        (10**-1.5, 0.5, ""),
        (10 ** (-3 * 0.051), 0.051, ""),
        (10 ** (-3 * 0.049), 0.049, "upper"),
        (1.0, 0.0, "upper"),
    ],
)
def test_the_edge_is_five_per_cent_of_the_range_in_logs(local: float, distance: float, edge: str) -> None:
    study = one([tried(0.9, **rate(local)), tried(0.5, **rate(0.03))])
    assert study.space[0].to_edge(local) == pytest.approx(distance, abs=1e-12)
    assert study.edge(study.space[0]) == edge and study.edge(study.space[1]) == ""


def test_one_is_no_edge_of_a_count() -> None:
    buffer = read_parameter("buffer", {"low": 1, "high": 32, "log": True})
    rate = read_parameter("server_lr", {"low": 1.0, "high": 32.0, "log": True})
    assert buffer is not None and rate is not None
    assert [buffer.edge(value) for value in (1, 2, 31)] == ["", "", "upper"]
    assert [rate.edge(value) for value in (1, 2, 31)] == ["lower", "", "upper"]
    few = read_parameter("buffer", {"low": 4, "high": 32, "log": True})
    assert few is not None and few.edge(4) == "lower"


def test_of_a_list_only_its_ends_are_edges() -> None:
    buffer = Parameter("buffer", choices=(1, 5, 10))
    assert [buffer.edge(value) for value in buffer.choices] == ["lower", "", "upper"]
    assert Parameter("buffer", choices=(5,)).edge(5) == ""
    assert Parameter("weights", choices=("poly", "hinge")).edge("hinge") == ""
    long = Parameter("k", choices=tuple(range(101)))
    assert long.edge(0) == "lower" and long.edge(1) == "" and long.edge(100) == "upper"
    assert (
        Parameter("alpha", 0.0, 2.0).edge(1.91) == "upper" and Parameter("alpha", 0.0, 2.0).edge(1.89) == ""
    )


# Sensitivity.


def plain_share(trials: Sequence[tuple[float, float]], near: Sequence[bool], side: int = 60) -> float:
    """By brute force on a lattice of cells' middles; rates given as places in the unit square."""
    middles = [(i + 0.5) / side for i in range(side)]
    hits = 0
    for x in middles:
        for y in middles:
            distances = [dist((x, y), trial) for trial in trials]
            hits += near[distances.index(min(distances))]
    return hits / side**2


def test_the_share_of_the_space_is_that_of_a_plain_reference() -> None:
    rng = np.random.default_rng(3)
    places = rng.random((25, 2)).tolist()
    values = [0.9 - 0.5 * abs(x - 0.6) for x, _ in places]
    made = [
        tried(value, diverged=int(x > 0.8), **rate(10 ** (3 * x - 3), 10 ** (2 * y - 1)))
        for (x, y), value in zip(places, values, strict=True)
    ]
    found = sensitivity(one(made))
    near = [value >= 0.95 * max(values) for value in values]
    assert 0 < sum(near) < len(near) and found.of_space
    assert found.near == pytest.approx(plain_share(places, near), abs=0.01)
    assert found.diverges == pytest.approx(plain_share(places, [x > 0.8 for x, _ in places]), abs=0.01)


@given(st.lists(st.floats(-2.9, -0.1), min_size=2, max_size=8, unique_by=lambda x: round(x, 2)))
def test_on_a_line_every_trial_stands_for_what_is_half_way_to_its_neighbours(logs: list[float]) -> None:
    space = {"local_lr": RATES["local_lr"]}
    study = one([tried(0.5, local_lr=10**x) for x in logs], space=json.dumps(space))
    order = np.argsort(logs)
    at = np.array(logs)[order]
    bounds = np.array([-3, *((at[1:] + at[:-1]) / 2), 0])
    assert shares(study.space, study.judged)[order] == pytest.approx(np.diff(bounds) / 3, abs=2e-3)


def test_choices_and_names_have_their_share_too() -> None:
    space = {
        "local_lr": RATES["local_lr"],
        "kind": {"choices": ["a", "b"]},
        "buffer": {"choices": [10, 1, 5]},
    }
    made = [
        tried(0.9 if kind == "a" else 0.1, local_lr=10**-1.5, kind=kind, buffer=buffer)
        for kind in "ab"
        for buffer in (1, 5, 10)
    ]
    study = one(made, space=json.dumps(space))
    assert shares(study.space, study.judged) == pytest.approx([1 / 6] * 6, abs=0.01)
    assert sensitivity(study).near == pytest.approx(0.5, abs=0.01)


def test_equal_trials_share_a_place_once() -> None:
    study = one([tried(0.9, **rate(0.1)), tried(0.9, **rate(0.1))])
    assert shares(study.space, study.judged).tolist() == [1, 0]


@pytest.mark.parametrize(("sampler", "near", "diverges"), [("grid", 3 / 5, 1 / 5), ("random", 2 / 4, 1 / 4)])
def test_of_a_grid_and_of_random_trials_it_is_the_share_of_trials(
    sampler: str, near: float, diverges: float
) -> None:
    made = [
        tried(0.90, origin="paper", **rate(0.1)),
        tried(0.86, **rate(0.2)),
        tried(0.85, **rate(0.3)),
        tried(0.858, **rate(0.4)),
        tried(0.0, diverged=2, **rate(1)),
    ]
    found = sensitivity(one(made, sampler=sampler))
    assert not found.of_space
    assert found.near == pytest.approx(near) and found.diverges == pytest.approx(diverges)


def test_where_less_is_better_five_per_cent_lie_above() -> None:
    made = [tried(loss, **rate(0.1 + loss / 10)) for loss in (1.0, 1.05, 1.06, 0.5 * 4)]
    found = sensitivity(one(made, sampler="grid", direction="minimize", metric="test/loss"))
    assert found.near == pytest.approx(2 / 4)


def test_equal_parameters_are_equal_field_by_field() -> None:
    """Python 3.13 compares data classes so, and NaN is unequal to itself."""
    spec = {"choices": ["adam", "sgd"]}
    first, second = read_parameter("optimizer", spec), read_parameter("optimizer", spec)
    assert first == second
    for name in ("low", "high"):
        value = getattr(first, name)
        assert value == value  # noqa: PLR0124 - not so with NaN
