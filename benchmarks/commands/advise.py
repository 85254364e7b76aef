"""`asyncfl advise`: which strategies lead for clients like yours, and how to check it."""

from __future__ import annotations

import re
from contextlib import suppress
from math import exp
from pathlib import Path
from typing import Any

import click

from benchmarks.commands import options
from benchmarks.commands.trace import columns, columns_of_a_log, described, timing
from benchmarks.errors import UserError
from benchmarks.tables import print_text

ABSENCES = 5  # that the suite lasts at least, or who is away at its start would not be seen
JOBS = 30  # of a typical client, absences included, in the suite that checks the advice


class Share(options.Finite):
    """A number between bounds, also in per cent: 0.2 or 20%."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The share as a number; exits with what is wrong if it is none."""
        if isinstance(value, str) and value.endswith("%"):
            with suppress(ValueError):  # then it is refused as it was written
                value = float(value.removesuffix("%")) / 100
        return super().convert(value, param, ctx)


@click.command(short_help="Recommend strategies for clients like yours.")
@click.option(
    "--trace",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="A log of your clients' jobs: rows of client,length, or any with the columns named.",
)
@columns_of_a_log
@click.option("--clients", type=click.IntRange(1), help="How many.  [default: those of the trace, or 100]")
@click.option("--slow", type=Share(0, 1), metavar="SHARE", help="Share of slow clients, e.g. 20%.")
@click.option("--factor", type=options.Finite(1), default=10.0, show_default=True, help="How much slower.")
@click.option("--away", type=Share(0, 0.99), metavar="SHARE", help="Share of the time away, e.g. 30%.")
@click.option(
    "--out",
    type=options.FILE,
    default=Path("advised.yaml"),
    show_default=True,
    help="Where the suite is written that checks the advice.",
)
def command(
    *,
    trace: Path | None,
    clients: int | None,
    slow: float | None,
    factor: float,
    away: float | None,
    out: Path,
    gap: float | None,
    **named: Any,
) -> None:
    """Say what the leaderboard knows of clients like yours, and write a suite that checks it.

    Describe the clients by a trace, or by how many are slow or away:

    \b
      asyncfl advise --trace log.csv
      asyncfl advise --trace jobs.parquet --client device --start began --end ended
      asyncfl advise --clients 200 --slow 20% --factor 5 --away 30%
    """  # noqa: D301 - click's mark for lines to be left alone
    import pandas as pd

    from benchmarks.yaml_io import dump
    from fl_core.scenario import Timing
    from fl_core.timing.durations import means
    from reports import advice
    from reports.leaderboard.tables import Tables
    from reports.leaderboard.workloads import suites

    if trace and slow is not None:
        raise UserError("--slow: the trace says how fast the clients are; leave out either")
    if out.exists():
        raise UserError(f"{out}: exists already; delete it, or give --out FILE")
    if gap or any(named.values()):
        count, written = _imported(trace, clients, away, out, gap, **named)
    else:
        count, written = _described(trace, clients, slow, factor, away)
    own_timing = Timing.model_validate(written)
    try:
        typical = float(sorted(means(own_timing.durations, count, 0))[count // 2])
        own = advice.of_timing(own_timing, count, JOBS * typical)
    except ValueError as error:
        raise UserError(str(error)) from None
    tables = Tables.load(options.LEADERBOARD)
    scales = suites(tables.rules, "seeds=1")
    measured = pd.concat([tables.finals, tables.held_out])["timing"]
    neighbours = advice.neighbours(own, scales, measured)
    known = advice.known(tables, neighbours[0].timing if neighbours and neighbours[0].near else None)
    for line in (*advice.near(own, neighbours), *known.said):
        print_text(line)
    strategies = advice.candidates(known, scales[0])
    print_text("The suite compares:")
    for candidate in strategies:
        print_text(f"{candidate.label}: {candidate.why}", indent="  ")
    absence = float(written.get("availability", {}).get("mean_off", 0))
    time = float(f"{max(JOBS * typical * exp(own.absence), ABSENCES * absence):.3g}")
    taken = min(count, advice.MOST)
    if taken < count:
        print_text(f"It has {taken} of the {count} clients, drawn at random: digits are too few for more.")
    name = re.sub(r"[^\w.-]", "-", out.stem).lstrip("-.") or "advised"
    own_suite = advice.suite_to_check(written, taken, time, strategies, neighbours)
    out.write_text(dump({"name": name, **own_suite}), encoding="utf-8")
    print_text(
        f"Check it on your own problem, in place of digits in {out}: "
        f"asyncfl tune {out}, then asyncfl run {out} --tuned"
    )


def _described(
    trace: Path | None, clients: int | None, slow: float | None, factor: float, away: float | None
) -> tuple[int, dict[str, Any]]:
    """How many clients, and their timing as a suite writes it."""
    from fl_core.timing import traces

    written: dict[str, Any] = {}
    if trace:
        try:
            there = traces.clients(trace)
        except ValueError as error:
            raise UserError(str(error)) from None
        if not there:
            raise UserError(f"{trace}: has no jobs")
        count = clients or there
        written["durations"] = {"name": "trace", "path": str(trace), "clients": "random"}  # from here
    else:
        count = clients or 100
        slow_ones = {"name": "two_speed", "share": slow, "slow": factor, "jobs": "exponential"}
        written["durations"] = slow_ones if slow else {"name": "exponential"}
    return count, written | _away(away, 10)


def _imported(
    trace: Path | None, clients: int | None, away: float | None, out: Path, gap: float | None, **named: Any
) -> tuple[int, dict[str, Any]]:
    """How many clients a log has, shown, and their timing as a suite writes it; its trace is written."""
    from benchmarks import job_logs as logs

    if trace is None:
        raise UserError("--trace: name the log whose columns these are")
    to = out.with_name(f"{out.stem}-trace.csv")
    log = logs.read(trace, columns(trace, **named), gap)
    for line in described(trace, log, gap):
        print_text(line)
    log.write(to)
    typical = float(log.jobs["length"].median())
    return clients or log.clients, timing(log, to) | _away(away, 10 * typical)


def _away(share: float | None, mean_on: float) -> dict[str, Any]:
    """The availability of clients that are away for a share of the time, as a suite writes it; maybe none."""
    if not share:
        return {}
    mean_off = round(mean_on * share / (1 - share), 3)
    return {"availability": {"name": "spells", "mean_on": mean_on, "mean_off": mean_off}}
