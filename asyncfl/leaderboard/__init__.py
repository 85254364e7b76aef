"""`asyncfl leaderboard`: version 1.0, from studies to tables, and from these to scores."""
