"""Subcommands of `asyncfl`: a file each, with heavy imports only at run time."""
