"""`asyncfl check`: what got worse since a baseline was written; made for CI."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from benchmarks import options
from fl_core.text import many

if TYPE_CHECKING:
    from benchmarks.suite.suite import PlannedRun
    from benchmarks.tracking.store import Store

File = click.Path(dir_okay=False, path_type=Path)

no_speed = click.option(
    "--no-speed", is_flag=True, help="Do not measure how fast the strategies are simulated."
)


@click.command()
@options.suite
@options.allow_code
@options.scale
@options.store
@options.data_dir
@no_speed
@click.option(
    "--baseline",
    "against",
    metavar="FILE",
    type=File,
    help="From asyncfl baseline.  [default: the shipped one]",
)
@click.option("--junit", metavar="FILE", type=File, help="Write the checks as JUnit XML.")
@click.option("--summary", metavar="FILE", type=File, help="Write a summary as Markdown.")
def command(
    *,
    suite: str,
    scale: str | None,
    store: Store,
    no_speed: bool,
    against: Path | None,
    junit: Path | None,
    summary: Path | None,
) -> None:
    """Compare the recorded runs of SUITE with a baseline; exit code 1 if something got worse.

    Only speed is measured here: call asyncfl run SUITE first, with a new --store, since recorded runs are not
    repeated. A strategy got worse if its final metric or its updates to the target did, by more than the
    spread over seeds explains, or if it takes half as long again relative to the yardstick. Schedules must
    match the recorded ones exactly, losses up to rounding.
    """
    from benchmarks.suite.suite import load
    from benchmarks.tables import print_rich
    from reports.gate import baseline, gate
    from reports.gate import output as gate_output

    planned = load(suite, scale=scale).runs()
    path = against or baseline.shipped(planned[0].suite)
    before = baseline.read(path)
    baseline.must_fit(before, planned, path)
    baseline.must_have_spread(before)
    store.must_exist()
    now = baseline.take(store.tracking_uri, planned)
    _warn_of_old_records(now.commit)
    if before.speed and not no_speed:
        now = now.model_copy(update={"speed": _speed(planned, before.speed)})
    checks = gate.compare(before, now)
    if any(check.finding != "same" for check in checks):
        print_rich(gate_output.table(checks))
    click.echo(gate_output.how_compared(before, now))
    click.echo(gate_output.verdict(checks, now.suite))
    if junit:
        gate_output.write(gate_output.junit(checks, now.suite), junit)
    if summary:
        anew = shlex.join(["asyncfl", "baseline", suite, *(["--out", str(against)] if against else [])])
        gate_output.write(gate_output.markdown(checks, before, now, anew), summary)
    sys.exit(1 if any(check.failed for check in checks) else 0)


def measured(planned: Sequence[PlannedRun], strategies: Collection[str]) -> dict[str, float]:
    """The speed of these strategies beside the yardstick."""
    from benchmarks.speed.strategies import first_of_each, ratios

    click.echo(f"measuring: speed of {many(len(strategies), 'strategy')} beside the yardstick", err=True)
    return ratios({name: one for name, one in first_of_each(planned).items() if name in strategies})


def _speed(planned: Sequence[PlannedRun], before: dict[str, float]) -> dict[str, float]:
    """The speed now; what seems too slow is measured once more, and the better time counts."""
    from reports.gate.gate import too_slow

    found = measured(planned, before)
    slow = too_slow(before, found)
    again = measured(planned, slow) if slow else {}
    return {name: max(ratio, again.get(name, ratio)) for name, ratio in found.items()}


def _warn_of_old_records(recorded: str) -> None:
    """Recorded runs are not repeated, and records of another commit say nothing about this one."""
    from benchmarks.errors import warn
    from benchmarks.tracking.provenance import commit

    here = commit()
    if here and recorded and here.removesuffix("+") != recorded.removesuffix("+"):
        warn(f"the runs are of commit {recorded[:12]}, not of {here[:12]}: run the suite into a new --store")
