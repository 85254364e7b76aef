"""Whatever the device, the same run: nothing is made on the CPU by mistake, nothing is drawn elsewhere.

Each test runs on a GPU where there is one, and on a stand-in that is as strict, everywhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
import stand_in
import torch
from side_by_side import RecorderSlot
from torch import Tensor
from torch.utils._pytree import tree_map
from worlds import scenario

from fl_core.diagnostics.diagnosis import Diagnostics
from fl_core.execution.auto import Auto
from fl_core.execution.execution import ComputeRequest, Execution
from fl_core.execution.one_by_one import OneByOne
from fl_core.execution.stacked import AllInFlight, work_together
from fl_core.experiment import Experiment
from fl_core.loop.simulation import Simulation
from fl_core.problems.data.data import Data
from fl_core.problems.models.model import Model
from fl_core.problems.problem import World
from fl_core.problems.supervised import Classification
from fl_core.recording.interleave import interleave
from fl_core.recording.recorder import Record, Recorder, run
from fl_core.strategies.strategy import Strategy
from fl_core.testing.strategy_checks import resumed

GPU = torch.device("cuda", 0)
needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU that PyTorch can use")

EXECUTIONS = [OneByOne, AllInFlight]
CENTRES = [[1.0, 0.0], [-2.0, 1.0], [3.0, 3.0], [0.5, -1.0]]
MEMORY = ("ace", "quafl")  # a table of the server, and models of the clients
QUICK = ("asyncfeded", "fedavg", *MEMORY)
LOCAL: list[Any] = [
    "scaffold",
    {"name": "sgd", "momentum": 0.9, "clip": 1.0, "weight_decay": 0.1},
    "adamw",
    {"name": "prox", "mu": 0.5},
    {"name": "sgd", "steps": 3, "dynamic": True},
]


@pytest.fixture(params=["stand-in", pytest.param("gpu", marks=needs_gpu)])
def device(request: pytest.FixtureRequest) -> Iterator[torch.device]:
    """Where there is no CPU."""
    there = request.param == "stand-in"
    with stand_in.StandIn() if there else nullcontext():
        yield stand_in.THERE if there else GPU


class Shapes(Classification):
    """Thirty inputs of three classes in whatever shape the model takes; images are cropped if asked."""

    classes: ClassVar[int] = 3
    samples: ClassVar[int] = 30
    crop: bool = False

    @property
    def shape(self) -> tuple[int, ...]:
        image = (2, 18, 18)
        return image if self.model.refuses(image, 3) is None else (8,)

    def augments(self) -> bool:
        return self.crop

    def load(self) -> Data:
        image = len(self.shape) == 3
        bytes_ = np.random.default_rng(0).integers(0, 256 if image else 3, (30, *self.shape), np.uint8)
        x, y = torch.from_numpy(bytes_), torch.arange(30) % 3
        scaled = ((120.0,) * 2, (60.0,) * 2) if image else ()
        return Data(x, y, x[:9], y[:9], 3, *scaled)


def quadratics(strategy: Any, local: Any = "sgd", seed: int = 1, **where: Any) -> Experiment:
    """A strategy on four noisy quadratics, one of them away for a while."""
    away = {"name": "dropouts", "share": 0.3, "at": 1, "back": 2}
    where = {
        "times": [1, "11/15", "1/5", 2],
        "centres": CENTRES,
        "noise": 0.3,
        "updates": 24,
        "evaluations": 4,
        "availability": away,
    } | where
    named = {"name": strategy} if isinstance(strategy, str) else strategy
    chosen = {"local_lr": 0.05, "local": local, **named}
    return Experiment.model_validate({"scenario": scenario(**where), "strategy": chosen, "seed": seed})


def digits(model: str, seed: int = 0, updates: int = 20) -> Experiment:
    """FedBuff on scikit-learn's digits in double precision, a client or two without data."""
    problem = {
        "name": "digits",
        "clients": 12,
        "dtype": "float64",
        "model": model,
        "partition": {"name": "class_dirichlet", "alpha": 0.02, "min_size": 0},
    }
    local = {"name": "sgd", "batch": 16, "steps": 2}
    return Experiment.model_validate(
        {
            "scenario": {
                "problem": problem,
                "timing": {"durations": "exponential"},
                "budget": {"updates": updates},
                "evaluations": 2,
            },
            "strategy": {"name": "fedbuff", "buffer": 2, "local_lr": 0.05, "local": local},
            "seed": seed,
        }
    )


def placed(experiment: Experiment, device: torch.device) -> World:
    return experiment.scenario.problem.world(experiment.seed).to(device)


def assert_same(record: Record, plain: Record) -> None:
    """The same arrivals exactly; everything measured to 1e-8."""
    assert record.arrivals == plain.arrivals
    assert (record.status, record.reason) == (plain.status, plain.reason)
    for rows, others in ((record.curve, plain.curve), (record.diagnostics, plain.diagnostics)):
        assert len(rows) == len(others)
        for row, other in zip(rows, others, strict=True):
            assert row.keys() == other.keys()
            assert list(row.values()) == pytest.approx(list(other.values()), rel=1e-8, abs=1e-8)


