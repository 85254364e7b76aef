"""Subcommands of `asyncfl`: a module each, imported on demand by `group.py`.

A module reads options, calls other packages, and prints. It imports torch or MLflow only inside functions, so
that `--help` is instant. The docstring of a `command` is its help text; `options.py` has shared options.
"""
