"""The leaderboard: kept tables, costs, scores with their intervals, figures and page."""

from pathlib import Path

CURRENT = Path(__file__).parents[2] / "benchmarks" / "leaderboard" / "1.0"  # the newest version
