"""Whole runs measured: each in processes of its own, in turns with the same work as a plain script."""

from __future__ import annotations

import multiprocessing
import os
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any, ParamSpec, TypeVar

from benchmarks.pool.fork_server import THREADS, cores, environment, same_import_path
from benchmarks.speed.whole import as_run, as_script
from benchmarks.speed.whole.as_run import Report
from benchmarks.speed.whole.case import CASES, RunCase
from benchmarks.speed.whole.spent import (
    DATA,
    DATABASE,
    EVALUATION,
    LOCAL,
    PAGE,
    PARTS,
    SERVER,
    START,
    of_command,
)

P = ParamSpec("P")
T = TypeVar("T")

ONCE = {START, DATABASE, DATA, PAGE}  # parts that a command has once, however many runs a process computes
LEARNING = (LOCAL, SERVER, EVALUATION)  # parts that a script has as well
SECOND = "second process"  # what a worker costs beside its driver
LONG = 10.0  # seconds of a run that is measured once: its parts are long enough
REPEATS = 3
HOUR = 3600.0

Tell = Callable[[str], None]


def measure(
    report: Report, tell: Tell, cases: Sequence[RunCase] | None = None, repeats: int = REPEATS
) -> list[dict[str, Any]]:
    """A row for each case: seconds of each part of the run and of the script, and what follows from them."""
    with environment(**dict.fromkeys(THREADS, "1")):
        return [_measured(case, report, tell, repeats) for case in cases or CASES]


def _measured(case: RunCase, report: Report, tell: Tell, repeats: int) -> dict[str, Any]:
    runs: list[dict[str, float]] = []
    scripts: list[dict[str, float]] = []
    while len(runs) < repeats:
        tell(f"{case.suite}, {case.strategy}: a run")
        with TemporaryDirectory() as folder:
            parts, amount, execution = _alone(as_run.in_parts, case, Path(folder), report)
        tell(f"{case.suite}, {case.strategy}: the same as a script")
        with _process() as pool:
            start = pool.submit(as_script.start).result()
            scripts.append(pool.submit(as_script.in_parts, case, amount, start).result())
        runs.append(parts)
        if sum(parts.values()) > LONG:
            break
    tell(f"{case.suite}, {case.strategy}: as a command")
    command = _command(case, report)
    run, script = _typical(runs), _typical(scripts)
    total, of_script = (median(sum(one.values()) for one in found) for found in (runs, scripts))
    each = sum(seconds for part, seconds in run.items() if part not in ONCE)
    return {
        **asdict(case),
        **asdict(amount),
        "execution": execution,
        "run": {**run, SECOND: max(0.0, command - total)},
        "script": script,
        "seconds": total,
        "script_seconds": of_script,
        "command_seconds": command,
        "of_script": of_script / total,
        "learning_of_script": _sum(script, LEARNING) / _sum(run, LEARNING),
        "evaluation": run.get(EVALUATION, 0.0) / total,
        "seeds_an_hour": cores() * HOUR / each,
        "repeats": len(runs),
    }


def _process() -> ProcessPoolExecutor:
    return ProcessPoolExecutor(1, multiprocessing.get_context("spawn"))


def _alone(function: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T:
    """The function's result in a new process."""
    with _process() as pool:
        return pool.submit(function, *arguments, **named).result()


def _command(case: RunCase, report: Report) -> float:
    """Processor time of the run as a command, in all of its processes."""
    lines = (
        "from pathlib import Path",
        "from benchmarks.speed.whole.as_run import as_command",
        "from benchmarks.speed.whole.case import RunCase",
        f"from {report.__module__} import {report.__name__} as report",
    )
    with TemporaryDirectory() as folder, same_import_path():
        code = "\n".join((*lines, f"as_command({case!r}, Path({folder!r}), report)"))
        return _alone(of_command, [sys.executable, "-c", code], dict(os.environ))


def _sum(found: dict[str, float], parts: Sequence[str]) -> float:
    return sum(found.get(part, 0.0) for part in parts)


def _typical(found: Sequence[dict[str, float]]) -> dict[str, float]:
    """The median of each part."""
    return {part: median(one[part] for one in found) for part in PARTS if part in found[0]}
