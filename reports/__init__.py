"""Reports of recorded runs, read from MLflow alone: tables for the terminal and a self-contained page.

The commands in `benchmarks/commands/` call it. Start with `page`, which lists the sections of a page.
Fixed: numbers, and pages in docs/, made byte for byte by `claims` and `leaderboard`. Free: the look of report
pages.
"""
