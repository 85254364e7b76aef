"""Runs of shipped suites in an earlier version of this package and in this one, in turns."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.errors import UserError
from benchmarks.pool.fork_server import THREADS
from benchmarks.tracking.provenance import ROOT

RUNS = (
    ("ace", "ace"),
    ("ace", "fedbuff"),
    ("asyncsgd", "generalized_asyncsgd"),
    ("fraboni", "async_fedavg"),
    ("fraboni_weights_cnn", "async_fedavg"),
)
REPEATS = 3
LONG = 20.0  # seconds of a run that is measured once

Tell = Callable[[str], None]


def measure(
    before: Path, tell: Tell, runs: Sequence[tuple[str, str]] = RUNS, repeats: int = REPEATS
) -> list[dict[str, Any]]:
    """A row for each run: the medians of interleaved repeats, from the first event to the record.

    `before` is a checkout of the earlier version; UserError if it holds none.
    """
    if not (before / "benchmarks").is_dir():
        raise UserError(f"--before {before}: no checkout of this package")
    rows = []
    for suite, strategy in runs:
        found: dict[str, list[float]] = {"before": [], "now": []}
        while len(found["now"]) < repeats:
            for when, tree in (("before", before), ("now", ROOT)):
                tell(f"{suite}, {strategy}: {when}")
                found[when].append(_seconds(tree, suite, strategy))
            if max(map(max, found.values())) > LONG:
                break
        typical = {when: median(seconds) for when, seconds in found.items()}
        ratio = {"of_before": typical["now"] / typical["before"], "repeats": len(found["now"])}
        rows.append({"suite": suite, "strategy": strategy, **typical, **ratio})
    return rows


def _seconds(tree: Path, suite: str, strategy: str) -> float:
    environment = os.environ | dict.fromkeys(THREADS, "1") | {"PYTHONPATH": str(tree.absolute())}
    script = str(Path(__file__).with_name("one_run.py"))
    # -P keeps the script's own folder, and so this version, off the path.
    command = [sys.executable, "-P", script, suite, strategy]
    done = subprocess.run(command, env=environment, cwd=tree, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{suite}, {strategy} in {tree}: exit code {done.returncode}\n{done.stderr}")
    seconds: float = json.loads(done.stdout.splitlines()[-1])["seconds"]
    return seconds
