"""Verdicts on claims and main results, from stored numbers, and their pages."""
