"""Metrics: one declaration, and what follows from it."""

from __future__ import annotations

import json

import numpy as np
import pytest

from fl_core.metrics import ACCURACY, FEDERATED, LOSS, Metric, as_data, from_text, named
from fl_core.problems.problem import Problem, shipped_metrics

WAIT = Metric("test/wait", "Test waiting time", higher=False, unit="minutes")


def test_a_declaration_survives_the_record() -> None:
    declared = (ACCURACY, WAIT, Metric("plain"))
    assert from_text(json.dumps(as_data(declared))) == declared


@pytest.mark.parametrize(
    "text", ["null", "3", "{", '{"name": "a"}', '[1, {"title": "no name"}]', '[{"name": "a", "share": 1}]']
)
def test_what_is_no_declaration_is_left_out(text: str) -> None:
    assert from_text(text) == ()


def test_the_worst_client_is_the_lowest_or_the_highest() -> None:
    values = np.array([0.3, 0.9, 0.5])
    assert (ACCURACY.worst(values), WAIT.worst(values)) == (0.3, 0.9)
    worst = WAIT.worst_client
    assert (worst.name, worst.title, worst.heading) == (
        "worst_client/wait",
        "Worst client’s waiting time",
        "Worst client’s waiting time (minutes)",
    )
    assert (worst.higher, worst.unit) == (False, "minutes")


def test_what_was_declared_outranks_what_older_runs_mean() -> None:
    """test/accuracy of another task has another title."""
    own = Metric("test/accuracy", "Share of right labels", higher=True, share=True)
    assert named("test/accuracy", [own]) is own
    assert named("test/accuracy") == ACCURACY
    assert named("who/knows") == Metric("who/knows", "who/knows", higher=None)


def test_a_metric_without_direction_cannot_rank() -> None:
    with pytest.raises(ValueError, match="cannot be ranked"):
        _ = Metric("plain").sign


def test_every_problem_ranks_by_a_metric_that_it_declares() -> None:
    for name in Problem.members().keys() - {"own", "flower"}:
        problem = Problem.model_validate(name)
        assert problem.ranking.higher is not None
        names = [one.name for one in problem.recorded()]
        assert len(set(names)) == len(names)
        assert {one.name for one in FEDERATED} < set(names)
    assert shipped_metrics()["test/loss"] == LOSS


def test_a_suite_may_rank_by_another_metric_and_its_key_tells() -> None:
    usual, other = (
        Problem.model_validate({"name": "digits", **more}) for more in ({}, {"metric": "test/loss"})
    )
    assert "metric" not in usual.identity()
    assert other.identity()["metric"] == "test/loss"
    assert other.ranking == LOSS
    with pytest.raises(ValueError, match="metric: unknown metric 'test/los'"):
        Problem.model_validate({"name": "digits", "metric": "test/los"})
