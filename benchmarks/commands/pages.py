"""Writes a suite's report page and reports what is missing in it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from fl_core.words import many

if TYPE_CHECKING:
    from benchmarks.tracking.store import Store
    from reports.records.records import RecordedSuite


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