def assert_same_run(
    experiment: Experiment,
    device: torch.device,
    execution: Execution | None = None,
    diagnostics: Diagnostics | None = None,
) -> None:
    found = run(experiment, placed(experiment, device), execution, diagnostics=diagnostics)
    assert_same(found, run(experiment, diagnostics=diagnostics))


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in Strategy.members()],
)
def test_every_strategy(name: str, device: torch.device) -> None:
    """With SCAFFOLD, whose clients have a memory."""
    assert_same_run(quadratics(name, {"name": "scaffold", "steps": 2}), device, AllInFlight())


@pytest.mark.parametrize("local", LOCAL, ids=str)
def test_every_local_work(local: Any, device: torch.device) -> None:
    """Jobs of different numbers of steps among them."""
    for execution in EXECUTIONS:
        assert_same_run(quadratics("afa_cd", local, updates=12), device, execution())


def test_auto(device: torch.device, monkeypatch: pytest.MonkeyPatch) -> None:
    """It measures there."""
    monkeypatch.setattr(Auto, "known", {})
    if device == stand_in.THERE:
        monkeypatch.setattr(
            "fl_core.execution.auto.largest", lambda model: 1e6
        )  # CUDA is asked for its memory
    assert_same_run(digits("logistic"), device, Auto())


@pytest.mark.parametrize(
    "strategy",
    [
        *({"name": name, "cache": cache} for name in ("ace", "aced") for cache in ("half", "int8")),
        {"name": "ace", "form": "direct"},
        {"name": "fedavg", "sampling": {"name": "highest_loss", "sample": 2}},
        {"name": "generalized_asyncsgd", "concurrency": 6},
        {"name": "delay_adaptive", "rule": "mishchenko"},
    ],
    ids=lambda one: "-".join(map(str, one.values())),
)
def test_other_forms_of_strategies(strategy: Any, device: torch.device) -> None:
    """Caches of low precision, selection by loss, queues."""
    assert_same_run(quadratics(strategy, availability="always"), device, AllInFlight())


@pytest.mark.parametrize("model", ["logistic", pytest.param("cnn", marks=pytest.mark.slow)])
@pytest.mark.parametrize("execution", EXECUTIONS)
def test_images(model: str, execution: type[Execution], device: torch.device) -> None:
    """Logistic regression by hand, a network by autograd; some clients hold nothing."""
    experiment = digits(model, updates=20 if model == "logistic" else 4)
    assert (placed(experiment, torch.device("cpu")).sizes == 0).any()
    assert_same_run(experiment, device, execution())


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=() if name in ("logistic", "cnn") else pytest.mark.slow)
        for name in Model.members()
        if name != "decoder"  # whose targets are texts
    ],
)
def test_every_network(name: str, device: torch.device) -> None:
    """Gradients one by one, stacked and on all data, evaluation; dropout and cropped images among them."""
    small = {"length": 8, "width": 8, "vocabulary": 30} if name in ("bert", "distilbert") else {}
    model = Model.model_validate({"name": name, **small})
    if reason := model.lacks():
        pytest.skip(reason)
    problem = Shapes(model=model, clients=3, dtype="float64")
    if len(problem.shape) == 3:
        problem = problem.model_copy(update={"crop": True})
    plain, moved = problem.world(0), problem.world(0).to(device)
    assert moved.initial().device == device
    models = torch.stack([plain.initial() * share for share in (0.9, 1.0, 1.1)])
    samples = torch.stack([plain.samples(client, 0, 1, 5)[0] for client in range(3)])
    clients = torch.arange(3)
    there = (part.to(device) for part in (models, clients, samples))
    pairs = [
        (moved.gradients(*there), plain.gradients(models, clients, samples)),
        (
            moved.gradient(models[1].to(device), 1, samples[1].to(device)),
            plain.gradient(models[1], 1, samples[1]),
        ),
        (moved.full_gradient(models[2].to(device), 2), plain.full_gradient(models[2], 2)),
    ]
    for found, expected in pairs:
        assert found.device == device
        torch.testing.assert_close(found.cpu(), expected, rtol=1e-8, atol=1e-8)
    found, expected = moved.evaluate(models[1].to(device)), plain.evaluate(models[1])
    assert found.metrics == pytest.approx(expected.metrics, rel=1e-8)
    np.testing.assert_allclose(found.client_loss, expected.client_loss, rtol=1e-8)


