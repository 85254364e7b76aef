"""Mutation testing with mutmut: `python -m tests.mutants --help` and docs/testing.md."""
