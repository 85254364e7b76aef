"""CUDA graphs give the numbers of one by one; where none can be captured, jobs are computed plainly."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import pytest
import torch
from test_devices import GPU, Shapes, digits, needs_gpu, placed, quadratics
from torch import Tensor, nn

from fl_core.execution import cuda_graphs
from fl_core.execution.cuda_graphs import CapturedGradients, Computed, Graph, Graphed
from fl_core.execution.one_by_one import OneByOne
from fl_core.experiment import Experiment
from fl_core.lightning import pl
from fl_core.problems.data.data import Data
from fl_core.problems.models.decoder import Decoder
from fl_core.problems.models.layers import MAX_REPEATABLE_SYMBOLS, look_up
from fl_core.problems.models.model import Model
from fl_core.problems.problem import World
from fl_core.problems.shakespeare_lm import ALPHABET, ShakespeareLM
from fl_core.recording.recorder import Record, run


class Texts(ShakespeareLM):
    """Sixty random texts."""

    def load(self) -> Data:
        drawn = torch.randint(
            len(ALPHABET), (60, self.context + 1), generator=torch.Generator().manual_seed(0)
        )
        x, y, kinds = drawn[:, :-1].to(torch.uint8), drawn[:, 1:].clone(), torch.zeros(60, dtype=torch.int64)
        return Data(x, y, x[:9], y[:9], len(ALPHABET), (), (), None, None, kinds, kinds[:9])


def shapes(model: Any, strategy: Any = "fedbuff", context: int = 8, **local: Any) -> Experiment:
    """A strategy on three classes of random inputs, or on random texts, in single precision."""
    texts = isinstance(model, Decoder)
    problem = Texts(model=model, clients=3, context=context) if texts else Shapes(model=model, clients=3)
    chosen = {"local_lr": 0.05, "local": {"name": "sgd", "batch": 5, **local}}
    named = {"name": strategy} if isinstance(strategy, str) else strategy
    timing, budget = {"durations": "exponential"}, {"updates": 12}
    scenario = {"problem": problem, "timing": timing, "budget": budget, "evaluations": 3}
    return Experiment.model_validate({"scenario": scenario, "strategy": {**chosen, **named}, "seed": 0})


def computed(experiment: Experiment, device: torch.device, execution: Any) -> tuple[Record, Tensor]:
    """The record of a run, and its last model."""
    models: list[Tensor] = []
    record = run(
        experiment,
        placed(experiment, device),
        execution,
        watch=lambda recorder: models.append(recorder.simulation.state.model.cpu()),
    )
    return record, models[-1]


@pytest.mark.parametrize(
    "experiment",
    [quadratics("ace", "scaffold"), quadratics("malenia"), digits("logistic")],
    ids=["ace", "malenia", "digits"],
)
def test_without_a_gpu_jobs_are_computed_one_by_one(experiment: Experiment) -> None:
    """Also the ones that are computed ahead, some of which are dismissed."""
    graphs = Graphed(max_jobs=4)
    cpu = torch.device("cpu")
    (record, model), (plain, expected) = (computed(experiment, cpu, way) for way in (graphs, OneByOne()))
    assert record == plain
    assert torch.equal(model, expected)
    assert graphs.label == "one by one, without CUDA graphs: graphs need a GPU"


class Recorded:
    """In the place of a captured graph: it calls what a graph would replay."""

    error: Exception | None = None
    captures = 0
    replays = 0

    def __init__(self, plain: Callable[[Tensor, Tensor], Computed], *given: Tensor) -> None:
        Recorded.captures += 1
        if self.error:
            raise self.error
        self.plain, self.checks_left = plain, cuda_graphs.CHECKED_REPLAYS

    check = Graph.check

    def replay(self, *given: Tensor) -> Computed:
        Recorded.replays += 1
        return self.plain(*given)


@pytest.fixture
def recorded(monkeypatch: pytest.MonkeyPatch) -> type[Recorded]:
    """Graphs are replaced, and count from 0."""
    monkeypatch.setattr(cuda_graphs, "Graph", Recorded)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda device: None)
    for name, value in {"error": None, "captures": 0, "replays": 0}.items():
        monkeypatch.setattr(Recorded, name, value)
    return Recorded


def double(model: Tensor, sample: Tensor) -> Computed:
    return 2 * model + sample.sum(), {"loss": model.sum()}


def captured() -> CapturedGradients:
    return CapturedGradients(placed(digits("logistic"), torch.device("cpu")))


def test_a_graph_is_captured_once_for_each_shape(recorded: type[Recorded]) -> None:
    """And with and without reports; its first replays are compared with plain gradients."""
    gradients = captured()
    for size, reports in ((3, False), (3, False), (5, False), (5, True), (3, False), (3, False)):
        found = gradients.compute(double, reports, torch.arange(4.0), torch.ones(size))
        assert torch.equal(found[0], 2 * torch.arange(4.0) + size)
    assert recorded.captures == 3
    assert recorded.replays == 6
    assert not gradients.refusal


@pytest.mark.parametrize("error", [RuntimeError("operation not permitted\nwhen capturing"), None])
def test_what_cannot_be_captured_is_computed_plainly(
    error: Exception | None, recorded: type[Recorded], monkeypatch: pytest.MonkeyPatch
) -> None:
    """An operation that no graph holds, and a gradient that is another at every call."""
    calls = 0

    def gradient(model: Tensor, sample: Tensor) -> Computed:
        nonlocal calls
        calls += 1
        return (model if error else model + calls), {}

    monkeypatch.setattr(recorded, "error", error)
    gradients = captured()
    for _ in range(5):
        gradients.compute(gradient, False, torch.zeros(4), torch.ones(2))
    assert recorded.captures == 1
    assert gradients.refusal.startswith("no capture: ")
    assert "\n" not in gradients.refusal
    assert calls == 5 + (0 if error else 1)


def test_captured_gradients_end_with_their_world() -> None:
    """So that the memory of one problem is free for the next."""
    world: World = placed(digits("logistic"), torch.device("cpu"))
    before = len(CapturedGradients._of_worlds)
    assert CapturedGradients.of(world) is CapturedGradients.of(world)
    assert len(CapturedGradients._of_worlds) == before + 1
    del world
    gc.collect()
    assert len(CapturedGradients._of_worlds) == before


@needs_gpu
@pytest.mark.parametrize("name", Model.members())
@pytest.mark.parametrize(
    "strategy", ["fedbuff", {"name": "fedavg", "sampling": {"name": "highest_loss", "sample": 2}}], ids=str
)
def test_every_network_bit_for_bit(name: str, strategy: Any) -> None:
    """Dropout by keys among them; reports where the strategy reads losses."""
    small = {"length": 8, "width": 8, "vocabulary": 30} if name in ("bert", "distilbert") else {}
    model = Model.model_validate({"name": name, **small})
    if reason := model.lacks():
        pytest.skip(reason)
    torch.backends.cudnn.allow_tf32, torch.backends.cudnn.deterministic = False, True
    experiment = shapes(model, strategy, steps=2)
    graphs = Graphed()
    (record, found), (plain, expected) = (computed(experiment, GPU, way) for way in (graphs, OneByOne()))
    assert graphs.label == "CUDA graphs"
    assert torch.equal(found, expected)
    assert record == plain


def test_lookups_in_parts() -> None:
    """Rows exactly, gradients to rounding, whatever the size of a part."""
    symbols, weight = torch.randint(5, (7, 3)), torch.randn(5, 4, dtype=torch.float64, requires_grad=True)
    plain = nn.functional.embedding(symbols, weight)
    (expected,) = torch.autograd.grad((plain**3).sum(), weight)
    for most in (1, 2, 20, 21, 100):
        found = look_up(symbols, weight, most)
        assert torch.equal(found, plain)
        (gradient,) = torch.autograd.grad((found**3).sum(), weight)
        torch.testing.assert_close(gradient, expected)


@needs_gpu
@pytest.mark.parametrize("name", ["decoder", "lstm"])
def test_many_symbols_bit_for_bit(name: str) -> None:
    """More in a mini-batch than PyTorch's kernel adds in a fixed order; `Graphed` refuses other gradients."""
    model = Model.model_validate({"name": name})
    context = 2 * MAX_REPEATABLE_SYMBOLS // 48
    experiment = shapes(model, context=context, steps=2, batch=48 if name == "decoder" else 480)
    graphs = Graphed()
    (record, found), (plain, expected) = (computed(experiment, GPU, way) for way in (graphs, OneByOne()))
    assert graphs.label == "CUDA graphs"
    assert torch.equal(found, expected)
    assert record == plain


