"""Real time: the loop with clients as real processes, and its replay in virtual time."""
