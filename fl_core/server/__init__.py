"""What strategies and local work see: the server's model and state, its clients, the jobs in flight."""
