"""The group of all commands, `asyncfl`: import of a command on demand, errors as exit codes.

`asyncfl/cli.py` calls `execute`.

Fixed: names of commands, and exit codes.
"""

import atexit
import gc
import importlib
import os
import sys
import traceback
from io import StringIO
from pathlib import Path
from typing import Any

import click

from benchmarks import signals_and_streams
from benchmarks.errors import UserError, short_line, summarised, users_mistake
from benchmarks.redaction import redacted
from fl_core.import_guard import leave_the_path, place

# Number of new objects between two searches for garbage. Torch and MLflow make 600,000 that stay for good;
# with Python's default (700 or 2,000), searching them again and again takes a fifth of the time of imports.
GC_THRESHOLD = 50_000

COMMANDS = (
    "run",
    "live",
    "replay",
    "tune",
    "sync",
    "report",
    "compare",
    "leaderboard",
    "evidence",
    "advise",
    "trace",
    "check",
    "list",
    "show",
    "claims",
    "ui",
)


class Commands(click.Group):
    """A group of commands imported on demand."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        command: click.Command = importlib.import_module(f"benchmarks.commands.{name}").command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        from fl_core.text import unknown

        if args and not args[0].startswith("-") and args[0] not in COMMANDS:
            ctx.fail(unknown("command", args[0], COMMANDS))
        return super().resolve_command(ctx, args)


def _print_version(ctx: click.Context, _: click.Parameter, requested: bool) -> None:
    if requested:
        from benchmarks.mlflow_store.provenance import version

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


def execute() -> None:
    """Run the command line, and exit with the resulting code."""
    gc.set_threshold(GC_THRESHOLD, 20, 20)
    atexit.register(gc.freeze)  # otherwise Python collects all modules at the end: two seconds
    sys.excepthook = _print_traceback
    signals_and_streams.repair_streams()
    try:
        _must_be_utf8()
        leave_the_path(Path.cwd())
        code = asyncfl(prog_name="asyncfl", standalone_mode=False)
        sys.stdout.flush()
    except click.Abort:  # by Ctrl-C
        code = signals_and_streams.INTERRUPTED
    except click.ClickException as error:
        text, code = StringIO(), error.exit_code
        error.show(text)
        sys.stderr.writelines(f"{short_line(line)}\n" for line in text.getvalue().splitlines())
    except BrokenPipeError:  # the reader has read enough
        code = 1
    except (Exception, SystemExit) as error:
        lines = users_mistake(error)
        if lines is None and place(error):  # raised in a file of the user's own
            lines = (summarised(error),)
        if lines is None:
            raise
        sys.stderr.writelines(f"Error: {line}\n" for line in lines)
        code = 2
    finally:
        signals_and_streams.drop_unwritable_output()
    sys.exit(code)


def _print_traceback(*error: Any) -> None:
    sys.stderr.write(redacted("".join(traceback.format_exception(*error))))


def _must_be_utf8() -> None:
    """Raise an error of the user's unless the command line, settings and current folder can be recorded."""
    settings = (value for name, value in os.environ.items() if name.startswith("ASYNCFL_"))
    try:
        for text in (*sys.argv, *settings, str(Path.cwd())):
            text.encode()
    except FileNotFoundError:
        raise UserError("the current folder no longer exists. Change to another folder") from None
