"""What is compared: each arm computes client updates of one experiment, and says how many."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from time import process_time

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from benchmarks.speed import yardstick
from benchmarks.speed.noise import Babble, Noise
from fl_core.execution.execution import Execution, Need
from fl_core.experiment import Experiment
from fl_core.loop.simulation import Simulation, simulate
from fl_core.problems.classification import Classification
from fl_core.problems.problem import CPU
from fl_core.recording.together import simulate_together

BATCH = 64
SIMULATIONS = 16  # at once
FLOOR_WIDTHS = (1, 4, 8, 16, 32)


@dataclass(frozen=True)
class Case:
    """A model, and how many clients are at work on it all the time."""

    model: str
    in_flight: int
    updates: int  # that one measurement computes, or a few more

    def experiment(self, seed: int = 0) -> Experiment:
        """Asynchronous SGD under exponential delays, without end."""
        family = Babble if self.model == "lstm" else Noise
        problem = family(clients=self.in_flight, model=self.model)
        return Experiment.model_validate(
            {
                "scenario": {
                    "problem": problem,
                    "timing": {"durations": "exponential"},
                    "budget": {"updates": 10**9},
                },
                "strategy": {"name": "asgd", "local_lr": 1e-4, "local": {"name": "sgd", "batch": BATCH}},
                "seed": seed,
            }
        )


def plain_loop(case: Case) -> Callable[[], int]:
    """The yardstick on the same data, normalised beforehand."""
    network, inputs, labels = plain(case)
    parts = np.array_split(np.arange(len(inputs)), case.in_flight)

    def compute() -> int:
        yardstick.simulate(network, inputs, labels, parts, updates=case.updates, batch=BATCH, lr=1e-4)
        return case.updates

    return compute


def tight_loop(case: Case, *, by_hand: bool = False) -> Callable[[], int]:
    """The tight yardstick on the same data, with autograd or, for logistic regression, a gradient by hand."""
    network, inputs, labels = plain(case)
    parts = np.array_split(np.arange(len(inputs)), case.in_flight)
    gradient = yardstick.by_hand if by_hand else yardstick.by_autograd(network)
    first = tuple(p.detach().clone() for p in network.parameters())

    def compute() -> int:
        yardstick.simulate_tightly(
            gradient, first, inputs, labels, parts, updates=case.updates, batch=BATCH, lr=1e-4
        )
        return case.updates

    return compute


def plain(case: Case) -> tuple[nn.Module, Tensor, Tensor]:
    """Network, inputs and labels as one would have them without a simulator, nn.LSTM for the LSTM."""
    problem = case.experiment().scenario.problem
    assert isinstance(problem, Classification)
    data = problem.load()
    if case.model == "lstm":
        return yardstick.CharLSTM(problem.classes), data.x_train.long(), data.y_train
    images = (data.x_train.float() - data.mean[0]) / data.std[0]
    return problem.model.build(problem.shape, problem.classes), images, data.y_train


def begun(case: Case, seed: int = 0, device: torch.device = CPU) -> Simulation:
    """A simulation at its beginning."""
    experiment = case.experiment(seed)
    return Simulation(experiment, experiment.scenario.problem.world(seed).to(device))


def alone(case: Case, execution: Execution, device: torch.device = CPU) -> Callable[[], int]:
    """One simulation."""
    counted = Counted(execution)
    return going_on(simulate(begun(case, device=device), counted), counted, case.updates)


def side_by_side(
    case: Case, execution: Execution, seeds: Sequence[int] = range(SIMULATIONS), device: torch.device = CPU
) -> Callable[[], int]:
    """Simulations of several seeds, and so of other splits of the data."""
    counted = Counted(execution)
    simulations = [begun(case, seed, device) for seed in seeds]
    return going_on(simulate_together(simulations, len(seeds), counted), counted, case.updates)


class Counted:
    """An execution that counts what it computes."""

    def __init__(self, execution: Execution) -> None:
        self.execution = execution
        self.computed = 0

    @property
    def label(self) -> str:
        """That of the execution."""
        return self.execution.label

    def fill(self, needs: Sequence[Need]) -> int:
        """The same, counted."""
        computed = self.execution.fill(needs)
        self.computed += computed
        return computed


def going_on(events: Iterator[object], counted: Counted, updates: int) -> Callable[[], int]:
    """A run after the measurements of `auto`: each call goes on until so many more are computed."""
    for _ in events:
        if counted.computed and not counted.label.endswith("measuring"):
            break

    def compute() -> int:
        before = counted.computed
        for _ in events:
            if counted.computed - before >= updates:
                break
        return counted.computed - before

    return compute


def products(case: Case) -> Callable[[], int]:
    """The matrix products of logistic regression alone, same shapes, at the best width: the floor."""
    random = torch.Generator().manual_seed(0)

    def stacks(width: int) -> tuple[Tensor, Tensor, Tensor]:
        shapes = ((width, 10, 784), (width, BATCH, 784), (width, 10, BATCH))
        weight, inputs, error = (torch.rand(shape, generator=random) for shape in shapes)
        return weight, inputs, error

    def multiply(width: int, times: int) -> int:
        weight, inputs, error = stacks(width)
        for _ in range(times):
            torch.bmm(weight, inputs.transpose(1, 2))
            torch.bmm(error, inputs)
        return width * times

    def seconds(width: int) -> float:
        multiply(width, 5)
        began = process_time()
        done = multiply(width, max(1, 2000 // width))
        return (process_time() - began) / done

    best = min(FLOOR_WIDTHS, key=seconds)
    return lambda: multiply(best, case.updates // best)


def gradients(case: Case) -> Callable[[], int]:
    """Forward and backward of a plain module on a mini-batch that lies ready: the floor of other models."""
    network, inputs, labels = plain(case)
    parameters, inputs, labels = list(network.parameters()), inputs[:BATCH], labels[:BATCH]

    def compute() -> int:
        for _ in range(case.updates):
            loss = cross_entropy(network(inputs), labels)
            torch.autograd.grad(loss, parameters)
        return case.updates

    return compute