def test_many_at_once(device: torch.device) -> None:
    """Simulations of three seeds share stacks."""
    grid = [digits("logistic", seed, updates=8) for seed in range(3)]
    recorders = [Recorder(Simulation(one, placed(one, device))) for one in grid]
    for recorder in recorders:
        recorder.start()
    for _ in interleave(map(RecorderSlot, recorders), execution=AllInFlight()):
        pass
    for recorder, experiment in zip(recorders, grid, strict=True):
        assert_same(recorder.record, run(experiment))


def test_worlds_on_two_devices_do_not_share_a_stack(device: torch.device) -> None:
    """One simulation here and one there, side by side."""
    grid = [digits("logistic", seed, updates=8) for seed in range(2)]
    worlds = placed(grid[0], torch.device("cpu")), placed(grid[1], device)
    recorders = [Recorder(Simulation(one, world)) for one, world in zip(grid, worlds, strict=True)]
    for recorder in recorders:
        recorder.start()
    for _ in interleave(map(RecorderSlot, recorders)):
        pass
    for recorder, experiment in zip(recorders, grid, strict=True):
        assert_same(recorder.record, run(experiment))


def test_diagnostics(device: torch.device) -> None:
    """Error terms with the servers in lock step, and the constants of the theorems."""
    asked = Diagnostics(errors=4, constants=20)
    assert_same_run(quadratics("ace", {"name": "scaffold", "steps": 2}), device, AllInFlight(), asked)


@pytest.mark.parametrize(
    "name",
    [
        *(pytest.param(name, marks=pytest.mark.slow) for name in Strategy.members() if name not in MEMORY),
        *MEMORY,
        "logistic",
    ],
)
def test_a_run_saved_on_the_cpu_goes_on(
    name: str, device: torch.device, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All that a checkpoint holds follows the model; with the simulations in lock step."""
    experiment = digits(name) if name == "logistic" else quadratics(name, "scaffold")
    asked = Diagnostics(errors=3).possible(experiment) or None
    saved = Recorder(Simulation(experiment), asked)
    if device == stand_in.THERE:
        monkeypatch.setattr(torch, "load", loaded_there)
    loaded = Recorder(Simulation(experiment, placed(experiment, device)), asked)
    record = resumed([saved, loaded], [11], AllInFlight())
    assert loaded.simulation.server.model.device == device
    assert_same(record, run(experiment, diagnostics=asked))


LOAD = torch.load


def loaded_there(path: Path, map_location: torch.device, *, weights_only: bool) -> Any:
    """`torch.load` to the stand-in, of which torch knows nothing."""
    parts = LOAD(path, "cpu", weights_only=weights_only)
    return tree_map(lambda one: one.to(map_location) if isinstance(one, Tensor) else one, parts)


@needs_gpu
@pytest.mark.parametrize("name", ["fedbuff", "ace", "malenia"])
def test_a_run_saved_on_a_gpu_goes_on_here(name: str) -> None:
    """The other way round."""
    experiment = quadratics(name, "scaffold")
    saved = Recorder(Simulation(experiment, placed(experiment, GPU)))
    record = resumed([saved, Recorder(Simulation(experiment))], [11], AllInFlight())
    assert_same(record, run(experiment))


@needs_gpu
def test_the_baseline_is_trained_on_a_gpu() -> None:
    """The same mini-batches: about the same accuracy."""
    problem = digits("logistic").scenario.problem
    assert problem.pooled(0, GPU) == pytest.approx(problem.pooled(0), rel=1e-3)


def test_a_stack_waits_for_the_device_once() -> None:
    """However many steps: mini-batches go there in one piece, and it is asked once whether all is finite."""
    counted = {}
    with stand_in.StandIn() as watched:
        for steps in (2, 6):
            experiment = digits("logistic")
            local = experiment.strategy.local.model_copy(update={"steps": steps})
            strategy = experiment.strategy.model_copy(update={"local": local})
            simulation = Simulation(
                experiment.model_copy(update={"strategy": strategy}), placed(experiment, stand_in.THERE)
            )
            request = next(event for event in simulation.events() if isinstance(event, ComputeRequest))
            jobs = list(request.jobs())
            assert len(jobs) > 3
            before = watched.moved, watched.waited
            work_together([(job, request.world) for job in jobs], request.local)
            counted[steps] = watched.moved - before[0], watched.waited - before[1]
    assert counted[2] == counted[6] == (4, 1)  # clients, learning rates, steps and mini-batches


def test_the_stand_in_is_strict() -> None:
    """What a GPU refuses, it refuses."""
    with stand_in.StandIn():
        here, there = torch.ones(3), torch.ones(3, device=stand_in.THERE)
        with pytest.raises(stand_in.MixedDevicesError, match="add"):
            there + here
        with pytest.raises(stand_in.MixedDevicesError, match="index_select"):
            there.index_select(0, torch.tensor([1]))
        with pytest.raises(RuntimeError, match="numpy"):
            there.numpy()
        assert (there * torch.tensor(2.0) + 1).tolist() == [3.0] * 3  # a number may come from here
        assert there.cpu().numpy().tolist() == [1.0] * 3
