"""`asyncfl baseline`: the results of a suite, as a file with which later runs are compared."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from benchmarks import options
from benchmarks.commands.check import File, measured, no_speed
from fl_core.text import many

if TYPE_CHECKING:
    from benchmarks.tracking.store import Store


@click.command()
@options.suite
@options.allow_code
@options.scale
@options.store
@options.data_dir
@no_speed
@click.option(
    "--out",
    metavar="FILE",
    type=File,
    help="Where to write it.  [default: DIR/baselines/SUITE.json]",
)
def command(
    *,
    suite: str,
    scale: str | None,
    store: Store,
    no_speed: bool,
    out: Path | None,
) -> None:
    """Write the results of the recorded runs of SUITE as a baseline for asyncfl check.

    Final metric, updates to the target, schedule and losses of every run are read from MLflow; the speed of
    each strategy is measured now.
    """
    from benchmarks.suite.suite import load
    from reports.gate import baseline

    planned = load(suite, scale=scale).runs()
    store.must_exist()
    taken = baseline.take(store.tracking_uri, planned)
    baseline.must_have_spread(taken)
    if not no_speed:
        taken = taken.model_copy(update={"speed": measured(planned, {run.strategy for run in planned})})
    path = baseline.write(taken, out or store.folder / "baselines" / f"{taken.suite}.json")
    click.echo(f"Baseline of {many(len(planned), 'run')}: {path}")
