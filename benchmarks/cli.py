"""The command `asyncfl`. Subcommands are imported on demand; heavy modules, when they run."""

from __future__ import annotations

import gc
import importlib
import sys
from pathlib import Path

import click

from benchmarks.errors import users_mistake

# New objects between two searches for garbage. Torch and MLflow make 600,000 that stay for good; by default
# (700 or 2,000) all of them are searched through again and again, a fifth of the time that imports take.
OBJECTS = 50_000

COMMANDS = {  # name → its module in `benchmarks.commands`
    "run": "run",
    "tune": "tune",
    "sync": "sync",
    "report": "report",
    "compare": "compare",
    "leaderboard": "leaderboard",
    "advise": "advise",
    "check": "check",
    "baseline": "baseline",
    "list": "lookup.list",
    "show": "lookup.show",
    "claims": "claims.group",
    "theory": "lookup.theory",
    "errata": "lookup.errata",
    "speed": "speed",
    "ui": "ui",
    "schema": "lookup.schema",
}


class Commands(click.Group):
    """A group whose commands are the modules of `benchmarks.commands`."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        command: click.Command = importlib.import_module(f"benchmarks.commands.{COMMANDS[name]}").command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        from benchmarks.suite.document import nearest

        if args and not args[0].startswith("-") and args[0] not in COMMANDS:
            ctx.fail(f"no command '{args[0]}'{nearest(args[0], COMMANDS)} There are: {', '.join(COMMANDS)}")
        return super().resolve_command(ctx, args)


def _print_version(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted:
        from benchmarks.tracking.provenance import version

        click.echo(f"asyncfl {version('asyncfl-bench') or 'from its sources, not installed'}")
        ctx.exit()


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_version,
    help="Show the version and exit.",
)
def asyncfl() -> None:
    """Compare strategies of asynchronous federated learning, reproducibly.

    Start with: asyncfl run quickstart
    """


def main() -> None:
    """Run the command line; user errors are reported in one line and end with exit code 2."""
    gc.set_threshold(OBJECTS, 20, 20)
    sys.path.append(str(Path.cwd()))  # where a user's own `package.module:Class` lies
    try:
        asyncfl(prog_name="asyncfl")
    except Exception as error:
        lines = users_mistake(error)
        if lines is None:
            raise
        click.echo("\n".join(f"Error: {line}" for line in lines), err=True)
        sys.exit(2)
