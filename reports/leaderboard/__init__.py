"""The leaderboard: tables, scores, rank groups, figures and pages."""
