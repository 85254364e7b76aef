"""Runs of the leaderboard: targets, studies of entries, verification, evidence for a strategy."""
