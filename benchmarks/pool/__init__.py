"""Pools of workers for computing jobs: a common interface, local worker processes, and a Ray cluster.

Jobs are defined by the code that submits them (`benchmarks/runs/jobs.py`); no pool knows suites or MLflow.
Fixed: a killed process loses no finished run. Free: jobs and messages, since all processes run equal code.
"""
