"""Reports of recorded runs, read from MLflow alone; start with `page`, which lists the sections of a page.

Fixed: numbers, and pages in docs/, made byte for byte by `claims` and `leaderboard`. Free: the look of pages.
"""
