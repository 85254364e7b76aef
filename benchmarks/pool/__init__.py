"""Pools of workers for computing jobs: a common interface, local worker processes, and a Ray cluster.

Jobs are defined by the code that submits them (`runs/run_jobs.py`); pools know neither suites nor MLflow.
Fixed: a killed process loses no finished run. Free: jobs and messages, since all processes run equal code.
"""
