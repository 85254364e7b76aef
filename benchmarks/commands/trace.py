"""`asyncfl trace import`: a log of jobs, in any columns, as a trace and a law of availability.

Fixed: names of the options for columns, and the files written, whose digests are in keys of runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from benchmarks.commands import options
from benchmarks.errors import UserError
from fl_core.text import many

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from benchmarks.trace_import import Columns, JobLog
    from reports.figures.svg import Drawing

COLUMNS = (
    click.option("--client", metavar="COL", help="Column with the id of the client."),
    click.option("--start", metavar="COL", help="Column with the start of a job: dates, or numbers."),
    click.option("--end", metavar="COL", help="Column with the end of a job."),
    click.option("--duration", metavar="COL", help="Column with the length of a job, instead of --end."),
    click.option(
        "--status", metavar="COL", help="Column with the status of a job; only finished jobs count."
    ),
    click.option(
        "--done",
        metavar="VALUE",
        multiple=True,
        help="Status of finished jobs. May be repeated.  [default: done, ok, success, completed, "
        "finished and the like]",
    ),
    click.option(
        "--gap",
        metavar="LENGTH",
        type=options.POSITIVE,
        help="A longer gap between a client's jobs is an absence.  [default: 10 times the usual cycle]",
    ),
)


def columns_of_a_log(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options for the columns of a log."""
    for option in reversed(COLUMNS):
        command = option(command)
    return command


def columns(log: Path, client: str | None, **named: Any) -> Columns:
    """Return the columns of a log, from the options; UserError unless job lengths can be determined."""
    from benchmarks.trace_import import Columns, names

    if client is None:
        raise UserError(f"--client is missing: name the column with the clients. {log} has: {names(log)}")
    chosen = Columns(client, **named)
    if (chosen.duration is None) == (chosen.end is None) or (chosen.end and not chosen.start):
        raise UserError(
            "name the columns with the times of jobs: --start COL and --end COL, or --duration COL "
            "(and --start COL, if the log has a start)"
        )
    if chosen.done and chosen.status is None:
        raise UserError("--done needs --status COL: the column with the status")
    return chosen


@click.group("trace")
def command() -> None:
    """Use logs of real clients."""


@command.command("import")
@click.argument("log", type=options.FILE)
@columns_of_a_log
@click.option(
    "--batch",
    metavar="N",
    type=options.COUNT,
    help="Size of a mini-batch, for FedScale's client_device_capacity.",
)
@click.option("--out", type=options.FILE, help="File for the trace.  [default: LOG-trace.csv]")
def import_log(log: Path, gap: float | None, batch: int | None, out: Path | None, **named: Any) -> None:
    """Make a trace of LOG, a CSV or parquet file with one row for each job of a client.

    LOG may also be your copy of a public trace of phones, without options for columns: FedScale's
    client_behave_trace or client_device_capacity, or FLASH's JSON of states.

    Prints a summary of LOG and the keys for a suite; writes the trace, and a figure beside it.

    \b
      asyncfl trace import jobs.csv --client device --start began --end ended --status state
      asyncfl trace import jobs.parquet --client phone --duration seconds
      asyncfl trace import client_behave_trace
      asyncfl trace import client_device_capacity --batch 20
    """  # noqa: D301 - click's mark for lines to be left alone
    from benchmarks import phone_traces as devices
    from benchmarks import trace_import as logs

    trace = out or log.with_name(f"{log.stem}-trace.csv")
    figure = trace.with_suffix(".svg")
    phones = devices.read(log, batch)
    if batch is not None and not isinstance(phones, devices.StepLog):
        raise UserError("--batch applies to FedScale's client_device_capacity only. Leave it out")
    if phones and (options_given := [name for name, value in {**named, "gap": gap}.items() if value]):
        raise UserError(
            f"--{options_given[0]}: {log} is a public trace of phones with known columns. Leave out "
            "the option"
        )
    if isinstance(phones, devices.Presence):
        for line in phones.described(log):
            click.echo(line)
        _show({"Trace": trace}, len(phones.clients), phones.save(trace))
        return
    jobs = phones or logs.read(log, columns(log, **named), gap)
    for line in described(log, jobs, gap):
        click.echo(line)
    if figure.exists() and not trace.exists():
        raise UserError(
            f"{figure}: another file of this name exists. Delete it, or choose another with --out FILE"
        )
    timing = jobs.save(trace)
    _figure(jobs).save(figure)
    files = {"Trace": trace, "Figure": figure}
    if "availability" in timing:
        files["Presence"] = timing["availability"]["path"]
    if "network" in timing:
        files["Links"] = timing["network"]["uplink"]["path"]
    _show(files, jobs.clients, timing)


