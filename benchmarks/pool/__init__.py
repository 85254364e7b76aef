"""Pools of workers for computing jobs: a common interface, local worker processes, and a Ray cluster.

`runs.session.Session` and `tuning.campaign.Driver` submit jobs and read their messages. The pool knows
nothing of suites, MLflow or Optuna: jobs are defined by the code that submits them
(`benchmarks/runs/jobs.py`).
"""
