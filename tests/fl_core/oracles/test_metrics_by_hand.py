"""What is recorded of a model, computed from the model and the data alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from uneven import CLIENTS, IMPORTANCE, TIMES, Array, described, first_of_c, losses

from fl_core.experiment import Experiment
from fl_core.loop.simulation import Simulation, simulate
from fl_core.metrics import Metric
from fl_core.recorded_names import Status
from fl_core.recording.recorder import Recorder
from fl_core.scenario import Budget
from fl_core.time_to_target import time_to_target
from tuning.objective import Curve, CurvePoint, Objective


def recorded(experiment: Experiment) -> Recorder:
    """A run to its end, evaluated at its marks."""
    recorder = Recorder(Simulation(experiment))
    recorder.start()
    for event in simulate(recorder.simulation):
        recorder.see(event)
    recorder.finish()
    return recorder


def participations(size: int) -> list[float]:
    """How often each client takes part in FedBuff-c."""
    counts = Counter(client for arrivals in first_of_c(size, 10_000) for client, _ in arrivals)
    return [counts[client] for client in range(CLIENTS)]


SPEED = [float(1 / time) for time in TIMES]


@pytest.mark.parametrize(
    ("name", "fields", "takes_part"),
    [
        ("fedavg", {}, [1.0] * CLIENTS),
        ("async_fedavg", {}, SPEED),
        ("fedfix", {"period": "3/10"}, [1 / 4, 1 / 3, 1 / 2, 1, 1 / 8]),  # 1/⌈τ_i/Δt⌉
        ("fedbuff_c", {"buffer": 2}, None),
        ("fedbuff", {"buffer": 2, "concurrency": 5}, SPEED),
    ],
    ids=str,
)
def test_losses_on_both_problems(
    name: str, fields: dict[str, Any], takes_part: Sequence[float] | None
) -> None:
    """Mean and spread of clients' losses under p_i and under s_i (Fraboni et al., JMLR 2023, eqs. 2, 6)."""
    takes_part = takes_part or participations(fields["buffer"])
    recorder = recorded(described(name, **fields))
    row, client_loss = recorder.record.curve[-1], losses(recorder.simulation.server.model.numpy())
    for prefix, importance in (("fp", IMPORTANCE), ("sp", np.array(takes_part) / sum(takes_part))):
        mean = float((importance * client_loss).sum())
        spread = float((importance * (client_loss - mean) ** 2).sum()) ** 0.5
        assert row[f"{prefix}/loss"] == pytest.approx(mean, rel=1e-12)
        assert row[f"{prefix}/std"] == pytest.approx(spread, rel=1e-12)
    assert "worst_client/accuracy" not in row  # quadratics have none


