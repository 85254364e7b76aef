"""The objectives against sums worked by hand, and the order in which they put trials."""

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fl_core.metrics import ACCURACY, LOSS, Metric
from fl_core.recorded_names import Status
from fl_core.scenario import Budget
from tuning.objective import DIVERGED_FACTOR, Curve, CurvePoint, Objective

BUDGET = 100


def objective(kind: str = "final", **changed: Any) -> Objective:
    metric = ACCURACY if changed.pop("higher", True) else LOSS
    usual = {"metric": metric, "last": 2, "target": 0.9, "seeds": 3}
    return Objective(kind=kind, budget=Budget(updates=BUDGET, time=50), **{**usual, **changed})


def curve(*values: float, status: Status = Status.DONE) -> Curve:
    """Evaluated every 10 updates."""
    return Curve([CurvePoint(at, 10 * at, 5.0 * at, value) for at, value in enumerate(values)], status)


def test_final_is_the_mean_of_the_last_evaluations() -> None:
    assert objective().of(curve(0.1, 0.5, 0.7, 0.9)) == pytest.approx(0.8)


def test_auc_is_the_mean_of_the_step_function_over_the_updates() -> None:
    # 0.1 for 10 updates, 0.5 for 10, 0.7 for 10; the last evaluation stands for no time
    assert objective("auc").of(curve(0.1, 0.5, 0.7, 0.9)) == pytest.approx(1.3 / 3)


def test_auc_weighs_what_lies_between_two_evaluations() -> None:
    uneven = Curve(
        [CurvePoint(0, 0, 0.0, 1.0), CurvePoint(1, 90, 1.0, 0.0), CurvePoint(2, 100, 2.0, 0.5)], Status.DONE
    )
    assert objective("auc").of(uneven) == pytest.approx(0.9)


@pytest.mark.parametrize(("kind", "expected"), [("updates_to_target", 20.0), ("time_to_target", 10.0)])
def test_to_target_is_where_it_is_first_met(kind: str, expected: float) -> None:
    assert objective(kind).of(curve(0.1, 0.5, 0.9, 0.2, 0.95)) == expected


def test_a_loss_meets_its_target_from_above() -> None:
    falling = objective("updates_to_target", higher=False, target=0.5)
    assert falling.of(curve(2.0, 0.6, 0.5)) == 20.0


@given(st.lists(st.sampled_from(["reached", "late", "unreached", "diverged"]), min_size=3, max_size=3))
def test_the_mean_orders_by_diverged_then_unreached_then_time(ends: list[str]) -> None:
    to_target = objective("updates_to_target")
    curves = {
        "reached": curve(0.1, 0.9),
        "late": curve(*[0.1] * 9, 0.9),
        "unreached": curve(0.1, 0.2),
        "diverged": curve(0.1, float("nan"), status=Status.DIVERGED),
    }
    trial = [curves[end] for end in ends]
    worse = {"reached": "late", "late": "unreached", "unreached": "diverged"}
    for at, end in enumerate(ends):
        if end in worse:
            assert to_target.mean([*trial[:at], curves[worse[end]], *trial[at + 1 :]]) > to_target.mean(trial)


def test_one_seed_that_does_not_arrive_is_worse_than_any_trial_that_does() -> None:
    to_target = objective("updates_to_target")
    latest = [Curve([CurvePoint(0, BUDGET, 50.0, 0.9)], Status.DONE)] * 3
    one_missing = [curve(0.95), curve(0.95), curve(0.1)]
    all_missing = [curve(0.1)] * 3
    one_diverged = [curve(0.95), curve(0.95), curve(0.1, status=Status.DIVERGED)]
    ordered = [to_target.mean(trial) for trial in (latest, one_missing, all_missing, one_diverged)]
    assert all(better < worse for better, worse in pairwise(ordered))
    assert not to_target.reached(curve(0.1)) and to_target.reached(curve(0.95))


def test_a_diverged_seed_is_finite_and_worst() -> None:
    accuracy, loss = objective(), objective(higher=False)
    assert accuracy.of(curve(0.1, float("nan"), status=Status.DIVERGED)) == 0.0
    assert loss.of(curve(2.0, float("nan"), status=Status.DIVERGED)) == DIVERGED_FACTOR * 2.0


@given(st.lists(st.floats(0, 1e300), min_size=1, max_size=8))
def test_no_loss_is_worse_than_diverging(values: list[float]) -> None:
    loss = objective(higher=False)
    assert loss.of(curve(2.0, *values)) <= loss.of(curve(2.0, *values, status=Status.DIVERGED))


@given(st.floats(-1e6, 1e6), st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=4))
def test_nor_is_a_loss_that_begins_below_0(first: float, values: list[float]) -> None:
    """A negative log-likelihood: what falls is better than what rises, and that than diverging."""
    loss, better = objective(higher=False, last=1), min(first, *values) - 1.0
    assert loss.of(curve(first, better)) < loss.of(curve(first, *values))
    assert loss.of(curve(first, *values)) <= loss.of(curve(first, *values, status=Status.DIVERGED))


def test_a_diverged_seed_of_a_metric_that_may_be_negative_lies_below_any_other() -> None:
    """R² has no lowest value: a diverged seed is DIVERGED_FACTOR times the first value's size below that."""
    r2 = objective(metric=Metric("test/r2", higher=True))
    assert r2.of(curve(-0.5, float("nan"), status=Status.DIVERGED)) == pytest.approx(
        -0.5 - DIVERGED_FACTOR * 0.5
    )
    assert r2.of(curve(-0.5, -2.0, -3.0)) == pytest.approx(-2.5)
