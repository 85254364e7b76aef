"""Reports of recorded runs, read from MLflow alone: tables for the terminal and a self-contained page.

The commands in `benchmarks/commands/` call it. Start with `page`, which lists the sections of a page.
"""