def test_a_network_on_digits() -> None:
    """Softmax regression: losses and the worst client's accuracy from weights, images and labels."""
    recorder = recorded(
        Experiment.model_validate(
            {
                "scenario": {
                    "problem": {
                        "name": "digits",
                        "clients": 4,
                        "importance": [4, 3, 2, 1],
                        "partition": {"name": "client_dirichlet", "alpha": 0.3},
                    },
                    "timing": {"durations": {"name": "fixed", "times": ["1", "1/2", "1/3", "2"]}},
                    "budget": {"updates": 60},
                },
                "strategy": {"name": "async_fedavg", "local_lr": 0.05},
            }
        )
    )
    world: Any = recorder.simulation.world
    row, model = recorder.record.curve[-1], recorder.simulation.server.model.double().numpy()
    weight, bias = model[:640].reshape(10, 64), model[640:]

    def judged(images: Any, labels: Any) -> tuple[Array, Array]:
        """Cross-entropy and whether the largest logit is the label's, for each image."""
        logits = (images.double().numpy().reshape(-1, 64) - 4.8834) / 6.0145 @ weight.T + bias
        y = labels.numpy()
        log_sum = np.log(np.exp(logits).sum(1))
        return log_sum - logits[np.arange(len(y)), y], logits.argmax(1) == y

    loss, _ = judged(world.data.x_train, world.data.y_train)
    test_loss, right = judged(world.data.x_test, world.data.y_test)
    y_train, y_test = world.data.y_train.numpy(), world.data.y_test.numpy()
    shares = np.split(world.held, np.cumsum(world.sizes)[:-1])  # each client's data points
    client_loss = np.array([loss[share].mean() for share in shares])
    of_class = np.array([right[y_test == label].mean() for label in range(10)])
    client_accuracy = [of_class[y_train[share]].mean() for share in shares]  # its own mix of labels

    p, s = np.array([4, 3, 2, 1]) / 10, np.array([1, 2, 3, 0.5]) / 6.5
    assert np.ptp(client_accuracy) > 0.05
    assert row["worst_client/accuracy"] == pytest.approx(min(client_accuracy), abs=1e-6)
    assert row["test/accuracy"] == pytest.approx(right.mean(), abs=1e-9)
    assert row["test/loss"] == pytest.approx(test_loss.mean(), rel=1e-5)
    table = recorder.record.clients
    assert table["accuracy"] == pytest.approx(client_accuracy, abs=1e-6)
    assert table["loss"] == pytest.approx(client_loss, rel=1e-5)
    assert (table["client"], table["mean_time"]) == ([0, 1, 2, 3], [1, 1 / 2, 1 / 3, 2])
    assert table["importance"] == pytest.approx(p)
    assert table["size"] == [len(share) for share in shares]
    assert sum(table["updates"]) == 60
    for prefix, importance in (("fp", p), ("sp", s)):
        mean = importance @ client_loss
        assert row[f"{prefix}/loss"] == pytest.approx(mean, rel=1e-5)
        assert row[f"{prefix}/std"] == pytest.approx(
            (importance @ (client_loss - mean) ** 2) ** 0.5, rel=1e-4
        )


TARGET = 0.2


@pytest.mark.parametrize(
    ("budget", "evaluations", "when", "updates"),
    [
        ({"updates": 20}, 10, 4.0, 8),  # evaluated after each of ten rounds
        ({"time": 10}, 20, 4.0, 8),  # at every multiple of 1/2
        ({"time": 10}, 4, 5.0, 10),  # at 2.5, 5, 7.5 and 10
        ({"updates": 20}, 5, 4.0, 8),  # after every second round
        ({"updates": 30}, 5, 6.0, 12),  # after every third
    ],
)
def test_time_to_a_target(budget: dict[str, int], evaluations: int, when: float, updates: int) -> None:
    """Rate 1/2 on ½(θ − c)², c = ±4, from θ = 2: the distance to θ* = 0 is 2^(1−n) after n rounds of time 1.

    It is 1/4 after three rounds and 1/8 after four, so that 0.2 is met at time 4, after eight updates.
    """
    experiment = Experiment.model_validate(
        {
            "scenario": {
                "problem": {"name": "quadratic", "centres": [[-4.0], [4.0]], "start": [2.0]},
                "timing": {"durations": {"name": "fixed", "times": ["1", "1/2"]}},
                "budget": budget,
                "evaluations": evaluations,
            },
            "strategy": {"name": "fedavg", "local_lr": 0.5},
        }
    )
    curve = recorded(experiment).record.curve
    assert [row["distance"] for row in curve] == pytest.approx(
        [2.0 ** (1 - row["iteration"]) for row in curve]
    )
    values = np.array([row["distance"] for row in curve])
    for clock, expected in (("time", when), ("updates", updates)):
        clocks = np.array([row[clock] for row in curve])
        assert time_to_target(clocks, values, TARGET, higher=False) == expected
        points = [
            CurvePoint(int(row["iteration"]), int(row["updates"]), row["time"], row["distance"])
            for row in curve
        ]
        limits = Budget(updates=20, time=10)
        objective = Objective(f"{clock}_to_target", Metric("distance", higher=False), 1, TARGET, limits, 1)
        assert objective.of(Curve(points, Status.DONE)) == expected
    assert time_to_target(clocks, values, 2.0**-40, higher=False) == float("inf")
