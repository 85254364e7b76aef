"""Many simulations on several cores at once: one process per core, each with its share of them."""

from __future__ import annotations

import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from statistics import mean, median
from threading import Barrier
from time import process_time
from typing import Any

import torch

from benchmarks.speed.arms import SIMULATIONS, Case, plain_loop, side_by_side
from fl_core.execution.auto import Auto


def scaled(case: Case, processes: int, repeats: int) -> dict[str, Any]:
    """Updates per second of all processes together, and of the yardstick in one of them.

    All processes do the same at the same time, so that they compete for caches and memory. Rates
    are per second of processor time, which on idle cores is wall time.
    """
    context = multiprocessing.get_context("spawn")
    shares = [range(first, SIMULATIONS, processes) for first in range(processes)]
    with context.Manager() as manager, ProcessPoolExecutor(processes, context) as pool:
        gate = manager.Barrier(processes)
        found = list(pool.map(partial(_rates, case, repeats, gate), shares))
    yardstick = mean(median(plain) for plain, _ in found)
    together = sum(median(rates) for _, rates in found)
    return {
        "model": case.model,
        "in_flight": case.in_flight,
        "processes": processes,
        "updates_per_second": together,
        "of_yardstick": together / yardstick,
        "rates": found,
    }


def _rates(case: Case, repeats: int, gate: Barrier, seeds: range) -> tuple[list[float], list[float]]:
    """Updates per second of the yardstick and of the simulations side by side, in turns."""
    torch.set_num_threads(1)
    arms = plain_loop(case), side_by_side(case, Auto(), seeds)
    rates: tuple[list[float], list[float]] = ([], [])
    for _ in range(repeats):
        for compute, found in zip(arms, rates, strict=True):
            gate.wait()
            began = process_time()
            found.append(compute() / (process_time() - began))
    return rates
