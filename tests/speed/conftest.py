"""Measurements with pytest-benchmark, docs/speed.md; without it they are left out."""

from importlib.util import find_spec

collect_ignore_glob = [] if find_spec("pytest_benchmark") else ["test_*.py"]
