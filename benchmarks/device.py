"""Device for computing worlds, CPU or GPU: named by the variable ASYNCFL_DEVICE, inherited by workers.

The option `--device` sets the variable; jobs move their world to the device with `place`.

Fixed: `VARIABLE`, which users set, too; `label`, which is recorded; the settings of `set_precision`, on which
results on a GPU depend.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from benchmarks.errors import UserError
from benchmarks.pool.fork_server import cores

if TYPE_CHECKING:
    import torch

    from fl_core.problems.problem import World

VARIABLE = "ASYNCFL_DEVICE"

# Small models gain from several processes, large ones lose nothing: docs/how-to/gpu.md has the measurement.
GPU_PROCESSES = 4

AnyWorld = TypeVar("AnyWorld", bound="World")


def chosen() -> torch.device:
    """Return the device for the worlds of the current process; UserError if not available."""
    return named(_asked_for())


def named(name: str) -> torch.device:
    """Return the device by name, a GPU with a number; UserError if not available."""
    import torch

    if name == "cpu":
        return torch.device("cpu")
    match = re.fullmatch(r"cuda(?::(\d+))?", name)
    if match is None:
        raise UserError(f"--device {name}: unknown device. Available: cpu, cuda, cuda:N")
    if not torch.backends.cuda.is_built():  # type: ignore[no-untyped-call]
        raise UserError(f"--device {name}: this PyTorch has no CUDA; use --device cpu")
    count, number = torch.cuda.device_count(), int(match[1] or 0)
    if not count:
        raise UserError(f"--device {name}: PyTorch finds no GPU here; use --device cpu")
    if number >= count:
        available = "cuda:0" if count == 1 else f"cuda:0 … cuda:{count - 1}"
        raise UserError(f"--device {name}: no such GPU. Available: {available}")
    return torch.device("cuda", number)


def place(world: AnyWorld) -> AnyWorld:
    """Return the world on the chosen device; to be called in the process computing the world.

    Raises:
        UserError: The world's precision needs a GPU, and none is chosen.
    """
    device = chosen()
    if device.type == "cpu":
        if world.precision != "float32":
            raise UserError(
                f"problem.precision: {world.precision} needs a GPU: use --device cuda, or float32"
            )
        return world
    return world.to(device)


def set_precision(world: World) -> None:
    """Let a GPU compute with the world's precision and deterministic algorithms."""
    if world.first.device.type == "cuda":
        import torch

        torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = world.precision == "tf32"
        torch.backends.cudnn.deterministic = True


@contextmanager
def one_thread() -> Iterator[None]:
    """Limit torch to a single thread while the context is active."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def label() -> str:
    """Return the device of a run for the record: cpu, or the GPU's name."""
    if _asked_for() == "cpu":
        return "cpu"
    import torch

    return torch.cuda.get_device_name(chosen())


def processes() -> int:
    """Return the default number of processes: a process per core, at most `GPU_PROCESSES` on a GPU."""
    return cores() if _asked_for() == "cpu" else min(GPU_PROCESSES, cores())


def _asked_for() -> str:
    """Return the name of the chosen device, without importing torch (about a second)."""
    return os.environ.get(VARIABLE) or "cpu"
