"""The leaderboard: kept tables, costs, scores with intervals, figures and page."""
