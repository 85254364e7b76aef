"""Who computes: an interface, and worker processes behind it; another engine is another file here.

The pool knows nothing of suites, MLflow or Optuna: what a job is belongs to those who submit it.
"""
