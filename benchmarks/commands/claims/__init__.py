"""The subcommands of `asyncfl claims`."""
