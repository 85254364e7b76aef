"""`asyncfl list`: what a suite can choose from."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from benchmarks.suite.catalogue import Entry

KINDS = (
    "strategies",
    "samplings",
    "problems",
    "partitions",
    "models",
    "durations",
    "availability",
    "arrangements",
    "local",
    "suites",
)


@click.command()
@click.argument("kind", metavar="[KIND]", required=False, type=click.Choice(KINDS))
def command(kind: str | None) -> None:
    """Show what a suite can choose from: everything, or one KIND.

    \b
    Kinds: strategies, samplings (of FedAvg), problems, partitions, models,
    durations, availability, arrangements, local (local work), suites.
    """
    from benchmarks.suite.catalogue import entries
    from benchmarks.tables import print_table

    for number, one in enumerate([kind] if kind else KINDS):
        if kind is None:
            click.echo(("\n" if number else "") + one.upper())
        print_table(("name", "what it is", "paper"), [_row(entry) for entry in entries(one)])


def _row(entry: Entry) -> tuple[str, str, str]:
    return entry.name, entry.what, entry.paper
