"""Computation of jobs: one by one, stacked, by CUDA graphs, or the fastest of these by measurement.

A worker (`benchmarks/runs/run_jobs.py`) chooses an execution by the field `execution` of a suite.
Fixed: results, equal to those of `one_by_one` up to rounding (conformance tests: 1e-10). Free: speed.
"""
