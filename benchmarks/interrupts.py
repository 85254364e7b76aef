"""Effects of Ctrl-C and SIGTERM, before and after a command has something to save."""

import os
import signal

EXIT = 130  # exit code, as shells have it after Ctrl-C


def end_at_once() -> None:
    """Let Ctrl-C end the process in silence; KeyboardInterrupt amid an import may be swallowed or printed."""
    signal.signal(signal.SIGINT, lambda *_: os._exit(EXIT))


def are_raised() -> None:
    """Let Ctrl-C and SIGTERM raise KeyboardInterrupt, for a command with results to save."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
