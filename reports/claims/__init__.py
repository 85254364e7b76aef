"""Verdicts on claims and main results from stored numbers, with pages and tables."""
