"""Figures as SVG in the page's colours, and as files for a paper.

Sections of the page, claims, leaderboard and `asyncfl.plot` draw with `svg`.
"""
