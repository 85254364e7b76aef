"""The leaderboard: stored tables, scores, rank groups, figures and pages.

`asyncfl leaderboard` writes its pages with `page`; `asyncfl evidence` compares an author's strategy
(`findings`).
"""
