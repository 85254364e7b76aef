"""Real time: the loop with clients as real processes, and replay in virtual time."""
