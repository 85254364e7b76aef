"""The command `asyncfl`. What it needs is imported once Ctrl-C would end that in silence."""

from benchmarks import interrupts


def main() -> None:
    """Run the command line; user errors are reported in one line each and end with exit code 2."""
    interrupts.end_at_once()
    from benchmarks.commands.group import execute

    execute()
