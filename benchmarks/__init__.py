"""Suites, runs, tracking in MLflow, and the commands."""
