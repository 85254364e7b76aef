"""`asyncfl check`: what got worse since a baseline was written; made for CI."""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import click

from asyncfl import options
from benchmarks.errors import UserError, must_be_ours, warn
from benchmarks.redaction import command_line
from benchmarks.tables import print_rich, print_text
from fl_core.text import many

if TYPE_CHECKING:
    from benchmarks.suite.suite import PlannedRun
    from benchmarks.tracking.store import Store
    from reports.gate.baseline import Baseline

no_speed = click.option(
    "--no-speed", is_flag=True, help="Do not measure how fast the strategies are simulated."
)


@click.command()
@options.planned
@no_speed
@click.option("--quality-only", is_flag=True, help="Ask only whether results are as good.")
@click.option(
    "--reproducibility-only", is_flag=True, help="Ask only whether schedules and golden values are the same."
)
@click.option(
    "--baseline", "against", type=options.FILE, help="From asyncfl baseline.  [default: the shipped one]"
)
@click.option("--junit", type=options.FILE, help="Write the checks as JUnit XML.")
@click.option("--summary", type=options.FILE, help="Write a summary as Markdown.")
def command(
    *,
    suite: str,
    settings: tuple[str, ...],
    scale: str | None,
    store: Store,
    no_speed: bool,
    quality_only: bool,
    reproducibility_only: bool,
    against: Path | None,
    junit: Path | None,
    summary: Path | None,
) -> None:
    """Compare the recorded runs of SUITE with a baseline.

    Only speed is measured here: call asyncfl run SUITE first, with a new --store, since recorded runs are not
    repeated.

    Quality, exit code 1: a strategy got worse if its final metric or its updates to the target did, by more
    than the spread over seeds explains, or if it takes half as long again relative to the yardstick.

    Reproducibility, exit code 3: schedules must be the recorded ones; losses too, exactly where the same
    processor and libraries made them, else up to rounding. Other values of a strategy that improved pass:
    accept them with asyncfl baseline SUITE --update.
    """
    from benchmarks.suite.suite import load
    from benchmarks.tracking.store import Store
    from reports.gate import baseline, gate
    from reports.gate import output as gate_output

    if quality_only and reproducibility_only:
        raise UserError("--quality-only and --reproducibility-only: leave out either, or both to ask both")
    for file, mark in ((junit, gate_output.JUNIT), (summary, gate_output.SUMMARY)):
        if file:
            must_be_ours(file, mark)
    planned = load(suite, settings, scale).runs()
    path = against or baseline.shipped(planned[0].suite)
    before = baseline.read(path)
    baseline.must_fit(before, planned, path)
    baseline.must_have_spread(before)
    store.must_exist()
    now = baseline.take(store.tracking_uri, planned)
    _warn_of_old_records(now)
    asked = {
        gate.GateQuestion.QUALITY: not reproducibility_only,
        gate.GateQuestion.REPRODUCIBILITY: not quality_only,
    }
    questions = [question for question in gate.GateQuestion if asked[question]]
    if gate.GateQuestion.QUALITY in questions and before.speed and not no_speed:
        now = now.model_copy(update={"speed": speeds(planned, before.speed)})
    checks = gate.compare(before, now, questions)
    if any(check.finding is not gate.Finding.SAME for check in checks):
        print_rich(gate_output.table(checks))
    print_text(gate_output.how_compared(before, now))
    print_text(gate.verdict(checks, now.suite))
    values = {"--scale": scale, "--tracking-uri": store.tracking, "--out": os.path.relpath(path)}
    if store.folder != Store().folder:
        values["--store"] = str(store.folder)
    words = [(option, value) for option, value in values.items() if value]
    words += [("--set", setting) for setting in settings]
    anew = command_line(["asyncfl", "baseline", suite, *chain.from_iterable(words)])
    accept = ""
    if any(check.finding is not gate.Finding.SAME for check in checks):
        every = gate.compare(before, now)  # whatever was asked here: --update asks all
        accept = gate_output.to_accept(every, anew)
        print_text(accept.replace("`", ""))
    if junit:
        gate_output.write(gate_output.junit(checks, now.suite), junit)
    if summary:
        gate_output.write(gate_output.markdown(checks, before, now, accept), summary)
    sys.exit(gate.exit_code(checks))


def measured(planned: Sequence[PlannedRun], strategies: Collection[str]) -> dict[str, float]:
    """The speed of these strategies beside the yardstick."""
    from benchmarks.speed.strategies import first_of_each, ratios

    click.echo(f"measuring: speed of {many(len(strategies), 'strategy')} beside the yardstick", err=True)
    first = first_of_each(planned).items()
    return ratios({name: experiment for name, experiment in first if name in strategies})


def speeds(planned: Sequence[PlannedRun], before: dict[str, float]) -> dict[str, float]:
    """The speed now; what seems too slow is measured once more, and the better time counts."""
    from reports.gate.gate import too_slow

    now = measured(planned, before)
    slow = too_slow(before, now)
    again = measured(planned, slow) if slow else {}
    return {name: max(ratio, again.get(name, ratio)) for name, ratio in now.items()}


def _warn_of_old_records(recorded: Baseline) -> None:
    """Recorded runs are not repeated, and records of another commit say nothing about this one."""
    from benchmarks.tracking.provenance import commit

    for run, here in ((recorded.commit, commit()), (recorded.repository, commit(Path.cwd()))):
        if here and run and here.removesuffix("+") != run.removesuffix("+"):
            warn(f"the runs are of commit {run[:12]}, not of {here[:12]}: run the suite into a new --store")
            return
