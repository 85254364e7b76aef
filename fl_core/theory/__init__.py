"""Closed forms for strategies and users: aggregation weights, queueing networks and routing."""
