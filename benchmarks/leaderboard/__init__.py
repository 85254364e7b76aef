"""Runs of the leaderboard: entries, final runs, runs made again, ablations for an author's own strategy."""
