"""The leaderboard: kept tables, costs, scores with their intervals, figures and page."""
