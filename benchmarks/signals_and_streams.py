"""The process of a command: Ctrl-C and SIGTERM, and closed, full or limited output.

`asyncfl/cli.py`, `commands/group.py` and long commands call it.

Fixed: what Ctrl-C, SIGTERM and closed output do (tests/benchmarks/test_ends_of_processes.py).
"""

import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import TextIOWrapper

INTERRUPTED = 130  # exit code after Ctrl-C, as in shells
STDERR = 2  # file descriptor


def end_at_once() -> None:
    """Let Ctrl-C end the process in silence; KeyboardInterrupt amid an import may be swallowed or printed."""
    signal.signal(signal.SIGINT, lambda *_: os._exit(INTERRUPTED))


def raise_interrupts() -> None:
    """Let Ctrl-C and SIGTERM raise KeyboardInterrupt, for a command with results to save."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.default_int_handler)


@contextmanager
def resumable(stopped: Callable[[], str]) -> Iterator[None]:
    """End on Ctrl-C or SIGTERM with the text of `stopped`, and how to resume the command."""
    import click

    from benchmarks.redaction import command_line

    raise_interrupts()
    try:
        yield
    except KeyboardInterrupt:
        click.echo(f"\nStopped: {stopped()}")
        click.echo(f"Resume with: asyncfl {command_line(sys.argv[1:])}")
        sys.exit(INTERRUPTED)


def repair_streams() -> None:
    """Let closed streams lead nowhere, and let the others escape letters missing from the encoding."""
    # The number of a closed stream would be given to the next opened file, which prints would then overwrite.
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= STDERR:
        os.set_inheritable(descriptor, True)
    os.close(descriptor)
    for descriptor, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(descriptor, "w" if descriptor else "r", closefd=False))
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def drop_unwritable_output() -> None:
    """Discard output without a reader: Python would report an error once more at exit."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
