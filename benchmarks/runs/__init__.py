"""Runs of a suite: session, jobs, recording of results, time estimates, display of progress."""
