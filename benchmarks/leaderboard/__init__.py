"""Runs of the leaderboard: targets, studies of entries, runs made again, evidence for a strategy."""
