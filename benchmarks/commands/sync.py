"""`asyncfl sync`: send records waiting on disk to MLflow."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from benchmarks.commands import options
from benchmarks.errors import UserError
from fl_core.text import many

if TYPE_CHECKING:
    from benchmarks.mlflow_store.store import Store


@click.command(short_help="Send records to MLflow that could not be sent before.")
@options.store
def command(store: Store) -> None:
    """Send records to MLflow that could not be sent before, because a server was away or a disk was full.

    Nothing is computed, and nothing is recorded twice. Trials are sent by the next asyncfl tune.
    """
    from benchmarks.runs.session import sync

    if not store.folder.is_dir():
        raise UserError(f"--store {store.folder}: no such folder. Name the folder of the results")
    outcome = sync(store)
    any_record = outcome.sent or outcome.pending_records
    click.echo(f"{many(outcome.sent, 'record')} sent." if any_record else "Nothing to send.")
    if outcome.pending_records or outcome.pending_reason:
        click.echo(
            f"Error: {many(outcome.pending_records, 'record')} still waiting: {outcome.pending_reason}",
            err=True,
        )
        sys.exit(1)
