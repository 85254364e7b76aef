"""All of it, in one run: updates a second against the yardstick, shares, the schedule alone, memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from time import perf_counter, process_time
from typing import Any

import torch

from benchmarks.pool.fork_server import cores
from benchmarks.speed import gpu, memory, schedule, tracked
from benchmarks.speed.arms import (
    SIMULATIONS,
    Case,
    alone,
    gradients,
    plain_loop,
    products,
    side_by_side,
    tight_loop,
)
from benchmarks.speed.cores import scaled
from benchmarks.speed.shares import shares
from benchmarks.tracking.provenance import provenance
from fl_core.execution.auto import Auto
from fl_core.execution.one_by_one import OneByOne
from fl_core.execution.stacked import AllInFlight
from fl_core.problems.problem import CPU

TIGHT, BY_HAND = "tight loop", "tight, by hand"  # yardsticks that were tuned
MINUTE = 60.0  # seconds of the run that the cost of tracking is a share of

Tell = Callable[[str], None]


@dataclass(frozen=True)
class SpeedPlan:
    """What is measured, and how often."""

    cases: tuple[Case, ...]
    queues: tuple[int, ...]  # clients of the schedule alone
    repeats: int
    crowd: int = 100_000  # clients of the runs whose memory is measured
    crowd_in_flight: int = 1_000


FULL = SpeedPlan(
    cases=(
        *(Case("logistic", in_flight, updates=1600) for in_flight in (10, 100, 1000)),
        *(Case("cnn", in_flight, updates=16) for in_flight in (10, 100, 1000)),
        *(Case("lstm", in_flight, updates=16) for in_flight in (10, 100, 1000)),
    ),
    queues=(100, 10_000, 1_000_000),
    repeats=7,
)
QUICK = SpeedPlan(
    cases=(Case("logistic", 100, updates=800), Case("cnn", 100, updates=8), Case("lstm", 100, updates=8)),
    queues=(100, 10_000),
    repeats=3,
)


def measure(plan: SpeedPlan, tell: Tell, device: torch.device = CPU) -> dict[str, Any]:
    """Everything as plain data, on the CPU, and what `device` gains if it is a GPU; `tell` reports progress.

    Times on the CPU are processor time, on an idle machine the same as wall time; `busy` is their ratio.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    wall, processor = perf_counter(), process_time()
    try:
        found = {
            "updates": [row for case in plan.cases for row in _compared(case, plan.repeats, tell)],
            "shares": [row for case in plan.cases for row in _shared(case, tell)],
            "schedule": _scheduled(plan, tell),
        }
    finally:
        torch.set_num_threads(threads)
    busy = (process_time() - processor) / (perf_counter() - wall)
    return {
        **found,
        "cores": _scaled(plan, tell),
        "memory": _peaks(plan, tell),
        "tracking": _tracked(tell),
        "gpu": _on_gpu(plan, tell, device),
        "busy": busy,
        **provenance(),
    }


def _compared(case: Case, repeats: int, tell: Tell) -> list[dict[str, Any]]:
    """Updates per second of every arm, the medians of interleaved repeats, and their ratios."""
    tell(f"{case.model}, {case.in_flight} in flight")
    auto, together = Auto(), Auto()
    arms = {
        "yardstick": plain_loop(case),
        TIGHT: tight_loop(case),
        **({BY_HAND: tight_loop(case, by_hand=True)} if case.model == "logistic" else {}),
        "one by one": alone(case, OneByOne()),
        "all in flight": alone(case, AllInFlight(8)),
        "auto": alone(case, auto),
        f"{SIMULATIONS} at once": side_by_side(case, together),
        "floor": products(case) if case.model == "logistic" else gradients(case),
    }
    seconds: dict[str, list[float]] = {name: [] for name in arms}
    for _ in range(repeats):
        for name, compute in arms.items():
            began = process_time()
            computed = compute()
            seconds[name].append((process_time() - began) / computed)
    typical = {name: median(found) for name, found in seconds.items()}
    chosen = {"auto": auto.label, f"{SIMULATIONS} at once": together.label}
    return [
        {
            "model": case.model,
            "in_flight": case.in_flight,
            "arm": name,
            "updates_per_second": 1 / typical[name],
            "of_yardstick": typical["yardstick"] / typical[name],
            "of_tight": typical[TIGHT] / typical[name],
            "of_tight_by_hand": typical[BY_HAND] / typical[name] if BY_HAND in typical else None,
            "of_floor": typical["floor"] / typical[name],
            "chosen": chosen.get(name, ""),
            "seconds": seconds[name],
        }
        for name in arms
    ]


def _shared(case: Case, tell: Tell) -> list[dict[str, Any]]:
    """How much of a run is not local computation."""
    tell(f"{case.model}, {case.in_flight} in flight: where the time goes")
    rows = []
    for execution in (OneByOne(), Auto()):
        found = [shares(case, execution) for _ in range(3)]
        typical = {name: median(one[name] for one in found) for name in found[0]}
        label = execution.label.partition(":")[0]
        rows.append({"model": case.model, "in_flight": case.in_flight, "arm": label, **typical})
    return rows


def _scheduled(plan: SpeedPlan, tell: Tell) -> list[dict[str, Any]]:
    """Events per second without gradients, the median of repeats in which laws and strategies take turns."""
    rows = []
    for clients in plan.queues:
        tell(f"the schedule alone, {clients:,} clients")
        pairs = [(strategy, law) for strategy in schedule.STRATEGIES for law in schedule.LAWS]
        going = {pair: schedule.events(clients, *pair) for pair in pairs}
        found: dict[tuple[str, str], list[float]] = {pair: [] for pair in pairs}
        for _ in range(plan.repeats):
            for pair, go_on in going.items():
                began = process_time()
                found[pair].append(go_on() / (process_time() - began))
        for (strategy, law), rates in found.items():
            about = {"clients": clients, "strategy": strategy, "durations": law}
            rows.append({**about, "events_per_second": median(rates), "rates": rates})
    return rows


def _scaled(plan: SpeedPlan, tell: Tell) -> list[dict[str, Any]]:
    """Many simulations at once on all cores, for each model where 100 clients are in flight."""
    rows = []
    for case in plan.cases:
        if case.in_flight == 100:
            tell(f"{case.model}, {SIMULATIONS} simulations at once on {cores()} cores")
            rows.append(scaled(case, cores(), plan.repeats))
    return rows


def _on_gpu(plan: SpeedPlan, tell: Tell, device: torch.device) -> list[dict[str, Any]]:
    """Logistic regression and the CNN there; nothing without a GPU."""
    rows = []
    for case in gpu.CASES if device.type == "cuda" else ():
        tell(f"{case.model}, {gpu.SIMULATIONS} simulations at once on {device}")
        rows += gpu.compared(case, plan.repeats, device)
    return rows


def _peaks(plan: SpeedPlan, tell: Tell) -> list[dict[str, Any]]:
    """Peak memory of large runs."""
    rows = []
    for strategy in ("fedbuff", "afa_cd"):
        tell(f"memory of {strategy}, {plan.crowd:,} clients")
        mebibytes = memory.peak(strategy, plan.crowd, plan.crowd_in_flight)
        about = {"strategy": strategy, "clients": plan.crowd, "in_flight": plan.crowd_in_flight}
        rows.append({**about, "mebibytes": mebibytes})
    return rows


def _tracked(tell: Tell) -> dict[str, float]:
    """What recording a run costs, as a share of a run of a minute."""
    tell("tracking")
    seconds = tracked.seconds()
    return {"seconds": seconds, "share_of_a_minute": seconds / MINUTE}
