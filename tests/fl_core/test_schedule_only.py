"""The schedule alone: the events of updates that are plain zero tensors, and zeros that behave like zeros."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
from torch import Tensor
from worlds import ONE_OF_EACH_KIND, scenario

from fl_core.execution.execution import ComputeRequest
from fl_core.execution.schedule_only import ScheduleOnly, Zeros
from fl_core.experiment import Experiment
from fl_core.loop.simulation import Event, Simulation, simulate
from fl_core.recording.recorder import run
from fl_core.strategies.strategy import Strategy

CENTRES = [[1.0, 0.0], [-2.0, 1.0], [3.0, 3.0], [0.5, -1.0], [0.0, 2.0], [2.0, -2.0]]
AWAY = {"name": "dropouts", "share": 0.4, "at": 3, "back": 5}


class PlainZeros:
    """The slow reference: ordinary tensors, so that all arithmetic is done."""

    label = "plain zeros"

    def execute(self, requests: Sequence[ComputeRequest]) -> list[int]:
        for request in requests:
            request.job.delta = request.job.gradient = torch.zeros_like(request.job.start)
        return [1] * len(requests)


def experiment(strategy: dict[str, Any], durations: Any = "exponential") -> Experiment:
    """A strategy on six clients, some of them away for a while; the first model is not zero."""
    where = scenario([1] * 6, centres=CENTRES, availability=AWAY, updates=120).model_dump()
    where["timing"]["durations"] = durations
    where["problem"]["start"] = (0.5, -2.0)
    return Experiment.model_validate({"scenario": where, "strategy": strategy, "seed": 1})


def played(described: Experiment, execution: Any) -> tuple[list[Event], str, Tensor]:
    """What happened, why it ended, and the last model."""
    simulation = Simulation(described)
    seen = list(simulate(simulation, execution))
    return seen, simulation.reason, simulation.server.model


OTHERS = sorted(Strategy.members().keys() - set(ONE_OF_EACH_KIND))
STEPS = {"name": "scaffold", "steps": 3, "dynamic": True}


@pytest.mark.parametrize(
    "strategy",
    [
        *(pytest.param({"name": name}, marks=pytest.mark.slow) for name in OTHERS),
        *({"name": name, "local": STEPS} for name in ONE_OF_EACH_KIND),
        *({"name": name, "cache": "int8"} for name in ("ace", "aced")),
        {"name": "ace", "form": "direct", "cache": "half"},
        {"name": "async_fedavg", "weights": "estimated"},
        {"name": "fedavg", "sampling": {"name": "highest_loss", "sample": 3}},
        {"name": "fedbuff", "buffer": 3, "server": "momentum", "concurrency": 4},
    ],
    ids=lambda strategy: "-".join(map(str, strategy.values())),
)
def test_events_are_those_of_plain_zeros(strategy: dict[str, Any]) -> None:
    """Of every strategy, exactly; and models, too."""
    described = experiment(strategy)
    seen, reason, model = played(described, ScheduleOnly())
    plain, plain_reason, plain_model = played(described, PlainZeros())
    assert seen == plain
    assert len(seen) >= 120
    assert reason == plain_reason
    assert torch.equal(model, plain_model)


def test_what_is_measured_is_the_first_model() -> None:
    """A recorder finds its metrics at every mark, those of a model that nobody trained."""
    record = run(experiment({"name": "fedbuff"}), execution=ScheduleOnly())
    assert record.status == "done"
    assert len({row["fp/loss"] for row in record.curve}) == 1
    assert len(record.arrivals["time"]) == 120


X = torch.tensor([1.0, -0.0, 3.0])


@pytest.mark.parametrize(
    "work",
    [
        lambda z: 2.5 * z,
        lambda z: z * 3,
        lambda z: z / 7,
        lambda z: z + z,
        lambda z: X + z,
        lambda z: z + X,
        lambda z: X - z,
        lambda z: z - X,
        lambda z: -z,
        lambda z: 1 + z,
        lambda z: z * X,
        lambda z: z / X[0],
        lambda z: torch.ones(2, 3) + z,
        lambda z: torch.ones(()) + z,
        lambda z: torch.maximum(X, z),
        lambda z: z.new_zeros((3,)) + X,
        lambda z: z.new_zeros((2, 3), dtype=torch.float64),
        lambda z: z.norm(),
    ],
)
def test_zeros_are_zeros(work: Callable[[Tensor], Tensor]) -> None:
    """Whatever is done with them: the value, shape and type that a plain tensor gives."""
    found, expected = work(torch.zeros(3).as_subclass(Zeros)), work(torch.zeros(3))
    assert torch.equal(found, expected)
    assert (found.shape, found.dtype) == (expected.shape, expected.dtype)


def test_sums_in_place() -> None:
    """`+=` with zeros stays zeros, with anything else it becomes a plain tensor; no other zeros move."""
    zeros = torch.zeros(3).as_subclass(Zeros)
    total = torch.zeros(3).as_subclass(Zeros)
    total += zeros / 2
    assert type(total) is Zeros
    total += X
    assert type(total) is Tensor
    assert torch.equal(total, X)
    assert not zeros.any()
    plain = X.clone()
    plain += zeros
    assert torch.equal(plain, X)
