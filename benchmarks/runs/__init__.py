"""Runs of a suite: the session that computes them, their jobs, recording, time estimates, progress."""
