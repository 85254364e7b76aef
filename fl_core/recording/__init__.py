"""A run as it is evaluated (`recorder`), saved (`checkpoint`), and computed beside others (`interleave`).

Workers (`benchmarks/runs/run_jobs.py`) put these parts together.
Fixed: rows and columns of a `Record`, from which all stored results are made.
"""
