"""`asyncfl speed`: how fast the simulator is on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from benchmarks import options

COMPARED = (
    *("model", "in flight", "execution", "updates/s"),
    *("× yardstick", "× tight loop", "× tight, by hand", "× floor", "chosen"),
)
SHARED = ("model", "in flight", "execution", "outside local work", "outside gradients")
SCHEDULED = ("clients", "strategy", "durations", "events/s")
SCALED = ("model", "in flight", "processes", "updates/s", "× yardstick")
ON_GPU = ("model", "in flight", "execution", "updates/s", "× one by one", "GPU computes", "chosen")
PEAKS = ("strategy", "clients", "in flight", "MiB")


@click.command()
@options.store
@options.device
@click.option("--quick", is_flag=True, help="Fewer clients in flight and fewer repeats: a few minutes.")
def command(folder: Path, quick: bool) -> None:
    """Measure the speed of the simulator here, against a plain loop; takes half an hour.

    Compares client updates a second of every execution with the loop that one would write for a single
    experiment (the yardstick), with that loop tuned by hand, and with the arithmetic alone (the floor), on
    one core and on all; and measures
    events of the schedule alone, memory, and the cost of tracking; with --device cuda also what a GPU gains.
    Leaves speed.json and speed.svg in DIR.
    """
    import json

    from benchmarks.device import chosen
    from benchmarks.speed.measurement import FULL, QUICK, measure
    from benchmarks.speed.plot import draw

    folder.mkdir(parents=True, exist_ok=True)
    plan = QUICK if quick else FULL
    found = measure(plan, lambda what: click.echo(f"measuring: {what}", err=True), chosen())
    (folder / "speed.json").write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n")
    draw(found["updates"], folder / "speed.svg")
    _show(found)
    click.echo(f"\nWritten: {folder / 'speed.json'}, {folder / 'speed.svg'}")


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
