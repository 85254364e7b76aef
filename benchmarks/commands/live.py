"""`asyncfl live`: a suite in real time, with clients as processes."""

from __future__ import annotations

import re
from time import monotonic
from typing import TYPE_CHECKING

import click

from benchmarks.commands import options

if TYPE_CHECKING:
    from benchmarks.mlflow_store.store import Store

SECONDS = {"ms": 0.001, "s": 1.0}  # in each unit


def _seconds(ctx: click.Context, param: click.Parameter, text: str) -> float:
    match = re.fullmatch(r"(\d{1,9}(?:\.\d{1,9})?)(ms|s)", text.replace(" ", ""))
    if match is None or not float(match[1]):
        raise click.BadParameter(
            f"'{text}' is not a duration. Give a number above 0 with a unit, such as 100ms or 2s"
        )
    return float(match[1]) * SECONDS[match[2]]


@click.command(short_help="Run SUITE in real time, with clients as processes.")
@options.planned
@options.tuned
@options.verbose
@click.option(
    "--unit",
    metavar="TIME",
    callback=_seconds,
    required=True,
    help="Length of a unit of virtual time, such as 100ms.",
)
@click.option(
    "--processes",
    metavar="N",
    type=options.COUNT,
    help="Number of processes, among which the clients are divided.  [default: one for each core]",
)
@options.quiet
def command(
    *,
    suite: str,
    settings: tuple[str, ...],
    scale: str | None,
    store: Store,
    tuned: bool,
    unit: float,
    processes: int | None,
    quiet: bool,
) -> None:
    """Run SUITE in real time: clients are processes, which wait for the length of each job.

    Runs follow one another, and are recorded as SUITE-live-UNIT. Check them with asyncfl replay.
    """
    began = monotonic()
    from benchmarks.engine import Local

    computes = Local(1, parents=True)
    computes.warm_up("benchmarks.runs.live")

    from benchmarks.commands.run import complete
    from benchmarks.pool.fork_server import cores
    from benchmarks.runs.live import LiveJob, LiveSuite
    from benchmarks.runs.session import Session
    from benchmarks.suite.suite import load

    live = LiveSuite(load(suite, settings, scale, tuned or None), unit, processes or cores())
    session = Session(live, store, baselines=False, job=LiveJob)
    complete(session, store, computes, began, quiet=quiet, page=True)
