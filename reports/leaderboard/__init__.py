"""The leaderboard: stored tables, scores, rank groups, figures and pages.

`asyncfl leaderboard` writes pages (`page`); `asyncfl evidence` compares an author's strategy (`findings`).
Fixed: tables, scores and groups, and the pages in docs/ made from them, byte for byte.
"""
