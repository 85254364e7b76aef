"""How cost grows with clients, jobs in flight, evaluations and parameters."""
