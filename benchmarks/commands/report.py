"""`asyncfl report`: table and page of a suite that has run, and files for a paper."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from benchmarks import options
from fl_core.words import many

if TYPE_CHECKING:
    from benchmarks.tracking.store import Store
    from reports.records.records import RecordedSuite


@click.command()
@options.suite
@options.scale
@options.store
@options.tracking_uri
@click.option(
    "--files",
    "files",
    metavar="DIR",
    type=click.Path(file_okay=False, path_type=Path),
    help="Write every figure as SVG and PDF and every table as CSV and LaTeX here, too.",
)
def command(
    suite: str, scale: str | None, folder: Path, tracking_uri: str | None, files: Path | None
) -> None:
    """Print the results of SUITE as a table and write its report page.

    Everything is read from MLflow; nothing runs. A page that shows more runs
    than can be read now is kept: exit code 1.
    """
    from benchmarks.errors import UserError
    from benchmarks.suite.shipped import recorded_name
    from benchmarks.tables import print_rich
    from benchmarks.tracking.store import Store

    store = Store(folder, tracking_uri)
    store.must_exist()
    name = recorded_name(suite, scale)

    from reports import page, terminal
    from reports.records.store import load

    found = load(store.tracking_uri, name)
    if not found.runs and not found.studies:
        raise UserError(f"no run of a suite '{name}' is recorded in {tracking_uri or folder}")
    if found.runs:
        print_rich(terminal.tables(found))
    whole = write_page(found, store)
    if files is not None:
        try:
            written = page.write_files(found, files)
        except OSError as error:
            raise UserError(f"--files {files} cannot be written: {error.strerror}") from None
        click.echo(f"{many(len(written), 'file')} for a paper: {files}")
    if whole is None:
        sys.exit(1)


def write_page(found: RecordedSuite, store: Store) -> Path | None:
    """Write the page and print where it is; None if the old one shows more runs, and so was kept."""
    from benchmarks.errors import warn
    from reports import page

    if found.unread:
        first = found.unread[0]
        warn(
            f"{len(found.unread)} of {many(len(found.runs), 'run')} left files that cannot be read, first of "
            f"them {first.strategy} · {first.scenario} · seed {first.seed}: {first.files.unread}"
        )
    wanted = store.reports / f"{found.name}.html"
    written = page.write(found, wanted)
    if written != wanted:
        warn(f"{wanted} shows more runs and is kept; what can be read now is in {written}")
        return None
    click.echo(f"Report: {written}")
    return written
