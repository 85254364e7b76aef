"""Pools of workers for computing jobs: a common interface, local worker processes, and a Ray cluster.

Sessions and the driver of tuning submit jobs and read messages. The pool knows nothing of suites, MLflow or
Optuna: jobs are defined by the code that submits them (`benchmarks/runs/jobs.py`).
"""
