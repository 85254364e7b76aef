"""The server as seen by strategies and local work: model and state, clients, jobs in flight."""
