"""Suites, their runs, tracking in MLflow, and the commands."""
