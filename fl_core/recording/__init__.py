"""A run as it is evaluated (`recorder`), saved (`checkpoint`), and computed beside others (`interleave`).

Workers (`benchmarks/runs/jobs.py`) put these parts together.
"""
