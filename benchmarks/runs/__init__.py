"""Runs of a suite: jobs, recording of results, time estimates, and display of progress."""
