"""`asyncfl sync`: send what waits on disk."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from benchmarks import options
from fl_core.text import many


@click.command()
@options.store
@options.tracking_uri
def command(*, folder: Path, tracking_uri: str | None) -> None:
    """Send to MLflow what could not be sent when it was computed: a server was away, a disk full.

    Nothing is computed, and nothing is recorded twice. Trials are sent by the next asyncfl tune.
    """
    from benchmarks.errors import UserError
    from benchmarks.runs.sync import sync
    from benchmarks.tracking.store import Store

    if not folder.is_dir():
        raise UserError(f"--store {folder}: no such folder")
    found = sync(Store(folder, tracking_uri))
    some = found.sent or found.waiting
    click.echo(f"{many(found.sent, 'record')} sent." if some else "Nothing to send.")
    if found.waiting or found.why:
        click.echo(f"Error: {many(found.waiting, 'record')} still waiting: {found.why}", err=True)
        sys.exit(1)
