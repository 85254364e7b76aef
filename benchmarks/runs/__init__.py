"""Runs of a suite: what there is to compute, how each becomes a record, and what is shown meanwhile."""
