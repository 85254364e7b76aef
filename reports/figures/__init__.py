"""Figures as SVG in the page's colours, and as files for a paper.

Sections of the page, claims, leaderboard and `asyncfl.figures` draw with `svg`.
Fixed: figures in docs, byte for byte (`tox run -e reproduce`). Free: the look of report pages.
"""
