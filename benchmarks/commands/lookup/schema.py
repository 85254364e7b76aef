"""`asyncfl schema`: the JSON schema of a suite."""

from __future__ import annotations

import json

import click


@click.command()
def command() -> None:
    """Print the JSON schema of suite files, for editors."""
    from benchmarks.reference.schema import suite_schema

    click.echo(json.dumps(suite_schema(), indent=2, ensure_ascii=False))
