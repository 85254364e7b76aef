"""`asyncfl run`: compute a suite, record the runs, show the results."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from threading import Thread
from time import monotonic
from typing import TYPE_CHECKING

import click

from benchmarks import signals_and_streams
from benchmarks.commands import options
from benchmarks.errors import warn
from benchmarks.redaction import command_line
from benchmarks.terminal_output import print_rich
from fl_core.recorded_names import TRACEBACK, Status
from fl_core.text import duration

if TYPE_CHECKING:
    from benchmarks.engine import Engine
    from benchmarks.mlflow_store.store import Store
    from benchmarks.runs.progress import Progress
    from benchmarks.runs.session import Session

ENDS = {
    Status.DONE: "done",
    Status.DIVERGED: "diverged",
    Status.STALLED: "stalled: no step would follow",
    Status.ERROR: f"ended in error (see their {TRACEBACK} in MLflow)",
}


@click.command()
@options.planned
@options.device
@options.tuned
@options.tuned_from
@options.computing
@options.verbose
@options.quiet
@click.option("--no-report", is_flag=True, help="Write no report page.")
@click.option(
    "--no-baselines", is_flag=True, help="Train no centralised baselines, which the gate does not need."
)
def command(
    *,
    suite: str,
    settings: tuple[str, ...],
    scale: str | None,
    store: Store,
    tuned: bool,
    tuned_from: Path | None,
    engine: Engine,
    quiet: bool,
    no_report: bool,
    no_baselines: bool,
) -> None:
    """Run SUITE, record it in MLflow, and report.

    Finished runs are not repeated; interrupted ones continue where they stopped.
    """
    began = monotonic()
    # First of all: it takes as long as everything up to its first use, the import of torch included.
    engine.warm_up("benchmarks.runs.run_jobs")

    from benchmarks.runs.session import Session
    from benchmarks.suite.suite import load

    loaded = load(suite, settings, scale, tuned_from or tuned or None)
    session = Session(loaded, store, baselines=not no_baselines)
    complete(session, store, engine, began, quiet=quiet, page=not no_report)


def complete(
    session: Session, store: Store, computes: Engine, began: float, *, quiet: bool, page: bool
) -> None:
    """Compute the remaining runs of a session, show results, and exit with the command's code."""
    from benchmarks.runs.progress import display

    def show(tasks: int) -> Progress:
        if page:
            # While workers compute: the import takes longer than to draw a small page.
            Thread(target=lambda: import_module("reports.page").warm_up(), daemon=True).start()
        return display(tasks, quiet=quiet)

    with signals_and_streams.resumable(lambda: f"{session.progress_text}. Runs in progress are saved."):
        session.run(computes, show)
        click.echo(_what_happened(session, monotonic() - began))
        shown_all = _show_results(session, store, page=page)
    sys.exit(1 if session.statuses[Status.ERROR] or session.failing or not shown_all else 0)


def _what_happened(session: Session, seconds: float) -> str:
    """Return a sentence on the number of computed runs, the time taken, and the endings."""
    name, size = session.suite.name, session.size
    if not session.statuses:
        return f"{name}: {size}, all finished already; nothing to do."
    ends = [
        f"{session.statuses[status]} {words}" for status, words in ENDS.items() if session.statuses[status]
    ]
    earlier = f", {session.finished_earlier} finished before" if session.finished_earlier else ""
    return f"{name}: {size} in {duration(seconds)}: {', '.join(ends)}{earlier}."


def _show_results(session: Session, store: Store, *, page: bool) -> bool:
    """Print the table and write the page; return False if an older page shows more runs."""
    from benchmarks.commands.report import must_be_readable, write_page
    from benchmarks.commands.ui import opening
    from benchmarks.mlflow_store.delivery import keep_page

    session.warn_of_waiting()
    if session.outage:
        return True

    path = store.reports / f"{session.suite.name}.html"
    if page and not session.statuses and _is_current(path, store):
        report_command = command_line(["asyncfl", "report", session.suite.name, *store.options])
        click.echo(f"Report: {path}\nThe same in the terminal: {report_command}")
        return True

    from reports import terminal
    from reports.records.suite_reader import load

    recorded = load(store.tracking_uri, session.suite.name)
    must_be_readable(recorded)
    print_rich(terminal.tables(recorded))
    written = write_page(recorded, store) if page else None
    if written and (reason := keep_page(store, session.suite.name, written)):
        warn(f"MLflow has no copy of the report page: {reason}")
    elif written:
        written.touch()  # it is newer than all that MLflow holds
    click.echo(f"Compare in MLflow: {opening(session.suite.name, store)}")
    return written is not None or not page


def _is_current(page: Path, store: Store) -> bool:
    """Return whether a page is up to date with the store's own database."""
    database = store.database
    local = store.tracking is None and page.exists() and database.exists()
    return local and page.stat().st_mtime_ns >= database.stat().st_mtime_ns
