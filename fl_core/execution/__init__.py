"""Computation of jobs: one by one, stacked, by CUDA graphs, or the fastest of these by measurement.

A worker (`benchmarks/runs/jobs.py`) chooses an execution by the field `execution` of a suite. Results do not
depend on the choice, up to the rounding of sums; `one_by_one` is the reference.
"""
