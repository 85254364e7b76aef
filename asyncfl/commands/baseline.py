"""`asyncfl baseline`: the results of a suite, as a file with which later runs are compared."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from asyncfl import options
from asyncfl.commands.check import measured, no_speed, speeds
from benchmarks.errors import must_be_ours
from fl_core.text import many

if TYPE_CHECKING:
    from benchmarks.tracking.store import Store


@click.command()
@options.planned
@no_speed
@click.option("--out", type=options.FILE, help="Where to write it.  [default: DIR/baselines/SUITE.json]")
@click.option(
    "--update",
    is_flag=True,
    help="Take the results into the file that is there, with a line on what improved; nothing may be worse.",
)
def command(
    *,
    suite: str,
    settings: tuple[str, ...],
    scale: str | None,
    store: Store,
    no_speed: bool,
    out: Path | None,
    update: bool,
) -> None:
    """Write the results of the recorded runs of SUITE as a baseline for asyncfl check.

    Final metric, updates to the target, schedule and losses of every run are read from MLflow; the speed of
    each strategy is measured now.
    """
    from benchmarks.suite.suite import load
    from benchmarks.tables import print_rich
    from reports.gate import baseline, gate
    from reports.gate import output as gate_output

    planned = load(suite, settings, scale).runs()
    path = out or store.folder / "baselines" / f"{planned[0].suite}.json"
    must_be_ours(path, '"format": 1')
    before = baseline.read(path) if update else None
    if before:
        baseline.must_fit(before, planned, path)
    store.must_exist()
    taken = baseline.take(store.tracking_uri, planned)
    baseline.must_have_spread(taken)
    if not no_speed:
        names = {run.strategy for run in planned}
        speed = speeds(planned, before.speed) if before and before.speed else measured(planned, names)
        taken = taken.model_copy(update={"speed": speed})
    if before:
        taken = gate.update(before, taken, gate.compare(before, taken))
        new = taken.accepted[len(before.accepted) :]
        for line in new:
            for improvement in line.better:
                click.echo(f"Better: {improvement}")
            if line.other:
                click.echo(f"Other golden values or schedules: {', '.join(line.other)}")
        if not new:
            click.echo("All as before.")
    baseline.write(taken, path)
    click.echo(f"Baseline of {many(len(planned), 'run')}: {path}")
    click.echo("Later means may be worse by what is allowed; more seeds allow less.")
    print_rich(gate_output.allowed(gate.compare(taken, taken)))
