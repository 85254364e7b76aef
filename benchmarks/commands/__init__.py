"""Subcommands of `asyncfl`: a module each, imported on demand by `group.py`; `options.py` has shared options.

A module prints and calls other packages. It imports torch and MLflow inside functions, for a quick `--help`.
Fixed: names and defaults of options, and files written. Free: output. Help texts are docstrings of `command`.
"""
