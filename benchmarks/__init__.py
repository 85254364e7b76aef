"""From a suite to records in MLflow: suites, runs, tracking, claims, leaderboard, and the commands."""
