"""Standard input and output of a command: closed, full, or of an encoding without some letters."""

import os
import sys
from io import TextIOWrapper

STDERR = 2


def repair() -> None:
    """Let closed streams lead nowhere, and let the others escape letters missing from the encoding."""
    # A stream that stays closed gives its place to the next file that is opened.
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= STDERR:
        os.set_inheritable(descriptor, True)
    os.close(descriptor)
    for descriptor, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(descriptor, "w" if descriptor else "r", closefd=False))
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def drop_unwritable() -> None:
    """Discard output without a reader: Python would report an error once more at exit."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