@needs_gpu
def test_clients_without_data_bit_for_bit() -> None:
    """Their gradients are 0."""
    experiment = digits("logistic")
    assert (placed(experiment, GPU).sizes == 0).any()
    (record, found), (plain, expected) = (computed(experiment, GPU, way) for way in (Graphed(), OneByOne()))
    assert torch.equal(found, expected)
    assert record == plain


class Waiting(pl.LightningModule):
    """A module that looks at a number, which no graph can hold; and one with dropout of torch's."""

    def __init__(self, waits: bool) -> None:
        super().__init__()
        self.waits = waits
        self.layers = nn.Sequential(nn.Flatten(), nn.Linear(8, 8), nn.Dropout(0.5), nn.Linear(8, 3))

    def forward(self, inputs: Tensor) -> Tensor:
        return self.layers(inputs)

    def training_step(self, batch: Any, index: int) -> Tensor:
        x, y = batch
        outputs = self(x)
        if self.waits and outputs.sum().item() > 1e9:
            outputs = outputs * 2
        return nn.functional.cross_entropy(outputs, y)


class Own(Model):
    """A network of the user's."""

    waits: bool = False

    def build(self, shape: tuple[int, ...], outputs: int) -> nn.Module:
        return Waiting(self.waits)

    def refuses(self, shape: tuple[int, ...], outputs: int) -> str | None:
        return None if shape == (8,) else "takes vectors"


@needs_gpu
@pytest.mark.parametrize("waits", [False, True])
def test_a_users_module(waits: bool) -> None:
    """One with dropout is captured; one that waits for the GPU is computed plainly, and the label says so."""
    experiment = shapes(Own(waits=waits))
    graphs = Graphed()
    (record, found), (plain, expected) = (computed(experiment, GPU, way) for way in (graphs, OneByOne()))
    assert graphs.label.startswith(
        "one by one, without CUDA graphs: no capture: " if waits else "CUDA graphs"
    )
    assert torch.equal(found, expected)
    assert record == plain
