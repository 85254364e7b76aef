"""Mutation testing: one small fault at a time is put into fl_core, and the tests have to notice it.

`python -m tests.mutants --help`; docs/testing.md says what the figures mean.
"""
