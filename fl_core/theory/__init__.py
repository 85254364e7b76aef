"""Closed forms for strategies and users: aggregation weights, queueing networks and routing.

Fixed: the values. Strategies weigh updates by them (golden trajectories), and claims compare them with the
papers (tests/papers/).
"""
