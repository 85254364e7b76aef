"""`asyncfl advise`: leading strategies for similar clients, and a suite to check the advice."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from math import exp, inf
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from benchmarks.commands import options
from benchmarks.commands.theory import ACCURACY, GAP, NOISE, draw_costs, least_costs, print_costs
from benchmarks.commands.trace import columns, columns_of_a_log, described
from benchmarks.errors import UserError
from benchmarks.terminal_output import print_headed, print_text

if TYPE_CHECKING:
    from fl_core.scenario import Scenario, Timing
    from reports.leaderboard.page import Board

FIRST_CLIENTS, FIRST_ABSENCES = 100, 50  # averaged for the mean length of an absence
SPEED_GROUPS = 10  # clients of a group get the same probability
MAX_TASKS = 100  # in flight, in the search for the least time or energy
MAX_CLIENTS = 200  # for which time and energy are computed; of more, a sample evenly over their speeds
# Length of the suite that checks the advice, whichever is longer:
MIN_ABSENCES = 5  # mean absences, so that clients absent at the start come back
JOBS_PER_CLIENT = 30  # jobs of a typical client, absences and transfers included


class Share(options.Finite):
    """A number between bounds, also in per cent: 0.2 or 20%."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the share as a number; exit with an error for invalid input."""
        if isinstance(value, str) and value.endswith("%"):
            with suppress(ValueError):  # then it is refused as it was written
                value = float(value.removesuffix("%")) / 100
        return super().convert(value, param, ctx)


