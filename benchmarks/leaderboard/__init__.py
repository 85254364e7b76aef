"""Runs of the leaderboard: targets, studies of entries, verification, evidence for a strategy.

Fixed: rules of the board (docs/how-to/leaderboard.md), and its stored tables, which `asyncfl leaderboard
verify` computes again.
"""
