"""Simulations on a GPU: one alone, one by one, against many at once, and how much of the time it computes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from statistics import median
from time import perf_counter
from typing import Any

import torch
from torch.autograd import DeviceType  # type: ignore[attr-defined]
from torch.autograd.profiler_util import FunctionEvent
from torch.profiler import ProfilerActivity, profile

from benchmarks.speed.arms import Case, alone, side_by_side
from fl_core.execution.auto import Auto
from fl_core.execution.one_by_one import OneByOne

SIMULATIONS = 64  # at once
CASES = (Case("logistic", 100, updates=2000), Case("cnn", 100, updates=500))


def compared(case: Case, repeats: int, device: torch.device) -> list[dict[str, Any]]:
    """Updates per second of wall time of both, the medians of interleaved repeats, and their ratio.

    `computing` is the share of that time in which the GPU computes: time in kernels for each update, which
    profiling does not change, times updates a second without profiling, which it would slow down.
    """
    together = Auto()
    arms = {
        "one by one": alone(case, OneByOne(), device),
        f"{SIMULATIONS} at once": side_by_side(case, together, range(SIMULATIONS), device),
    }
    seconds: dict[str, list[float]] = {name: [] for name in arms}
    for _ in range(repeats):
        for name, compute in arms.items():
            seconds[name].append(_seconds(compute, device))
    typical = {name: median(found) for name, found in seconds.items()}
    return [
        {
            "gpu": torch.cuda.get_device_name(device),
            "model": case.model,
            "in_flight": case.in_flight,
            "arm": name,
            "updates_per_second": 1 / typical[name],
            "of_one_by_one": typical["one by one"] / typical[name],
            "computing": _in_kernels(compute, device) / typical[name],
            "chosen": together.label if name != "one by one" else "",
            "seconds": seconds[name],
        }
        for name, compute in arms.items()
    ]


def _seconds(compute: Callable[[], int], device: torch.device) -> float:
    """Wall time of an update."""
    torch.cuda.synchronize(device)
    began = perf_counter()
    computed = compute()
    torch.cuda.synchronize(device)
    return (perf_counter() - began) / computed


def _in_kernels(compute: Callable[[], int], device: torch.device) -> float:
    """Seconds in kernels for an update."""
    with profile(activities=[ProfilerActivity.CUDA]) as profiled:
        computed = compute()
        torch.cuda.synchronize(device)
    return kernels(profiled.events() or ()) / computed


def kernels(events: Iterable[FunctionEvent]) -> float:
    """Seconds that a GPU spent in kernels, of all that was profiled; copies do not count."""
    microseconds = (
        event.time_range.elapsed_us()  # type: ignore[no-untyped-call]
        for event in events
        if event.device_type == DeviceType.CUDA
        and not event.is_user_annotation
        and not event.name.startswith(("Memcpy", "Memset"))
    )
    return sum(microseconds) / 1e6
