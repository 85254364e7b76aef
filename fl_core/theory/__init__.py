"""Closed forms that strategies and users call: aggregation weights, queueing networks and routing."""