def _show(files: Mapping[str, Any], clients: int, timing: dict[str, Any]) -> None:
    """Print the written files, and the settings to use for a suite."""
    from benchmarks.yaml_io import dump

    click.echo(f"{'. '.join(f'{kind}: {path}' for kind, path in files.items())}. In a suite:\n")
    click.echo(dump({"problem": {"clients": clients}, "timing": timing}).rstrip())


def described(path: Path, log: JobLog, gap: float | None) -> Iterator[str]:
    """Yield sentences on the contents of a log: rows, clients, lengths, absences."""
    from benchmarks.trace_import import counts
    from benchmarks.yaml_io import in_a_line
    from reports.numbers import number

    def text(value: float) -> str:
        return number(value, 3)

    lengths, unit = log.jobs["length"], " s" if log.seconds else ""
    means = log.jobs.groupby("client")["length"].mean()
    yield f"{path}: {many(log.rows, 'row')}, {many(len(lengths), 'job')} of {many(log.clients, 'client')}"
    if log.left_out:
        yield f"Left out: {counts(log.left_out)}"
    middle, upper, longest = (text(float(lengths.quantile(share))) for share in (0.5, 0.9, 1))
    yield f"Length of a job: median {middle}{unit}, nine in ten up to {upper}{unit}, longest {longest}{unit}"
    low, middle, high = (text(float(means.quantile(share))) for share in (0, 0.5, 1))
    yield f"Mean length of a client's jobs: from {low}{unit} to {high}{unit}, median {middle}{unit}"
    if log.absences is None:
        yield "Absences: unknown, as no client has two jobs with a start time; always available"
        return
    absences = log.absences
    than = "10 times its median time from job to job" if gap is None else f"{text(gap)}{unit}"
    long = f"{absences.long:,} of {many(absences.gaps, 'gap')} between a client's jobs"
    yield f"Absences longer than {than}: {long}, {100 * absences.away:.3g} % of the time"
    if law := absences.law:
        on, off = text(law["mean_on"]), text(law["mean_off"])
        yield f"  present for {on}{unit} and away for {off}{unit} on average; the log repeats after its end"
        yield f"  for pauses that clients take independently: 'availability: {in_a_line(law)}'"
    else:
        yield "  too little for a law: always available"


def _figure(log: JobLog) -> Drawing:
    """Return a figure with the shares of jobs, and of clients by mean job length, up to a length."""
    import numpy as np
    from matplotlib.ticker import LogLocator

    from reports.figures.svg import Drawing, across, line_style, style

    curves = {
        "jobs": log.jobs["length"].to_numpy(),
        "clients, by the mean length of their jobs": log.jobs.groupby("client")["length"].mean().to_numpy(),
    }

    def paint(axes: Axes) -> None:
        for index, values in enumerate(curves.values()):
            shares = 100 * np.arange(1, len(values) + 1) / len(values)
            axes.step(np.sort(values), shares, where="post", linestyle=line_style(index), **style(index))
        axes.set_xscale("log")
        axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.set_ylim(0, 102)
        axes.set_title("Share that is no longer (%)", loc="left", fontsize=11)
        across(axes, "length in seconds" if log.seconds else "length", log=True)

    description = "Shares of jobs, and of clients by the mean length of their jobs, up to each length."
    return Drawing(paint, description, (440, 290), (46, 14, 34, 44), list(enumerate(curves)))
