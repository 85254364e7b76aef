"""`asyncfl report`: table and page of a recorded suite, and files for a paper."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from benchmarks.commands import options
from benchmarks.errors import RUN_AGAIN, UserError, warn, writing
from benchmarks.terminal_output import print_rich
from fl_core.recorded_names import CLAIMS
from fl_core.text import many, nearest

if TYPE_CHECKING:
    from benchmarks.mlflow_store.run_result import RunResult
    from benchmarks.mlflow_store.store import Store
    from reports.records.records import RecordedSuite
    from reports.sections.section import Section


@click.command(short_help="Print the results of SUITE, and write its report page.")
@options.suite
@options.scale
@options.store
@click.option(
    "--files",
    metavar="DIR",
    type=options.DIR,
    help="Also write every figure as SVG and PDF, and every table as CSV and LaTeX, to DIR.",
)
def command(suite: str, scale: str | None, store: Store, files: Path | None) -> None:
    """Print the results of SUITE as a table and write its report page.

    Everything is read from MLflow; nothing runs. A page that shows more runs
    than can be read now is kept: exit code 1.
    """
    recorded = load(store, suite, scale)
    if recorded.runs:
        from reports import terminal

        print_rich(terminal.tables(recorded))
    if files is not None:
        click.echo(f"{many(write_files(recorded, files), 'file')} for a paper: {files}")
    if write_page(recorded, store) is None:
        sys.exit(1)


def load(
    store: Store,
    suite: str,
    scale: str | None = None,
    files_of: Callable[[RunResult], bool] | None = None,
    *,
    curves_only: bool = False,
) -> RecordedSuite:
    """Return the records of a suite; UserError without any run or tuning campaign, or if none can be read."""
    from benchmarks.mlflow_store.reader import reading
    from benchmarks.suite.shipped import recorded_name
    from reports.records import suite_reader as records

    store.must_exist()
    recorded = records.load(
        store.tracking_uri, recorded_name(suite, scale), files_of, curves_only=curves_only
    )
    must_be_readable(recorded)
    if not recorded.runs and not recorded.studies:
        address = store.tracking or store.folder
        with reading(store.tracking_uri) as reader:
            hint = nearest(recorded.name, reader.experiments().keys() - {recorded.name})
        raise UserError(f"no run of a suite '{recorded.name}' is recorded in {address}{hint}")
    return recorded


def write_files(recorded: RecordedSuite, folder: Path) -> int:
    """Write figures and tables for a paper into a folder; return the number of files. May raise UserError."""
    from reports import page
    from reports.sections.section import Results

    with writing(f"--files {folder}"):
        return len(page.write_files(page.sections(Results.of(recorded)), folder))


def must_be_readable(recorded: RecordedSuite) -> None:
    """Raise UserError if records are damaged and nothing is left to show."""
    if not recorded.shown and (recorded.unread or (recorded.damaged and not recorded.studies)):
        raise UserError(
            f"no run of '{recorded.name}' can be read: its records are damaged or gone; {RUN_AGAIN}"
        )


def write_page(recorded: RecordedSuite, store: Store) -> Path | None:
    """Write the report page and print the path; return None if an older page with more runs was kept."""
    path = page_of(recorded, store)
    if path.stem != recorded.name:
        return None
    click.echo(f"Report: {path}")
    return path


def page_of(recorded: RecordedSuite, store: Store) -> Path:
    """Write the report page, next to an older page with more runs if necessary, and return the path."""
    from reports import page

    more: Sequence[Section] = ()
    if recorded.name.startswith(CLAIMS):
        from reports.claims.html import sections

        more = sections(recorded.name)
    path = store.reports / f"{recorded.name}.html"
    with writing(f"the report page {path}", "; copy the store to where it can be"):
        written = page.write(recorded, path, more)
    if written != path:
        warn(f"{path} shows more runs and was not overwritten. The report of the readable runs is {written}")
    return written
