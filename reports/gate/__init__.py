"""The gate: recorded runs against a baseline."""
