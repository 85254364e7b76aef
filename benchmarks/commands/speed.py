"""`asyncfl speed`: how fast the simulator is on this machine."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from benchmarks import options

if TYPE_CHECKING:
    from benchmarks.tracking.store import Store

COMPARED = (
    *("model", "in flight", "execution", "updates/s"),
    *("× yardstick", "× tight loop", "× tight, by hand", "× floor", "chosen"),
)
SHARED = ("model", "in flight", "execution", "outside local work", "outside gradients")
SCHEDULED = ("clients", "strategy", "durations", "events/s")
SCALED = ("model", "in flight", "processes", "updates/s", "× yardstick")
ON_GPU = ("model", "in flight", "execution", "updates/s", "× one by one", "GPU computes", "chosen")
PEAKS = ("strategy", "clients", "in flight", "MiB")


WHAT = ("loop", "runs", "growth", "peers", "versions")
GROWN = ("cost of", "over", "sizes", "µs", "exponent", "95 %", "last two")
OF_PEERS = ("algorithm", "local steps", "by", "local steps/s", "× auto")
OF_VERSIONS = ("suite", "strategy", "before s", "now s", "× before", "repeats")


@click.command()
@click.argument("what", type=click.Choice(WHAT), default="loop", required=False)
@options.store
@options.data_dir
@options.device
@click.option("--quick", is_flag=True, help="Fewer clients in flight and fewer repeats: a few minutes.")
@click.option(
    "--before",
    metavar="DIR",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="For versions: a checkout of an earlier version.",
)
def command(what: str, folder: Path, quick: bool, before: Path | None) -> None:
    """Measure the speed of the simulator here, against plain scripts; WHAT it measures:

    \b
    loop      updates a second (the default; half an hour)
    runs      whole runs of shipped suites, part by part (ten minutes)
    growth    how cost grows with clients, jobs in flight, evaluations, parameters
    peers     local steps a second beside FLGo and pfl (the extra `peers`)
    versions  runs of shipped suites now and in an earlier version, --before DIR

    The loop compares client updates a second of every execution with the loop that one would write for a
    single experiment (the yardstick), with that loop tuned by hand, and with the arithmetic alone (the
    floor), on one core and on all; and measures events of the schedule alone, memory, and the cost of
    tracking; with --device cuda also what a GPU gains.

    Leaves speed.json and speed.svg in DIR, or speed-WHAT.csv and figures.
    """
    folder.mkdir(parents=True, exist_ok=True)
    if what == "versions" and before is None:
        raise click.UsageError("versions needs --before DIR, a checkout of an earlier version")
    if what == "loop":
        _loop(folder, quick)
    elif what == "runs":
        _runs(folder, quick)
    elif what == "growth":
        _growth(folder, quick)
    elif what == "peers":
        _peers(folder, quick)
    elif before is not None:
        _versions(folder, quick, before)


def report(store: Store, suite: str) -> None:
    """Read a suite from MLflow, print its tables, write its page and keep it, as `asyncfl run` does."""
    from benchmarks.commands.report import write_page
    from benchmarks.tables import print_rich
    from benchmarks.tracking.delivery import keep_page
    from reports import terminal
    from reports.records.store import load

    found = load(store.tracking_uri, suite)
    print_rich(terminal.tables(found))
    if written := write_page(found, store):
        keep_page(store, suite, written)


def _loop(folder: Path, quick: bool) -> None:
    import json

    from benchmarks.device import chosen
    from benchmarks.speed.measurement import FULL, QUICK, measure
    from benchmarks.speed.plot import draw

    found = measure(QUICK if quick else FULL, _tell, chosen())
    (folder / "speed.json").write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n")
    draw(found["updates"], folder / "speed.svg")
    _show(found)
    click.echo(f"\nWritten: {folder / 'speed.json'}, {folder / 'speed.svg'}")


def _runs(folder: Path, quick: bool) -> None:
    from benchmarks.speed.whole import table
    from benchmarks.speed.whole.measurement import REPEATS, measure
    from benchmarks.tables import print_table

    rows = measure(report, _tell, repeats=1 if quick else REPEATS)
    csv, figure = folder / "speed-runs.csv", folder / "speed-runs.svg"
    table.write_csv(rows, csv)
    table.draw(rows, figure)
    click.echo("Seconds of processor time, a run of a shipped suite and the same work as a plain script")
    print_table(table.IN_PARTS, table.in_parts(rows))
    click.echo("\nWhat follows: share of evaluation, script over run, the whole command, seeds an hour")
    print_table(table.COMPARED, table.compared(rows))
    click.echo(f"\nWritten: {csv}, {figure}")


def _growth(folder: Path, quick: bool) -> None:
    from benchmarks.speed.growth import measurement
    from benchmarks.speed.growth.plot import draw
    from benchmarks.tables import print_table

    repeats, largest = measurement.QUICK if quick else (measurement.REPEATS, None)
    rows = measurement.measure(_tell, repeats=repeats, largest=largest)
    csv, figure = folder / "speed-growth.csv", folder / "speed-growth.svg"
    points = [
        {
            **{key: row[key] for key in ("cost", "grows", "exponent", "low", "high", "last")},
            "size": size,
            "s": s,
        }
        for row in rows
        for size, s in zip(row["sizes"], row["seconds"], strict=True)
    ]
    _write(csv, points)
    draw(rows, figure)
    print_table(GROWN, [_grown(row) for row in rows])
    click.echo(f"\nWritten: {csv}, {figure}")


def _peers(folder: Path, quick: bool) -> None:
    from benchmarks.speed.peers import measurement
    from benchmarks.tables import print_table

    if missing := measurement.missing():
        click.echo(f"not installed: {', '.join(missing)}; pip install 'asyncfl-bench[peers]'", err=True)
    rows = measurement.measure(_tell, repeats=1 if quick else measurement.REPEATS)
    csv = folder / "speed-peers.csv"
    _write(csv, [{key: value for key, value in row.items() if key != "seconds"} for row in rows])
    print_table(OF_PEERS, [_peer(row) for row in rows])
    click.echo(f"\nWritten: {csv}")


def _versions(folder: Path, quick: bool, before: Path) -> None:
    from benchmarks.speed.whole import versions
    from benchmarks.tables import print_table

    rows = versions.measure(before, _tell, repeats=1 if quick else versions.REPEATS)
    csv = folder / "speed-versions.csv"
    _write(csv, rows)
    print_table(OF_VERSIONS, [_version(row) for row in rows])
    click.echo(f"\nWritten: {csv}")


def _tell(what: str) -> None:
    click.echo(f"measuring: {what}", err=True)


def _write(path: Path, rows: Sequence[dict[str, Any]]) -> None:
    import csv

    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def _show(found: dict[str, Any]) -> None:
    from benchmarks.tables import print_table

    click.echo(f"{found['machine']}; one thread, {found['busy']:.0%} of a core\n\nClient updates a second")
    print_table(COMPARED, [_compared(row) for row in found["updates"]])
    click.echo("\nSixteen simulations at once on all cores, against one yardstick")
    print_table(SCALED, [_scaled(row) for row in found["cores"]])
    click.echo("\nTime that is not local computation")
    print_table(SHARED, [_shared(row) for row in found["shares"]])
    click.echo("\nThe schedule alone, a tenth of the clients at work")
    print_table(SCHEDULED, [_scheduled(row) for row in found["schedule"]])
    click.echo("\nPeak memory beyond data and libraries, logistic regression")
    print_table(PEAKS, [_peak(row) for row in found["memory"]])
    tracking = found["tracking"]
    click.echo(
        f"\nTracking 100 evaluations of 12 metrics: {tracking['seconds']:.2f} s a run, "
        f"{tracking['share_of_a_minute']:.1%} of a run of a minute"
    )
    if not found["gpu"]:
        click.echo("\nNo GPU measured: asyncfl speed --device cuda")
        return
    click.echo(f"\nOn the GPU ({found['gpu'][0]['gpu']}), wall time")
    print_table(ON_GPU, [_on_gpu(row) for row in found["gpu"]])


def _compared(row: dict[str, Any]) -> tuple[str, ...]:
    compared = ("of_yardstick", "of_tight", "of_tight_by_hand", "of_floor")
    ratios = ("" if row[key] is None else f"{row[key]:.2f}" for key in compared)
    chosen = row["chosen"].removeprefix("auto: ")
    return (
        row["model"],
        f"{row['in_flight']}",
        row["arm"],
        f"{row['updates_per_second']:,.0f}",
        *ratios,
        chosen,
    )


def _scaled(row: dict[str, Any]) -> tuple[str, ...]:
    rates = f"{row['updates_per_second']:,.0f}", f"{row['of_yardstick']:.2f}"
    return row["model"], f"{row['in_flight']}", f"{row['processes']}", *rates


def _shared(row: dict[str, Any]) -> tuple[str, ...]:
    shares = (f"{row[key]:.1%}" for key in ("outside_local_work", "outside_gradients"))
    return row["model"], f"{row['in_flight']}", row["arm"], *shares


def _scheduled(row: dict[str, Any]) -> tuple[str, ...]:
    return f"{row['clients']:,}", row["strategy"], row["durations"], f"{row['events_per_second']:,.0f}"


def _on_gpu(row: dict[str, Any]) -> tuple[str, ...]:
    rates = f"{row['updates_per_second']:,.0f}", f"{row['of_one_by_one']:.1f}", f"{row['computing']:.0%}"
    return row["model"], f"{row['in_flight']}", row["arm"], *rates, row["chosen"].removeprefix("auto: ")


def _peak(row: dict[str, Any]) -> tuple[str, ...]:
    return row["strategy"], f"{row['clients']:,}", f"{row['in_flight']:,}", f"{row['mebibytes']:,.0f}"


def _grown(row: dict[str, Any]) -> tuple[str, ...]:
    microseconds = (1e6 * row["seconds"][place] for place in (0, -1))
    return (
        row["cost"],
        row["grows"],
        f"{row['sizes'][0]:,} to {row['sizes'][-1]:,}",
        " to ".join(f"{value:,.0f}" for value in microseconds),
        f"{row['exponent']:.2f}",
        f"{row['low']:.2f} to {row['high']:.2f}",
        f"{row['last']:.2f}",
    )


def _peer(row: dict[str, Any]) -> tuple[str, ...]:
    rate = f"{row['steps_per_second']:,.0f}"
    return row["algorithm"], f"{row['steps']}", row["by"], rate, f"{row['of_auto']:.2f}"


def _version(row: dict[str, Any]) -> tuple[str, ...]:
    seconds = (f"{row[when]:.2f}" for when in ("before", "now"))
    return row["suite"], row["strategy"], *seconds, f"{row['of_before']:.2f}", f"{row['repeats']}"
