"""The command `asyncfl`, with heavy imports only after Ctrl-C can end the process in silence."""

from benchmarks import signals_and_streams


def main() -> None:
    """Run the command line; user errors are reported in a line each and end with exit code 2."""
    signals_and_streams.end_at_once()
    from benchmarks.commands.group import execute

    execute()
