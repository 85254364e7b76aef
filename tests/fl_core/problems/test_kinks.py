"""Where stacked gradients may differ from those computed one by one in float32: at a kink, and nowhere else.

A sum's order differs between the two ways, so its last bits do. Where a ReLU's input is zero up to them, or
two entries of a pooling window are equal up to them, the two ways may fall on different sides of the kink.
Each gradient is then right for a model one rounding away, and they differ by what flows through one unit.
"""

from __future__ import annotations

from typing import NamedTuple

import pytest
import torch
from test_every_network import Made, model_named
from torch import Tensor, nn
from torch.func import grad, vmap
from torch.nn.functional import max_pool2d

from fl_core.problems.training.world import SupervisedWorld
from fl_core.streams import torch_stream

ROUNDING = 1e-5  # of a gradient's length: some hundred roundings of 6e-8
BATCH = 5


class Compared(NamedTuple):
    """A stacked gradient beside the one computed alone."""

    alone: Tensor  # [d]
    stacked: Tensor  # [d]
    crossed: int  # units that are on different sides of a kink

    @property
    def difference(self) -> float:
        """Relative to the gradient's length."""
        return float((self.stacked - self.alone).norm() / self.alone.norm())


def world(name: str, dtype: str = "float32") -> SupervisedWorld:
    return Made(model=model_named(name), clients=1, dtype=dtype).world(0)


def stack(w: SupervisedWorld, jobs: int) -> tuple[Tensor, Tensor]:
    """Models [J, d] around the first one, and a mini-batch for each [J, B]; nothing is dropped."""
    noise = torch.randn(jobs, w.d, generator=torch_stream(0, "test"))
    drawn = [SupervisedWorld.samples(w, 0, job, 1, BATCH)[0] for job in range(jobs)]
    return w.initial() + 0.02 * noise, torch.stack(drawn)


def watch(network: nn.Module) -> list[Tensor]:
    """A list that a forward pass fills with the sides of all kinks: ReLU's signs, the places of maxima."""
    sides: list[Tensor] = []

    def note(layer: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> None:
        if isinstance(layer, nn.MaxPool2d):
            sides.append(max_pool2d(inputs[0], layer.kernel_size, return_indices=True)[1])
        elif isinstance(layer, nn.ReLU):
            sides.append(output > 0)

    for layer in network.modules():
        layer.register_forward_hook(note)
    return sides


def compared(w: SupervisedWorld, models: Tensor, samples: Tensor) -> list[Compared]:
    """The gradients of a stack of jobs, both ways."""
    sides, (jobs, size) = watch(w.task.network), samples.shape

    def loss(model: Tensor, *batch: Tensor) -> tuple[Tensor, tuple[Tensor, ...]]:
        sides.clear()
        return w._loss(model, batch)[0], tuple(sides)

    batch = (part.view(jobs, size, *part.shape[1:]) for part in w.batch(samples.flatten()))
    stacked, theirs = vmap(grad(loss, has_aux=True))(models, *batch)
    # What was watched is what the world computes.
    assert torch.equal(stacked, w.gradients(models, torch.zeros(jobs, dtype=torch.long), samples))
    found = []
    for job, (model, sample) in enumerate(zip(models, samples, strict=True)):
        sides.clear()
        alone = w.gradient(model, 0, sample)
        crossed = sum(int((one != other[job]).sum()) for one, other in zip(sides, theirs, strict=True))
        found.append(Compared(alone, stacked[job], crossed))
    return found


@pytest.mark.parametrize("name", ["cnn", "lstm", "resnet8"])
def test_a_difference_beyond_rounding_is_a_crossed_kink(name: str) -> None:
    """Networks: float32 gradients agree to rounding where all units are on one side of their kinks."""
    w = world(name)
    for one in compared(w, *stack(w, 4)):
        assert one.difference < ROUNDING or one.crossed


JOBS = 8  # each with a hidden unit of its own at its kink


def hidden(w: SupervisedWorld) -> slice:
    """Where the biases of the layer before the last ReLU are in the vector of parameters."""
    place = w.flat.names.index("network.head.1.bias")
    first = sum(w.flat.sizes[:place])
    return slice(first, first + w.flat.sizes[place])


def at_kinks(w: SupervisedWorld) -> tuple[Tensor, Tensor]:
    """Models and mini-batches; job j's j-th hidden unit gets 0, up to rounding, from the first data point."""
    models, samples = stack(w, JOBS)
    inputs: list[Tensor] = []
    hook = w.task.network.head[1].register_forward_hook(lambda _, given, out: inputs.append(out.detach()))
    for job, (model, sample) in enumerate(zip(models, samples, strict=True)):
        w.gradient(model, 0, sample)
        model[hidden(w)][job] -= inputs.pop()[0, job]
    hook.remove()
    return models, samples


def test_at_a_kink_the_two_ways_take_the_two_sides() -> None:
    """Their difference is the exact gradient's jump across the kink, from below zero to above or back."""
    w, exact = world("alahyane_cnn"), world("alahyane_cnn", "float64")
    models, samples = at_kinks(w)
    crossings = 0
    for job, one in enumerate(compared(w, models, samples)):
        if not one.crossed:
            assert one.difference < ROUNDING
            continue
        crossings += 1
        below, above = models[job].double(), models[job].double()
        below[hidden(w)][job] -= 1e-6
        above[hidden(w)][job] += 1e-6
        jump = exact.gradient(above, 0, samples[job]) - exact.gradient(below, 0, samples[job])
        found = one.stacked - one.alone
        nearest = min(float((found - sign * jump).norm()) for sign in (1, -1))
        assert nearest < ROUNDING * one.alone.norm() < found.norm()
    assert crossings


def test_without_kinks_rounding_is_all() -> None:
    """The same network and models, with GELU and mean pooling in the place of ReLU and max pooling."""
    w = world("alahyane_cnn")
    models, samples = at_kinks(w)
    for parent in list(w.task.network.modules()):
        for name, layer in list(parent.named_children()):
            if isinstance(layer, nn.ReLU):
                setattr(parent, name, nn.GELU())
            elif isinstance(layer, nn.MaxPool2d):
                setattr(parent, name, nn.AvgPool2d(layer.kernel_size))
    for one in compared(w, models, samples):
        assert one.difference < ROUNDING
