"""`asyncfl speed`: how fast the simulator is on this machine."""

import json
from pathlib import Path

import click

from asyncfl import options
from benchmarks.errors import writing
from benchmarks.tables import print_headed

COLUMNS = ("model", "execution", "updates/s", "× yardstick", "computes")


@click.command()
@options.folder
@options.data_dir
@options.device
def command(folder: Path) -> None:
    """Measure client updates a second here, beside a plain script.

    The yardstick is the loop that one would write for this one experiment: asynchronous SGD, 100 clients at
    work, mini-batches of 64, on random data in the shape of MNIST. One process, one thread, some minutes.
    Writes speed.json in DIR.
    """
    from benchmarks.device import chosen, label
    from benchmarks.speed.measurement import measure
    from benchmarks.tracking.provenance import provenance

    folder.mkdir(parents=True, exist_ok=True)
    rows = measure(lambda model: click.echo(f"measuring: {model}", err=True), chosen())
    lines = [
        (
            row["model"],
            row["execution"],
            f"{row['updates_per_second']:,.0f}",
            f"{row['of_yardstick']:.2f}",
            row["computes"],
        )
        for row in rows
    ]
    print_headed(COLUMNS, lines)
    path = folder / "speed.json"
    content = {"updates": rows, "device": label()} | {tag.short: value for tag, value in provenance().items()}
    with writing(path):
        path.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    click.echo(f"\nWritten: {path}")
