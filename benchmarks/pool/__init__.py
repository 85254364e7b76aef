"""Pools of workers for computing jobs: a common interface, local worker processes, and a Ray cluster.

Jobs are defined by the code that submits them (`benchmarks/runs/jobs.py`); no pool knows suites or MLflow.
Fixed: what a killed process leaves behind is kept. Free: jobs and messages: all processes run equal code.
"""
