"""The record: the outbox on disk and MLflow, which nothing else writes to."""