@click.command(short_help="Recommend strategies for clients like yours.")
@click.option(
    "--trace",
    type=options.EXISTING_FILE,
    metavar="FILE",
    help="Log of your clients' jobs: rows of client,length, or another log whose columns you name.",
)
@columns_of_a_log
@click.option(
    "--clients", type=options.COUNT, help="Number of clients.  [default: those of the trace, or 100]"
)
@click.option("--slow", type=Share(0, 1), metavar="SHARE", help="Share of slow clients, e.g. 20%.")
@click.option(
    "--factor",
    type=options.Finite(1),
    default=10.0,
    show_default=True,
    help="Ratio of the job times of slow clients to those of others.",
)
@click.option(
    "--away", type=Share(0, 0.99), metavar="SHARE", help="Share of the time that clients are away, e.g. 30%."
)
@click.option("--at-work", type=options.COUNT, metavar="N", help="Clients at work at a time.  [default: all]")
@click.option("--uplink", metavar="RATE", help="Mbit/s from each client, or a column of --links.")
@click.option("--downlink", metavar="RATE", help="Mbit/s to each client, or a column of --links.")
@click.option("--latency", type=options.Finite(min=0), metavar="SECONDS", help="Latency in each direction.")
@click.option(
    "--server-uplink",
    type=options.POSITIVE,
    metavar="RATE",
    help="Mbit/s for the uploads of all clients together.",
)
@click.option(
    "--server-downlink",
    type=options.POSITIVE,
    metavar="RATE",
    help="Mbit/s for the downloads of all clients together.",
)
@click.option("--links", type=options.FILE, metavar="FILE", help="CSV file with a row for each client.")
@click.option("--links-client", metavar="COL", help="Column of --links with the ids of clients.")
@click.option("--message", metavar="SIZE", help="Size of your model, such as 40MB; needed with links.")
@click.option(
    "--unit",
    type=options.POSITIVE,
    metavar="SECONDS",
    help="Length of a time unit in seconds.  [default: 1 for logs with dates]",
)
@click.option(
    "--computation",
    type=options.POSITIVE,
    metavar="WATTS",
    help="Power of a client at work; adds a comparison of time and energy.",
)
@click.option(
    "--idle",
    type=options.Finite(min=0),
    metavar="WATTS",
    help="Power of a client without work.  [default: 0]",
)
@click.option(
    "--out",
    type=options.FILE,
    default=Path("advised.yaml"),
    show_default=True,
    help="File for the suite that checks the advice.",
)
def command(
    *,
    trace: Path | None,
    clients: int | None,
    slow: float | None,
    factor: float,
    away: float | None,
    at_work: int | None,
    out: Path,
    gap: float | None,
    unit: float | None,
    uplink: str | None,
    downlink: str | None,
    latency: float | None,
    server_uplink: float | None,
    server_downlink: float | None,
    links: Path | None,
    links_client: str | None,
    message: str | None,
    computation: float | None,
    idle: float | None,
    **named: Any,
) -> None:
    """Find strategies for clients like yours on the leaderboard, and write a suite to test them.

    Describe the clients by a trace, or by how many are slow or away:

    \b
      asyncfl advise --trace log.csv
      asyncfl advise --trace jobs.parquet --client device --start began --end ended
      asyncfl advise --clients 200 --slow 20% --factor 5 --away 30%
      asyncfl advise --trace log.csv --uplink 10 --downlink 50 --message 40MB
      asyncfl advise --trace log.csv --computation 4 --idle 0.5
    """  # noqa: D301 - click's mark for lines to be left alone
    from pydantic import ValidationError

    from benchmarks.yaml_io import dump
    from fl_core.scenario import Timing
    from fl_core.timing.durations import means
    from reports import advice

    _refuse(trace, slow, computation, idle, out)
    if gap or any(named.values()):
        count, written = _imported(trace, clients, away, out, gap, **named)
    else:
        count, written = _described(trace, clients, slow, factor, away)
    network = _network(
        uplink=uplink,
        downlink=downlink,
        latency=latency,
        shared={"uplink": server_uplink, "downlink": server_downlink},
        links=links,
        client=links_client,
        message=message,
    )
    try:
        written |= _with_links(written, network, unit)
        own_timing = Timing.model_validate(written)
        typical = float(sorted(means(own_timing.durations, count, 0))[count // 2])
        fleet = advice.of_timing(own_timing, count, JOBS_PER_CLIENT * typical, at_work=at_work)
    except ValidationError as error:
        raise UserError("; ".join(detail["msg"] for detail in error.errors())) from None
    except ValueError as error:
        raise UserError(str(error)) from None
    board, written_entries, measured = _measured()
    neighbours = advice.neighbours(fleet, measured)
    is_near = bool(neighbours) and neighbours[0].near
    sentences, reasons = advice.from_board(board.scores[neighbours[0].population] if is_near else None)
    given_names = _given(trace, slow, written, at_work)
    print_headed(*advice.characteristics_table(fleet, neighbours, given_names))
    for line in (advice.nearness(neighbours), *sentences):
        print_text(line)
    strategies = advice.candidates(reasons, written_entries)
    print_text("The suite compares:")
    for label, reason in strategies.items():
        print_text(f"{label}: {reason}", indent="  ")
    absence = _mean_absence(own_timing, count)
    time = float(
        f"{max(JOBS_PER_CLIENT * typical * exp(fleet.absence + fleet.transfers), MIN_ABSENCES * absence):.3g}"
    )
    taken = min(count, advice.MOST)
    if taken < count:
        _share_links(written, taken / count)
        print_text(
            f"The suite has {taken} of your {count} clients, drawn at random: the data set digits is "
            "too small for more."
        )
    name = re.sub(r"[^\w.-]", "-", out.stem).lstrip("-.") or "advised"
    own_suite = advice.suite_to_check(
        written, taken, time, strategies, neighbours, written=written_entries, at_work=at_work
    )
    out.write_text(dump({"name": name, **own_suite}), encoding="utf-8")
    print_text(
        f"Check this advice: replace the problem digits in {out} by your own, "
        f"then run asyncfl tune {out} and asyncfl run {out} --tuned"
    )
    if computation:
        figure = out.with_name(f"{out.stem}-energy.svg")
        speeds = [1 / float(mean) for mean in means(own_timing.durations, count, 0)]
        _print_energy(speeds, at_work or count, (computation, idle or 0.0), figure)


def _print_energy(speeds: Sequence[float], at_work: int, power: tuple[float, float], figure: Path) -> None:
    """Print time and energy of Generalized AsyncSGD with the least of either, and draw the front.

    Args:
        speeds: Jobs per unit of time of each client.
        at_work: Clients at work at a time under AsyncSGD.
        power: Watts of a client at work, and without work.
        figure: File of the drawing.
    """
    import numpy as np

    from fl_core.theory.cost import Cost

    count, taken = len(speeds), min(len(speeds), MAX_CLIENTS)
    sample = np.sort(speeds)[np.arange(taken) * count // taken]
    groups = np.arange(taken) * min(SPEED_GROUPS, taken) // taken
    work, idle = (np.full(taken, watts) for watts in power)
    target = Cost(ACCURACY, GAP, NOISE, work, idle)
    tasks = max(1, round(at_work * taken / count))
    networks = least_costs(
        target, sample, tasks=tasks, limit=min(taken, MAX_TASKS), server=inf, groups=groups
    )
    print_text(
        "Time and energy of Generalized AsyncSGD to the same accuracy, from the bound of its paper "
        f"for exponential job times, without absences and links{_sampled(taken, count)}. Test these "
        "predictions as well:"
    )
    print_costs(target, networks)
    draw_costs(target, networks, figure)
    print_text(f"Figure: {figure}")


def _sampled(taken: int, count: int) -> str:
    return "" if taken == count else f", for {taken} of the {count} clients, evenly over their speeds"


def _refuse(
    trace: Path | None, slow: float | None, computation: float | None, idle: float | None, out: Path
) -> None:
    """Raise UserError for incompatible options, or if the output exists."""
    if trace and slow is not None:
        raise UserError(
            "--slow cannot be combined with --trace, which says how fast the clients are. Leave out one of "
            "them"
        )
    if idle is not None and computation is None:
        raise UserError("--idle needs --computation WATTS, the power of clients at work")
    if out.exists():
        raise UserError(f"{out}: exists already. Delete it, or choose another with --out FILE")


def _described(
    trace: Path | None, clients: int | None, slow: float | None, factor: float, away: float | None
) -> tuple[int, dict[str, Any]]:
    """Return the number of clients, and the timing in the form of a suite file."""
    from fl_core.timing import traces

    written: dict[str, Any] = {}
    if trace:
        try:
            clients_of_trace = traces.clients(trace)
        except ValueError as error:
            raise UserError(str(error)) from None
        if not clients_of_trace:
            raise UserError(f"{trace}: has no job. Name another log, or the columns of its clients and times")
        count = clients or clients_of_trace
        written["durations"] = {"name": "trace", "path": str(trace), "clients": "random"}  # from here
    else:
        count = clients or 100
        slow_ones = {"name": "two_speed", "share": slow, "slow": factor, "jobs": "exponential"}
        written["durations"] = slow_ones if slow else {"name": "exponential"}
    return count, written | _away(away, 10)


def _imported(
    trace: Path | None, clients: int | None, away: float | None, out: Path, gap: float | None, **named: Any
) -> tuple[int, dict[str, Any]]:
    """Print a summary of a log and write the trace; return the number of clients and the timing."""
    from benchmarks import trace_import as logs

    if trace is None:
        raise UserError("--trace is missing: name the log with --trace FILE")
    to = out.with_name(f"{out.stem}-trace.csv")
    log = logs.read(trace, columns(trace, **named), gap)
    for line in described(trace, log, gap):
        print_text(line)
    typical = float(log.jobs["length"].median())
    return clients or log.clients, log.save(to) | _away(away, 10 * typical)


def _network(
    *,
    uplink: str | None,
    downlink: str | None,
    latency: float | None,
    shared: Mapping[str, float | None],
    links: Path | None,
    client: str | None,
    message: str | None,
) -> dict[str, Any]:
    """Return the given network settings for a suite file; UserError for incomplete options."""

    def link(option: str, value: str) -> Any:
        with suppress(ValueError):
            return float(value)
        if links is None:
            raise UserError(
                f"--{option} {value}: must be a rate in Mbit/s, or a column of the file that "
                "--links FILE names"
            )
        ids = {"client": client} if client else {}
        return {"name": "column", "path": str(links), "column": value, **ids}

    ways = {"uplink": uplink, "downlink": downlink}
    network: dict[str, Any] = {way: link(way, value) for way, value in ways.items() if value is not None}
    if latency is not None:
        network["latency"] = latency
    if limits := {way: rate for way, rate in shared.items() if rate is not None}:
        network["shared"] = limits
    if links is not None and not {uplink, downlink} - {None}:
        raise UserError("--links: name its columns with --uplink COL, --downlink COL, or both")
    if network and message is None:
        raise UserError("--message is missing: give the size of your model, such as 40MB")
    if message is not None and not network:
        raise UserError("--message needs links: add --uplink, --downlink or --latency")
    return {**network, "message": message} if network else {}


def _with_links(written: Mapping[str, Any], network: Mapping[str, Any], unit: float | None) -> dict[str, Any]:
    """Return network and unit of the timing; UserError for links and job lengths of an unknown unit."""
    from fl_core.scenario import Timing
    from fl_core.timing.traces import TIME_UNITS

    if not network:
        return {}
    if unit is None and (name := Timing.model_validate(written).durations.time_unit):
        unit = float(TIME_UNITS[name])
    if unit is None:
        raise UserError(
            "--unit is missing: give the length of a time unit in seconds, since links are in Mbit/s"
        )
    return {"network": dict(network), **({} if unit == 1 else {"unit": unit})}


def _share_links(timing: dict[str, Any], share: float) -> None:
    """Reduce the rates of shared links in a suite's timing, for a sample with `share` of the clients."""
    network = timing.get("network", {})
    if shared := network.get("shared"):
        timing["network"] = network | {"shared": {way: share * rate for way, rate in shared.items()}}


def _measured() -> tuple[Board, dict[str, Any], dict[str, tuple[str, Scenario, float]]]:
    """Return the board, entries in the form of a suite file, and the measured populations."""
    from benchmarks.commands.leaderboard import SUITE, whole_board
    from benchmarks.leaderboard.board import StudyOfScale
    from benchmarks.suite.suite import load
    from reports import advice
    from reports.leaderboard.page import population_name

    board = whole_board()
    scenarios = {
        name: load(SUITE, ["seeds=1"], scores.scales[0], tuned=False).points[0].scenario
        for name, scores in board.scores.items()
    }
    measured = {
        name: (population_name(name), scenarios[name], advice.message(scores))
        for name, scores in board.scores.items()
    }
    first = next(scores.scales[0] for scores in board.scores.values())
    entries = {entry["label"]: entry for entry in StudyOfScale(SUITE, first, 1).strategies}
    return board, entries, measured


def _given(
    trace: Path | None, slow: float | None, timing: Mapping[str, Any], at_work: int | None
) -> set[str]:
    """Return the names of the characteristics that the user's options determine; the others are assumed.

    The table of characteristics tells them apart. Names are the fields of `Characteristics`.
    """
    names = {"spread", "slowest"} if trace or slow else set()
    names |= {"tail"} if trace else set()
    names |= {"absence"} if "availability" in timing else set()
    names |= {"transfers"} if "network" in timing else set()
    return names | ({"idleness"} if at_work is not None else set())


def _mean_absence(timing: Timing, count: int) -> float:
    """Return the mean length of the first clients' finite absences; 0 without any."""
    from itertools import islice

    from fl_core.timing.availability import checked

    ids = timing.ids(count, 0)
    lengths = [
        float(back - leaves)
        for client in range(min(count, FIRST_CLIENTS))
        for leaves, back in islice(checked(timing.availability, client, count, 0, ids), FIRST_ABSENCES)
        if back is not None
    ]
    return sum(lengths) / len(lengths) if lengths else 0.0


def _away(share: float | None, mean_on: float) -> dict[str, Any]:
    """Return the law of availability for a share of time away, as in a suite file; {} without a share."""
    if not share:
        return {}
    mean_off = round(mean_on * share / (1 - share), 3)
    return {"availability": {"name": "spells", "mean_on": mean_on, "mean_off": mean_off}}
